"""Several builds in one data folder at the same time, of the same and of other content, one of them killed."""

import multiprocessing
import signal
from pathlib import Path

import pytest

from retrieval.registry import FolderRegistry
from tests.retrieval.dying import built, killed_at

TEXTS = ("The gate opens at high water.", "The gate opens at low water.")


def build_or_die(home: str, text: str, step: int) -> None:
    """Builds, unless it is to be killed before its `step`-th step."""
    if step:
        killed_at(step)
    built(Path(home), text)


@pytest.mark.slow
@pytest.mark.parametrize("step", [40, 90, 140])
def test_builds_at_once_are_each_whole_and_a_killed_one_hinders_none(tmp_path: Path, step: int) -> None:
    context = multiprocessing.get_context("spawn")
    steps = [*((text, 0) for text in TEXTS for _ in range(2)), (TEXTS[0], step), (TEXTS[1], step)]
    builders = [context.Process(target=build_or_die, args=(str(tmp_path), *each)) for each in steps]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join(100)
    assert [builder.exitcode for builder in builders[:4]] == [0] * 4
    assert {builder.exitcode for builder in builders[4:]} <= {0, -signal.SIGKILL}
    registry = FolderRegistry(tmp_path / "registry")
    there = registry.versions()
    assert len(there) == 2
    for version in there:
        registry.verify(version.id)
    assert {built(tmp_path, text) for text in TEXTS} == {version.id for version in there}
    registry.clear_leftovers()
    assert (registry.leftovers(), registry.damaged()) == ((), {})
    assert list((tmp_path / "staging").iterdir()) == []
