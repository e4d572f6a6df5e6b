"""What a decision must be bound to: the question set before a canary begins, and what it began on afterwards."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from domain.errors import NotAdmitted
from domain.releases import Binding, Decision, IndexVersion, Outcome, Verdict
from domain.releasing import Releases
from eval.questions import fingerprint, load
from tests.fakes import MemoryRegistry
from tests.tidegate.tiny import settings
from tidegate import code, server
from tidegate.bound import check_server, served_by
from tidegate.effective import digest
from tidegate.server import Server
from tidegate.settings import Settings

V1, V2 = (f"v{i:012x}" for i in (1, 2))
QUESTION = {
    "id": "q1", "query": "Which oil?", "answer": "ISO 46", "type": "inference", "slice": "frozen", "hops": 1,
    "evidence": [{"doc_id": "pump.txt", "text": "oil of grade ISO 46"}],
    "persona": "public", "tenant": "harbour", "groups": ["public"],
}  # fmt: skip


@pytest.fixture
def ours(here: Path) -> Settings:
    """Settings over a data folder without a question set."""
    (here / "data").mkdir()
    return settings(here / "data")


@pytest.fixture
def questions(here: Path) -> Path:
    path = here / "questions.jsonl"
    path.write_text(json.dumps(QUESTION) + "\n")
    return path


def with_canary(tmp_path: Path, bound: Binding) -> MemoryRegistry:
    """V2 is the canary beside V1, on a decision bound like this."""
    registry = MemoryRegistry()
    for id in (V1, V2):
        registry.publish(tmp_path, IndexVersion(id, None, "", "", "", 1, 1, ""))
        decided = replace(bound, version=id, baseline=V1 if id == V2 else None)
        registry.record(Decision(decided, (Verdict("recall@6", Outcome.PASS, ""),), "r", ""))
    releases = Releases(registry, lambda version, baseline: replace(bound, version=version, baseline=baseline))
    releases.promote(V1, "a test")
    releases.begin(V2, 0.1, "a test")
    releases.widen(0.2, "a test")
    return registry


def test_a_version_is_bound_to_the_questions_that_are_named(ours: Settings, questions: Path) -> None:
    bound = served_by(ours, MemoryRegistry(), questions)(V2, V1)
    assert (bound.version, bound.baseline, bound.dataset) == (V2, V1, fingerprint(load(questions)))
    assert (bound.settings, bound.code) == (digest(ours), code.measuring())


def test_questions_of_the_settings_are_taken_when_none_are_named(here: Path, questions: Path) -> None:
    own = settings(here / "data", evaluation__question_set=str(questions))
    assert served_by(own, MemoryRegistry())(V2, V1) == served_by(own, MemoryRegistry(), questions)(V2, V1)


def test_without_any_question_set_a_version_is_bound_to_none(ours: Settings) -> None:
    assert served_by(ours, MemoryRegistry())(V2, V1).dataset == fingerprint(())


def test_a_canary_stays_bound_to_the_questions_and_gates_it_began_on(ours: Settings, tmp_path: Path) -> None:
    registry = with_canary(tmp_path, Binding("", "their questions", "then", "their gates", "then"))
    bound = served_by(ours, registry)(V2, V1)
    assert (bound.dataset, bound.gates) == ("their questions", "their gates")
    assert (bound.settings, bound.code, bound.baseline) == (digest(ours), code.measuring(), V1)


def test_questions_that_are_named_count_for_a_canary_too(ours: Settings, questions: Path, tmp_path: Path) -> None:
    registry = with_canary(tmp_path, Binding("", "their questions", "then", "their gates", "then"))
    assert served_by(ours, registry, questions)(V2, V1).dataset == fingerprint(load(questions))


def test_a_version_that_was_a_canary_once_is_bound_like_any_other(ours: Settings, tmp_path: Path) -> None:
    registry = with_canary(tmp_path, Binding("", "their questions", "then", "their gates", "then"))
    Releases(registry, served_by(ours, registry)).roll_back("a test", "")
    assert served_by(ours, registry)(V2, V1).dataset == fingerprint(())


# ---------------------------------------------------------------------------------------------- the running server


def serving(ours: Settings, **digests: str) -> Server:
    """This process, written down as the server of the folder."""
    there = replace(Server.of(os.getpid(), "http://127.0.0.1:8123"), **digests)
    server.record_path(ours).write_text(json.dumps(asdict(there)))
    return there


def test_without_a_server_nothing_stands_against_a_move(ours: Settings) -> None:
    check_server(ours)


def test_a_server_records_what_it_answers_with(ours: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(server.MARK, "")
    server.record(ours, "http://127.0.0.1:8123")
    there = server.running(ours)
    assert there is not None
    assert (there.settings, there.code) == (digest(ours), code.measuring())
    check_server(ours)


@pytest.mark.parametrize("differs", ["settings", "code"])
def test_a_server_with_other_settings_or_code_is_told_apart_with_both_digests(ours: Settings, differs: str) -> None:
    same = {"settings": digest(ours), "code": code.measuring()}
    serving(ours, **{**same, differs: "another"})
    with pytest.raises(NotAdmitted) as caught:
        check_server(ours)
    assert f"has {differs} another, and this command {same[differs]}: " in str(caught.value)
    assert "tidegate down" in str(caught.value)


def test_a_server_that_did_not_say_what_it_answers_with_is_not_taken_for_the_same(ours: Settings) -> None:
    there = serving(ours)
    told = {key: value for key, value in asdict(there).items() if key not in ("settings", "code")}
    server.record_path(ours).write_text(json.dumps(told))
    with pytest.raises(NotAdmitted, match="settings unknown"):
        check_server(ours)
