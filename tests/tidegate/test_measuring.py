"""Drawing questions, what a decision is bound to, and that measuring twice gives the same numbers."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from domain.errors import StageFailed
from domain.releases import Outcome
from domain.types import Scope
from eval.gates import digest, floors
from eval.questions import Question, fingerprint, load
from tests.eval.replies import QUESTION
from tests.tidegate.small import small_library
from tidegate import code
from tidegate.compose import make_registry
from tidegate.effective import digest as settings_digest
from tidegate.measuring import ALWAYS, Measured, binding, decide, draw, local_client, measure
from tidegate.sample import make_sample, questions_path
from tidegate.settings import Settings

QUESTIONS = tuple(replace(QUESTION, id=f"q{i}") for i in range(50))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str]:
    """The small sample library; decisions may be recorded there, nothing is built."""
    return small_library(tmp_path_factory.mktemp("sample"))


def silent(*_: object) -> None:
    """A report to nobody."""


def asked(settings: Settings) -> tuple[Question, ...]:
    return draw(load(questions_path(settings)), settings.evaluation.questions, settings.evaluation.seed)


# ---------------------------------------------------------------------------------------------- drawing


def test_a_draw_repeats_exactly_keeps_the_order_and_has_nobody_twice() -> None:
    for seed in range(20):
        drawn = draw(QUESTIONS, 12, seed)
        assert drawn == draw(QUESTIONS, 12, seed)
        places = [QUESTIONS.index(question) for question in drawn]
        assert len(set(places)) == 12
        assert places == sorted(places)
    assert len({draw(QUESTIONS, 12, seed) for seed in range(20)}) == 20


def test_a_draw_of_as_many_as_there_are_takes_all() -> None:
    assert draw(QUESTIONS, 50, 1) == draw(QUESTIONS, 51, 2) == QUESTIONS
    assert draw((), 5, 1) == ()


# ---------------------------------------------------------------------------------------------- binding


def test_a_binding_says_what_was_measured_on_what_under_which_settings_and_gates() -> None:
    settings = Settings()
    bound = binding(settings, "v1", QUESTIONS)
    assert (bound.version, bound.dataset) == ("v1", fingerprint(QUESTIONS))
    assert bound.settings == settings_digest(settings)
    assert bound.gates == digest(floors(settings.evaluation.floors))
    assert (bound.code, bound.baseline) == (code.measuring(), None)
    assert binding(settings, "v1", tuple(reversed(QUESTIONS))) == bound, "the order of the questions is no difference"


def test_each_part_of_a_binding_moves_alone() -> None:
    settings = Settings()
    bound = binding(settings, "v1", QUESTIONS)
    other_rerank = settings.model_copy(update={"rerank": settings.rerank.model_copy(update={"backend": "none"})})
    higher = settings.evaluation.model_copy(update={"floors": settings.evaluation.floors | {"recall@6": 0.71}})
    for changed, part in (
        (binding(settings, "v2", QUESTIONS), "version"),
        (binding(settings, "v1", QUESTIONS[1:]), "dataset"),
        (binding(settings, "v1", QUESTIONS, "v0"), "baseline"),
        (binding(other_rerank, "v1", QUESTIONS), "settings"),
        (binding(settings.model_copy(update={"evaluation": higher}), "v1", QUESTIONS), "gates"),
    ):
        moved = {name for name, value in asdict(changed).items() if value != asdict(bound)[name]}
        assert moved == {part}


# ---------------------------------------------------------------------------------------------- measuring


async def test_a_decision_is_recorded_and_bound_to_what_was_measured(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    questions, told = asked(settings), list[tuple[str, int, int]]()
    decided = await decide(settings, version, questions, lambda *step: told.append(step))
    assert make_registry(settings).decisions(version)[-1] == decided.decision
    assert decided.decision.binding == binding(settings, version, questions)
    assert decided.decision.verdicts == decided.measured.verdicts
    assert [verdict.gate for verdict in decided.decision.verdicts] == sorted(settings.evaluation.floors)
    assert told == [("evaluating", done, len(questions)) for done in range(1, len(questions) + 1)]
    scorecard = decided.measured.scorecard
    assert (scorecard.version, scorecard.dataset) == (version, fingerprint(questions))
    assert set(scorecard.values) == {*settings.evaluation.floors, *ALWAYS}
    assert set(scorecard.values["success"].values()) == {1.0}
    assert decided.measured.failures == {}


async def test_two_builds_and_two_evaluations_of_the_same_input_give_the_same_bytes(
    sample: tuple[Settings, str], tmp_path: Path
) -> None:
    settings, version = sample
    again, rebuilt = small_library(tmp_path)
    assert rebuilt == version
    assert questions_path(again).read_bytes() == questions_path(settings).read_bytes()
    assert await ids(again, version) == await ids(settings, version)
    numbers = [await numbers_of(each, version) for each in (settings, settings, again)]
    assert numbers[0] == numbers[1] == numbers[2]
    assert b'"recall@6"' in numbers[0]


async def ids(settings: Settings, version: str) -> list[tuple[str, float]]:
    """Chunk ids and scores of a search, in order."""
    async with await local_client(settings, version) as client:
        found = await client.search("Which service raises the error?", 50, Scope("harbour", PUBLIC), rerank=False)
    assert isinstance(found, dict)
    assert found["hits"]
    return [(hit["chunk_id"], hit["score"]) for hit in found["hits"]]


PUBLIC = frozenset({"public"})


async def numbers_of(settings: Settings, version: str) -> bytes:
    """The whole of an evaluation as bytes."""
    measured: Measured = await measure(settings, asked(settings), silent, await local_client(settings, version))
    return json.dumps([asdict(measured.scorecard), [asdict(v) for v in measured.verdicts]]).encode()


async def test_a_version_that_is_not_there_is_not_measured(sample: tuple[Settings, str]) -> None:
    settings, _ = sample
    with pytest.raises(StageFailed, match="All 40 questions failed, the first with not_found"):
        await measure(settings, asked(settings), silent, await local_client(settings, "v000000000000"))


async def test_failed_requests_are_counted_by_their_code(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    whole = asked(settings)
    long = replace(whole[0], id="long", query="why " * 2000)
    measured = await measure(settings, (*whole, long), silent, await local_client(settings, version))
    assert measured.failures == {"too_long": 1}
    assert measured.scorecard.values["success"]["long"] == 0


async def test_a_floor_nobody_is_eligible_for_is_no_pass(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    nulls = tuple(question for question in load(questions_path(settings)) if question.type == "null")
    decided = await decide(settings, version, nulls, silent)
    assert {v.gate: v.outcome for v in decided.decision.verdicts}["recall@6"] is Outcome.ERROR
    assert decided.decision.outcome >= Outcome.ERROR


# ---------------------------------------------------------------------------------------------- the sample library


def test_the_sample_library_is_written_once_and_again_when_a_part_is_gone(tmp_path: Path) -> None:
    settings, _ = small_library(tmp_path)
    questions = questions_path(settings)
    first, written = questions.read_bytes(), questions.stat().st_mtime_ns
    make_sample(settings)
    assert questions.stat().st_mtime_ns == written
    questions.unlink()
    make_sample(settings)
    assert questions.read_bytes() == first
