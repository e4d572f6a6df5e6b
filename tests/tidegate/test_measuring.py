"""Drawing questions, what a decision is bound to, and that measuring twice gives the same numbers."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from domain.errors import StageFailed
from domain.types import Scope
from eval.attack_suite import attacks
from eval.gates import digest
from eval.questions import Question, fingerprint, load
from tests.eval.replies import QUESTION
from tests.tidegate.small import small_library
from tidegate import code
from tidegate.effective import digest as settings_digest
from tidegate.evaluations import header, journal_path
from tidegate.measuring import ALWAYS, binding, draw, gate_list, local_client, measure
from tidegate.sample import make_sample, questions_path
from tidegate.settings import Settings

QUESTIONS = tuple(replace(QUESTION, id=f"q{i}") for i in range(50))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str]:
    """The small sample library; evaluations may be kept there, nothing is built."""
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
    assert bound.gates == digest(gate_list(settings))
    assert (bound.code, bound.baseline) == (code.measuring(), None)
    assert binding(settings, "v1", tuple(reversed(QUESTIONS))) == bound, "the order of the questions is no difference"


def test_each_part_of_a_binding_moves_alone() -> None:
    settings = Settings()
    bound = binding(settings, "v1", QUESTIONS)
    other_rerank = settings.model_copy(update={"rerank": settings.rerank.model_copy(update={"backend": "none"})})
    higher = settings.evaluation.model_copy(update={"gates": settings.evaluation.gates[1:]})
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


async def test_an_evaluation_says_what_it_is_of_and_has_every_value(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    questions, told = asked(settings), list[tuple[str, int, int]]()
    measured = await measure(settings, version, questions, lambda *step: told.append(step), fresh=True)
    suite = len(attacks())
    assert told == [
        *((f"evaluating {version}", done, len(questions)) for done in range(1, len(questions) + 1)),
        *(("trying attacks", done, suite) for done in range(1, suite + 1)),
    ]
    assert measured.header == header(settings, version, questions)
    assert (measured.scorecard.version, measured.scorecard.dataset) == (version, fingerprint(questions))
    assert set(measured.scorecard.values) == {*(gate.metric for gate in gate_list(settings)), *ALWAYS}
    assert set(measured.scorecard.values["success"].values()) == {1.0}
    assert all(o.latency_ms for o in measured.observed)
    assert (measured.failures, measured.kept) == ({}, 0)


async def test_what_was_measured_is_not_asked_again_until_somebody_wants_it_fresh(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    questions = asked(settings)
    first = await measure(settings, version, questions, silent, fresh=True)
    told = list[tuple[str, int, int]]()
    again = await measure(settings, version, questions, lambda *step: told.append(step))
    assert again == replace(first, kept=len(questions))
    assert told == []
    fresh = await measure(settings, version, questions, silent, fresh=True)
    assert (fresh.kept, fresh.scorecard) == (0, first.scorecard)
    assert fresh.finished_at > first.finished_at


async def test_another_question_set_setting_or_version_is_another_evaluation(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    questions = asked(settings)
    other = settings.model_copy(update={"answering": settings.answering.model_copy(update={"k": 5})})
    headers = [
        header(settings, version, questions),
        header(settings, version, questions[1:]),
        header(other, version, questions),
        header(settings, "v000000000000", questions),
        header(settings, version, questions, "http://127.0.0.1:8000"),
    ]
    assert len({journal_path(settings, of) for of in headers}) == 5
    await measure(settings, version, questions, silent)
    assert (await measure(other, version, questions, silent, fresh=True)).kept == 0


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
    """The whole of a scorecard as bytes, every question asked now."""
    return json.dumps(
        asdict((await measure(settings, version, asked(settings), silent, fresh=True)).scorecard)
    ).encode()


async def test_a_version_that_is_not_there_is_not_measured_and_nothing_is_kept_of_it(
    sample: tuple[Settings, str],
) -> None:
    settings, _ = sample
    for _ in range(2):
        with pytest.raises(StageFailed, match="All 40 questions failed, the first with not_found"):
            await measure(settings, "v000000000000", asked(settings), silent)


async def test_failed_requests_are_counted_by_their_code_and_stay_as_they_were(sample: tuple[Settings, str]) -> None:
    settings, version = sample
    whole = asked(settings)
    long = replace(whole[0], id="long", query="why " * 2000)
    measured = await measure(settings, version, (*whole, long), silent)
    assert measured.failures == {"too_long": 1}
    assert measured.scorecard.values["success"]["long"] == 0
    assert await measure(settings, version, (*whole, long), silent) == replace(measured, kept=41)


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
