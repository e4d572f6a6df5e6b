"""A contender that fails says why, and what to do."""

from pathlib import Path

import pytest

from domain.errors import ConfigError
from tidegate.bench_contenders import contender


@pytest.mark.parametrize("module", ["tidegate.rerank_peers", "tidegate.embed_peers"])
def test_a_contender_that_fails_is_told_with_the_end_of_its_log_and_the_way_out(tmp_path: Path, module: str) -> None:
    with pytest.raises(ConfigError, match=r"contender ours of .* ended with 1 .*FileNotFoundError.*--no-peers"):
        contender(module, "ours", tmp_path / "no-such-job.json")


def test_a_contender_that_nobody_knows_is_told_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Name one of ours, onnx"):
        contender("tidegate.rerank_peers", "nobody", tmp_path)
