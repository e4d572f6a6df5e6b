"""What every log of live observations promises."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.ports import Observations
from domain.releases import Kept, Observation
from retrieval.observations import FolderObservations
from tests.fakes import FakeObservations

V1, V2 = (f"v{i:012x}" for i in (1, 2))

LOGS: dict[str, Callable[[Path], Observations]] = {
    "folder": lambda path: FolderObservations(path / "observations"),
    "fake": lambda _: FakeObservations(),
}


@pytest.fixture(params=sorted(LOGS))
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Observations:
    return LOGS[request.param](tmp_path)


def seen(trace_id: str, at: float = 1.0, version: str = V2, success: float | None = 1.0) -> Observation:
    return Observation(trace_id, at, version, {"success": success})


def test_nothing_observed_is_an_empty_log(log: Observations) -> None:
    assert log.read(V2, 1) == ()


def test_an_observation_comes_back_as_it_was(log: Observations) -> None:
    values = {"success": 1.0, "grounded": None, "within_slo": 0.0, "citations_resolved": 1 / 3}
    whole = Observation("tür-1", 1_700_000_000.123456, V2, values, {"coverage": (0.25, 2 / 3), "overlap": (0.5, 1.0)})
    assert log.write(V2, 7, whole) is True
    assert log.read(V2, 7) == (whole,)


def test_observations_come_oldest_first_and_equally_old_by_trace(log: Observations) -> None:
    for trace_id, at in (("c", 2.0), ("b", 2.0), ("a", 3.0), ("d", 1.0)):
        log.write(V2, 1, seen(trace_id, at))
    assert [one.trace_id for one in log.read(V2, 1)] == ["d", "b", "c", "a"]


def test_what_is_written_after_a_look_is_in_the_next(log: Observations) -> None:
    log.write(V2, 1, seen("b", 2.0))
    assert [one.trace_id for one in log.read(V2, 1)] == ["b"]
    log.write(V2, 1, seen("a", 1.0))
    assert [one.trace_id for one in log.read(V2, 1)] == ["a", "b"]


def test_however_late_they_arrive_and_however_often_one_looks_the_order_is_the_same(log: Observations) -> None:
    rng = random.Random(7)
    arrived = [seen(f"t{i}", float(rng.randrange(20))) for i in range(200)]
    for i, one in enumerate(arrived):
        log.write(V2, 1, one)
        if rng.random() < 0.3:
            told = [(seen.at, seen.trace_id) for seen in log.read(V2, 1)]
            assert told == sorted((seen.at, seen.trace_id) for seen in arrived[: i + 1])


def test_two_canaries_and_two_times_of_one_are_never_mixed(log: Observations) -> None:
    for canary, began, trace_id in ((V1, 1, "a"), (V2, 1, "b"), (V2, 3, "c"), (V1, 1, "d")):
        log.write(canary, began, seen(trace_id))
    told = {(canary, began): [one.trace_id for one in log.read(canary, began)]
            for canary in (V1, V2) for began in (1, 3)}  # fmt: skip
    assert told == {(V1, 1): ["a", "d"], (V1, 3): [], (V2, 1): ["b"], (V2, 3): ["c"]}


def test_what_was_lost_is_counted_for_its_canary_alone_beside_what_was_kept(log: Observations) -> None:
    assert log.kept(V2, 1) == Kept()
    log.lose(V2, 1, 3)  # before there is anything to read
    log.write(V2, 1, seen("a"))
    log.lose(V2, 1, 2)
    log.lose(V2, 3, 1)
    assert [log.kept(*canary) for canary in ((V2, 1), (V2, 3), (V1, 1))] == [Kept(lost=5), Kept(lost=1), Kept()]
    assert log.read(V2, 1) == (seen("a"),)


def test_threads_that_write_at_once_lose_nothing(log: Observations) -> None:
    with ThreadPoolExecutor(8) as pool:
        kept = list(pool.map(lambda i: log.write(V2, 1, seen(f"t{i:03}")), range(200)))
    assert kept == [True] * 200
    assert [one.trace_id for one in log.read(V2, 1)] == [f"t{i:03}" for i in range(200)]
