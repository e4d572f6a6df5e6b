"""What `bench rerank-load` asks, and what it makes of the answers."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from retrieval.pair_engine import PairEngine
from tests.fakes import FakePairModel
from tidegate.bench_rerank_load import _closed, _figures, _open, made_requests
from tidegate.cli import main


@pytest.fixture
def engine() -> Iterator[PairEngine]:
    engine = PairEngine([FakePairModel(max_tokens=512)], batch_tokens=1024, remembered=0)
    yield engine
    engine.close()


def test_requests_have_fifty_passages_of_about_a_hundred_and_fifty_tokens_cut_before(engine: PairEngine) -> None:
    requests = made_requests(engine, 4)
    lengths = [len(hit.tokens.ids) // 4 for _, hits in requests for hit in hits if hit.tokens]
    assert len(lengths) == 200
    assert 140 < np.mean(lengths) < 160
    assert made_requests(engine, 4) == requests


def test_every_request_of_both_loops_is_read(engine: PairEngine) -> None:
    requests = made_requests(engine, 3)
    assert asyncio.run(_closed(engine, requests, clients=2)) > 0
    latencies = asyncio.run(_open(engine, requests, rate=1000.0, seconds=0.01))
    assert len(latencies) == 20  # at least so many, or there is no 99th percentile
    assert engine.ran.pairs >= 2 * 3 * 50  # equal requests that are in flight together are read once
    assert min(latencies) > 0


def test_a_gpu_is_judged_by_the_goal_and_a_cpu_is_not() -> None:
    told = {device: _figures(device, 50_000.0, 0.9, [1.0, 2.0]) for device in ("cuda", "cpu")}
    assert (told["cuda"][0].met, told["cpu"][0].met) == (False, None)
    assert told["cuda"][1].met
    assert told["cpu"][2].peers == {"p50": 1.5, "requests": 2.0}


def test_a_device_that_nobody_knows_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "rerank-load", "--device", "abacus"]) == 2
    assert "abacus" in capsys.readouterr().err
