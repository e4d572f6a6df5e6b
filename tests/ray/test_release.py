"""A release on a real server from end to end: refused, widened to everybody, turned back by itself, and taken back.

Once on a small sample library and once on a public collection. One release is made for all tests, because it takes
minutes; people come at ten a second as long as a version is on trial.
"""

import os
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from domain.releases import Move, Verb
from serving.address import free_port
from tests.ray.release import FOLLOWED_S, Library, Operator, Story, release
from tests.ray.visitors import Visit
from tidegate.console import Code
from tidegate.who import who

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1500)]

NUMBER = r"[+-]?\d\.\d{4}"
INTERVAL = rf"\[{NUMBER}, {NUMBER}\]"


@pytest.fixture(scope="module", params=["sample", pytest.param("hotpotqa-mini", marks=pytest.mark.data)])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    library = Library()
    if request.param != "sample":
        collections = os.environ.get("TIDEGATE_DATA")
        if not collections:
            pytest.skip("TIDEGATE_DATA does not name the folder of the public collections")
        library = Library.of(Path(collections).absolute() / "data" / request.param)
    return release(Operator(tmp_path_factory.mktemp("release"), free_port()), library)


def at(move: Move) -> datetime:
    return datetime.fromisoformat(move.at)


def settled(visits: Iterable[Visit], move: Move) -> list[str]:
    """The versions that answered whoever asked when everybody had to follow a move already."""
    return [visit.version for visit in visits if visit.asked_at >= at(move).timestamp() + FOLLOWED_S]


def test_a_version_cut_worse_is_refused_with_the_numbers_and_reaches_nobody(story: Story) -> None:
    told = story.gate_worse.stdout
    assert story.gate_worse.returncode == Code.REFUSED, told
    assert re.search(
        rf"^FAIL +citation_recall floor: {NUMBER} {INTERVAL} over \d+ questions, floor 0\.2500$", told, re.M
    )
    dropped = rf"^FAIL +citation_recall max_drop: {NUMBER} against {NUMBER}, difference -{NUMBER} {INTERVAL} over \d+ "
    assert re.search(dropped, told, re.M)
    assert re.search(rf"^FAIL: version {story.worse} against {story.first}, \d+ questions of set ", told, re.M)

    assert story.canary_worse.returncode == Code.REFUSED
    refused = (
        rf"^error: Version {story.worse} may not reach people \(FAIL\): .*citation_recall floor: {NUMBER} {INTERVAL}"
    )
    assert re.search(refused, story.canary_worse.stderr, re.M)
    assert story.pointer_after == story.pointer_before
    assert story.worse not in {visit.version for visits in story.visits for visit in visits}


def test_a_better_version_passes_the_gate_and_widens_by_itself_to_everybody(story: Story) -> None:
    assert story.gate_better.returncode == Code.DONE, story.gate_better.stdout
    assert story.canary_better.returncode == Code.DONE, story.canary_better.stderr
    began, wider, everybody = story.ledger[1:4]
    assert [(m.verb, m.after.stable, m.after.canary, m.after.share) for m in (began, wider, everybody)] == [
        (Verb.CANARY, story.first, story.better, 0.25),
        (Verb.WIDEN, story.first, story.better, 0.5),
        (Verb.PROMOTE, story.better, None, 0.0),
    ]
    assert {visit.version for visit in story.visits[0]} == {story.first, story.better}
    assert set(settled(story.visits[0], everybody)) == {story.better}


def test_a_version_that_is_slow_live_turns_back_by_itself_within_two_seconds(story: Story) -> None:
    assert story.gate_slow.returncode == Code.DONE, story.gate_slow.stdout
    assert story.canary_slow.returncode == Code.REFUSED, story.canary_slow.stderr
    began, back = story.ledger[4:6]
    assert (began.verb, began.after.canary) == (Verb.CANARY, story.slow)
    assert (back.verb, back.after.stable, back.after.canary) == (Verb.ROLLBACK, story.better, None)
    assert back.who in (who(), "tidegate watch")
    assert re.search(r"within_slo: -\d\.\d+ over \d+ matched pairs, between .* worse", back.reason)
    assert timedelta(0) <= at(back) - datetime.fromisoformat(back.noticed_at) < timedelta(seconds=2)


def test_a_rollback_brings_back_the_version_before_within_two_seconds(story: Story) -> None:
    assert story.rollback.returncode == Code.DONE, story.rollback.stderr
    last = story.ledger[-1]
    assert (last.verb, last.who, last.before.stable, last.after.stable) == (
        Verb.ROLLBACK,
        who(),
        story.better,
        story.first,
    )
    assert set(settled(story.visits[1], last)) == {story.first}


def test_nobody_who_came_meanwhile_went_without_an_answer(story: Story) -> None:
    assert [visit.wrong for visits in story.visits for visit in visits if visit.wrong] == []
    assert all(len(visits) > 100 for visits in story.visits)


def test_the_ledger_over_http_is_the_one_on_disk(story: Story) -> None:
    assert [move["verb"] for move in story.told["ledger"]][::-1] == [
        "promote",
        "canary",
        "widen",
        "promote",
        "canary",
        "rollback",
        "rollback",
    ]
    told = [(m["verb"], m["at"], m["who"], m["reason"], m["to"]["stable"]) for m in story.told["ledger"]]
    assert told == [(m.verb, m.at, m.who, m.reason, m.after.stable) for m in reversed(story.ledger)]
    assert (story.told["stable"], story.told["canary"]) == (story.first, None)
