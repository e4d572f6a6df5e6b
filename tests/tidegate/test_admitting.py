"""Documents brought to people: the first version to all of them, a later one as a canary, and nothing done twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import NotAdmitted
from domain.releases import Outcome, Rollout, Verb
from domain.releasing import Releases
from eval.questions import load
from tests.tidegate.tiny import settings, write_corpus
from tidegate.admitting import build_and_admit, trial
from tidegate.build import build_version
from tidegate.compose import make_registry
from tidegate.evaluate import question_set
from tidegate.measuring import binding
from tidegate.settings import Settings
from tidegate.up import example_question, with_question_set

Capture = pytest.CaptureFixture[str]

# Two questions that are both answered rightly show a mean above .22: 1 - .05 ** (1 / 2) of it may be unseen.
GATES = "[{metric: recall@6, floor: 0.2, min_items: 1}, {metric: citation_recall, floor: 0.2, min_items: 1}]"
STRICT = "[{metric: recall@6, floor: 0.2, min_items: 1}, {metric: citation_recall, floor: 0.9, min_items: 1}]"


def question(id: str, query: str, doc_id: str, text: str, answer: str) -> str:
    """One line of a question set: a public visitor of the harbour asks for a fact of one document."""
    fields = {"id": id, "query": query, "answer": answer, "aliases": [], "type": "inference", "hops": 1}
    asked = {"slice": "frozen", "persona": "visitor", "tenant": "harbour", "groups": ["public"], "history": []}
    return json.dumps({**fields, **asked, "evidence": [{"doc_id": doc_id, "text": text}]}) + "\n"


OIL = question("q1", "Which oil does pump P3 need?", "pump.txt", "Pump P3 needs oil of grade ISO 46.", "ISO 46")
LIFT = question("q2", "How much does the blue crane lift?", "crane.md", "It lifts four tonnes.", "four tonnes")
UNTRUE = question("q3", "Who paints the lighthouse?", "gate.md", "The mayor paints it.", "the mayor")


@pytest.fixture
def corpus(here: Path) -> Path:
    (here / "asked.jsonl").write_text(OIL + LIFT)
    (here / "untrue.jsonl").write_text(UNTRUE)
    return write_corpus(here / "corpus")


def library(here: Path, questions: str = "asked.jsonl", **others: str) -> Settings:
    ours = settings(here / "data", **{"evaluation__gates": GATES, **others})
    return with_question_set(ours, here / questions if questions else None)


def admitted(ours: Settings, corpus: Path, forced: str = "", at_once: bool = False) -> Rollout:
    return build_and_admit(ours, corpus, groups="", forced=forced, at_once=at_once, report=lambda *_: None)


def rewrite(corpus: Path) -> None:
    """One document changed, which makes another version."""
    (corpus / "gate.md").write_text("# The gate\n\nThe sea gate closes at a tide of seven metres.\n")


# ---------------------------------------------------------------------------------------------- the first version


def test_a_corpus_that_passes_becomes_what_people_get(corpus: Path, here: Path) -> None:
    ours = library(here)
    rollout = admitted(ours, corpus)
    registry = make_registry(ours)
    assert registry.rollout() == rollout
    assert rollout.stable is not None
    assert rollout.canary is None
    assert [decision.outcome for decision in registry.decisions(rollout.stable)] == [Outcome.PASS]
    assert [move.verb for move in registry.ledger()] == [Verb.PROMOTE]


def test_the_same_again_is_neither_built_measured_nor_moved_again(corpus: Path, here: Path, capsys: Capture) -> None:
    ours = library(here)
    rollout = admitted(ours, corpus)
    registry = make_registry(ours)
    before = registry.ledger(), registry.decisions(str(rollout.stable))
    capsys.readouterr()
    assert admitted(ours, corpus) == rollout
    assert (registry.ledger(), registry.decisions(str(rollout.stable))) == before
    assert f"{rollout.stable} was decided about on {before[1][0].decided_at}" in capsys.readouterr().err


def test_a_corpus_that_misses_its_floors_is_refused_with_the_numbers(corpus: Path, here: Path) -> None:
    ours = library(here, "untrue.jsonl")
    with pytest.raises(NotAdmitted, match=r"FAIL .*citation_recall floor: 0.0000 .*nobody gets anything yet.*--force"):
        admitted(ours, corpus)
    assert make_registry(ours).rollout() == Rollout()


def test_questions_that_prove_too_little_admit_nothing(corpus: Path, here: Path) -> None:
    with pytest.raises(NotAdmitted, match=r"INCONCLUSIVE .*citation_recall floor: 1.0000 .*would settle it"):
        admitted(library(here, evaluation__gates=STRICT), corpus)


def test_what_is_served_already_is_decided_about_again_under_other_settings(corpus: Path, here: Path) -> None:
    version = admitted(library(here), corpus).stable
    with pytest.raises(NotAdmitted, match=f"may not be served under these settings.*people keep getting {version}"):
        admitted(library(here, "untrue.jsonl", answering__k="5"), corpus)


def test_a_library_without_questions_is_admitted_by_force_alone(corpus: Path, here: Path, capsys: Capture) -> None:
    ours = library(here, "")
    rollout = admitted(ours, corpus, "we are only trying it out")
    decisions = make_registry(ours).decisions(str(rollout.stable))
    assert [decision.forced for decision in decisions] == ["we are only trying it out"]
    assert make_registry(ours).ledger()[-1].reason == "we are only trying it out"
    assert "forced: we are only trying it out" in capsys.readouterr().err


def test_force_keeps_what_the_gate_said_in_the_record(corpus: Path, here: Path) -> None:
    ours = library(here, "untrue.jsonl")
    rollout = admitted(ours, corpus, "the question is wrong")
    refused, forced = make_registry(ours).decisions(str(rollout.stable))
    assert (refused.outcome, refused.forced) == (Outcome.FAIL, "")
    assert replace(forced, forced="", decided_at=refused.decided_at) == refused


def test_the_tracker_is_waited_for_only_where_the_settings_say_so(corpus: Path, here: Path) -> None:
    demanding = library(here, tracking__required="true")
    with pytest.raises(NotAdmitted, match=r"ERROR .*tracking: tracking\.required is set"):
        admitted(demanding, corpus)
    assert admitted(library(here), corpus).stable


# ---------------------------------------------------------------------------------------------- a later version


def test_a_later_version_that_passes_begins_as_a_canary(corpus: Path, here: Path) -> None:
    ours = library(here)
    first = admitted(ours, corpus)
    rewrite(corpus)
    rollout = admitted(ours, corpus)
    assert (rollout.stable, rollout.share, rollout.auto) == (first.stable, 0.05, True)
    assert rollout.canary not in (None, first.stable)
    decision = make_registry(ours).decisions(str(rollout.canary))[-1]
    assert decision.binding.baseline == first.stable
    assert "on trial with 5% of the sessions; it widens by itself" in trial(ours, rollout)
    unwatched = library(here, canary__watch="false")
    assert "it waits for tidegate canary --auto" in trial(unwatched, rollout)


def test_the_same_again_leaves_the_canary_where_it_is(corpus: Path, here: Path) -> None:
    ours = library(here)
    admitted(ours, corpus)
    rewrite(corpus)
    rollout = admitted(ours, corpus)
    assert admitted(ours, corpus) == rollout


@pytest.mark.parametrize("turned_back", [False, True])
def test_what_was_forced_for_a_canary_is_not_given_to_everybody_later(
    corpus: Path, here: Path, turned_back: bool
) -> None:
    ours = library(here)
    first = admitted(ours, corpus).stable
    rewrite(corpus)
    asked = question_set(ours, None)
    releases = Releases(make_registry(ours), lambda version, baseline: binding(ours, version, asked, baseline))
    second = build_version(ours, corpus, lambda *_: None, groups="").version.id
    releases.begin(second, 0.05, "a test", force=True, reason="only for a few")
    if turned_back:
        releases.roll_back("a test", "worse")
    after = admitted(ours, corpus)
    assert (after.stable, after.canary, after.share) == (first, second, 0.05)


def test_a_newer_version_takes_the_place_of_the_canary(corpus: Path, here: Path) -> None:
    ours = library(here)
    first = admitted(ours, corpus)
    rewrite(corpus)
    second = admitted(ours, corpus)
    (corpus / "gate.md").write_text("# The gate\n\nThe sea gate never closes.\n")
    third = admitted(ours, corpus)
    assert third.stable == first.stable
    assert third.canary not in (None, second.canary)
    ledger = make_registry(ours).ledger()
    assert [move.verb for move in ledger] == [Verb.PROMOTE, Verb.CANARY, Verb.ROLLBACK, Verb.CANARY]
    assert ledger[2].reason == f"makes way for {third.canary}"


@pytest.mark.parametrize("on_trial", [False, True])
def test_at_once_gives_a_version_that_passes_to_everybody(corpus: Path, here: Path, on_trial: bool) -> None:
    ours = library(here)
    first = admitted(ours, corpus)
    rewrite(corpus)
    if on_trial:
        admitted(ours, corpus)
    rollout = admitted(ours, corpus, at_once=True)
    assert (rollout.canary, rollout.previous) == (None, first.stable)
    assert rollout.stable != first.stable


def test_a_later_version_that_fails_leaves_people_what_they_have(corpus: Path, here: Path) -> None:
    ours = library(here)
    first = admitted(ours, corpus)
    for name in ("pump.txt", "crane.md"):
        (corpus / name).unlink()
    with pytest.raises(NotAdmitted, match=f"FAIL .*people keep getting {first.stable}, start it with tidegate serve"):
        admitted(ours, corpus)
    assert make_registry(ours).rollout() == first


def test_another_encoder_reaches_everybody_at_once_for_no_server_opens_both(
    corpus: Path, here: Path, capsys: Capture
) -> None:
    first = admitted(library(here), corpus)
    rollout = admitted(library(here, embedding__dimensions="128"), corpus)
    assert (rollout.canary, rollout.previous) == (None, first.stable)
    assert f"{first.stable} cannot be opened under these settings" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- what is offered


def test_the_questions_offered_are_about_what_is_served(corpus: Path, here: Path) -> None:
    admitted(library(here), corpus)
    assert example_question(library(here)) in {q.query for q in load(here / "asked.jsonl")}
    admitted(library(here, ""), corpus, "no questions this time")
    assert example_question(library(here)) == "What is this library about?"
