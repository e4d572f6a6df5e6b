"""What a person who waits for a canary is told: one short line, and only when there is news."""

from collections.abc import Callable
from pathlib import Path

import pytest

from domain.canary import Advice, Step
from domain.releases import Evidence, LiveMetric, Outcome, Rollout
from retrieval.registry import FolderRegistry
from tidegate.follow import Waiting, decided
from tidegate.watching import Look

LONG = "Not decided: success: +0.000 over 40 matched pairs; within_slo: -0.010 over 40 matched pairs"


def metric(name: str, outcome: Outcome, more: int | None = None, advisory: bool = False) -> LiveMetric:
    return LiveMetric(name, False, 40, 160, 1.0, 1.0, -0.1, 0.1, outcome, "", advisory, 0.05, more)


def look(n: int, *metrics: LiveMetric, share: float = 0.05, since: int = 0, step: Step = Step.WAIT) -> Look:
    rollout = Rollout("v1", "v2", share, None, 5, 5, True)
    return Look(rollout, Evidence("v2", "v1", 5, n, 4 * n, since, metrics), Advice(step, LONG))


UNDECIDED = metric("success", Outcome.INCONCLUSIVE, 40)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def waiting(told: list[str]) -> Callable[[Look], None]:
    return Waiting(told.append)


def test_of_several_metrics_the_one_that_needs_most_is_told(waiting: Waiting, told: list[str]) -> None:
    advisory = metric("feedback", Outcome.INCONCLUSIVE, 900, advisory=True)
    waiting(
        look(40, UNDECIDED, metric("within_slo", Outcome.INCONCLUSIVE, 75), metric("found", Outcome.PASS), advisory)
    )
    assert told == ["waiting at 5%: 40 requests so far; within_slo takes about 75 more"]


def test_a_metric_for_which_few_requests_count_takes_more_of_them(waiting: Waiting, told: list[str]) -> None:
    # 40 of 100 requests are eligible, so 30 more of those are 75 more requests
    waiting(look(100, metric("citations_resolved", Outcome.INCONCLUSIVE, 30)))
    assert told == ["waiting at 5%: 100 requests so far; citations_resolved takes about 75 more"]


@pytest.mark.parametrize(
    ("metrics", "line"),
    [
        ([], "waiting at 5%: 1 request so far; nothing can be said yet"),
        ([metric("found", Outcome.INCONCLUSIVE)], "waiting at 5%: 1 request so far; nothing can be said yet"),
        (
            [UNDECIDED, metric("coverage", Outcome.INCONCLUSIVE)],
            "waiting at 5%: 1 request so far; how many more coverage takes cannot be said yet",
        ),
    ],
)
def test_what_nobody_can_say_yet_is_not_a_number(
    waiting: Waiting, told: list[str], metrics: list[LiveMetric], line: str
) -> None:
    waiting(look(1, *metrics))
    assert told == [line]


def test_a_canary_that_is_well_but_new_at_its_share_says_so(waiting: Waiting, told: list[str]) -> None:
    waiting(look(90, metric("success", Outcome.PASS), share=0.25, since=12))
    assert told == ["waiting at 25%: 90 requests so far; as good as stable, 12 of them at this share"]


def test_a_few_requests_more_are_no_news_and_half_as_many_again_are(waiting: Waiting, told: list[str]) -> None:
    for n in (0, 1, 9, 10, 19, 20, 29, 30, 44, 45, 67, 68):
        waiting(look(n, UNDECIDED))
    # 0, then 0 + 10, 10 + 10, 20 + 10 = 20 * 1.5, 30 * 1.5 = 45, 45 * 1.5 = 67.5
    assert [int(line.split()[3]) for line in told] == [0, 10, 20, 30, 45, 68]


def test_another_share_and_another_outcome_are_news(waiting: Waiting, told: list[str]) -> None:
    waiting(look(100, UNDECIDED))
    waiting(look(101, metric("success", Outcome.PASS), since=40))
    waiting(look(102, metric("success", Outcome.PASS), share=0.25))
    assert [int(line.split()[3]) for line in told] == [100, 101, 102]


def test_what_is_no_waiting_is_told_by_whoever_makes_the_move(waiting: Waiting, told: list[str]) -> None:
    waiting(look(100, metric("success", Outcome.PASS), step=Step.PROMOTE))
    assert told == []


def test_a_pointer_that_cannot_be_read_for_a_moment_ends_no_watch(tmp_path: Path) -> None:
    pointer = tmp_path / "rollout.json"
    watched = Rollout("v1", "v2", 0.05, None, 5, 5, True)
    begun = '{"stable": "v1", "canary": "v2", "share": 0.05, "revision": 5, "began": 5}'
    over = []
    for content in (begun, "{", begun, '{"stable": "v1", "revision": 6}'):
        pointer.write_text(content)
        over.append(decided(FolderRegistry(tmp_path), watched))
    assert over == [False, False, False, True]
