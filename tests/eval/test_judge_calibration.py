"""What a judge is worth: the rule passes, and every way of being a bad judge is found out by its own figure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from domain.judging import Grade, Judgement, Submission
from eval.factgraph import generate
from eval.judge_calibration import FEWEST_PAIRS, LEAST, Record, calibrate
from eval.judge_cases import Case, cases, digest, written
from eval.rubric import load
from eval.rules_judge import RulesJudge
from generation.ungrounded import UngroundedGenerator

RUBRIC = load()


@dataclass(frozen=True)
class Bench:
    """Cases, the answers that nobody should accept, and what is true of every submission."""

    cases: tuple[Case, ...]
    ungrounded: Mapping[str, Submission]

    async def of(self, judge: "Fallible | RulesJudge") -> Record:
        return await calibrate(judge, RUBRIC, self.cases, digest(self.cases), self.ungrounded)


@pytest.fixture(scope="module")
def library_cases() -> tuple[Case, ...]:
    return cases(generate(7, 100, 440), 80)


@pytest.fixture
async def bench(library_cases: tuple[Case, ...]) -> Bench:
    return Bench(library_cases, await written(UngroundedGenerator(), library_cases))


class Fallible:
    """A judge that knows the truth and errs in one way."""

    name, rubric, families = "fallible", RUBRIC.tag, frozenset({"qwen"})

    def __init__(self, bench: Bench, way: str) -> None:
        self._way, self._asked = way, dict[Submission, int]()
        self._truth = {s: case.grade for case in bench.cases for s in (case.submission, case.turned, case.longer)}
        self._longer = {case.longer for case in bench.cases}
        self._turned = {case.turned for case in bench.cases} - {case.submission for case in bench.cases}

    async def judge(self, submission: Submission) -> Judgement:
        grade = self._truth.get(submission, Grade.UNGROUNDED)
        turn = self._asked[submission] = self._asked.get(submission, 0) + 1
        number = hash_of(submission)
        if self._way == "always passes":
            grade = Grade.RIGHT
        if self._way == "likes length" and submission in self._longer:
            grade = Grade.RIGHT
        if self._way == "likes the other order" and submission in self._turned:
            grade = Grade.RIGHT
        if self._way == "moody" and turn > 1 and number % 5 == 0:
            grade = Grade.WRONG if grade is not Grade.WRONG else Grade.RIGHT
        if self._way == "believes anything" and submission not in self._truth:
            grade = Grade.RIGHT
        if self._way == "mumbles" and number % 3 == 0:
            return Judgement(None, "not judged: mumbled")
        return Judgement(grade, "so")


def hash_of(submission: Submission) -> int:
    return sum(map(ord, submission.answer))


@pytest.mark.slow
async def test_the_rules_pass_and_a_judge_that_knows_the_truth_passes(bench: Bench) -> None:
    assert (await bench.of(RulesJudge("code", RUBRIC.tag))).problems == ()
    assert (await bench.of(Fallible(bench, "never errs"))).problems == ()


@pytest.mark.parametrize(
    ("way", "found_by"),
    [
        ("always passes", "kappa"),
        ("always passes", "caught"),
        ("likes length", "verbosity"),
        ("likes the other order", "position"),
        ("moody", "retest"),
        ("believes anything", "caught"),
        ("mumbles", "kappa"),
        ("mumbles", "retest"),
    ],
)
async def test_every_way_to_be_a_bad_judge_is_found_out(bench: Bench, way: str, found_by: str) -> None:
    record = await bench.of(Fallible(bench, way))
    assert any(problem.startswith(f"{found_by} ") for problem in record.problems), record.problems


async def test_a_judge_that_always_passes_has_a_kappa_of_nothing(bench: Bench) -> None:
    assert (await bench.of(Fallible(bench, "always passes"))).figures["kappa"].value == pytest.approx(0, abs=1e-12)


async def test_what_was_asked_too_little_is_not_shown(bench: Bench) -> None:
    few = Bench(bench.cases[:20], dict(list(bench.ungrounded.items())[:20]))
    problems = (await few.of(Fallible(few, "never errs"))).problems
    for name in ("retest", "caught", "position", "verbosity"):
        assert any(problem.startswith(f"{name} ") for problem in problems), (name, problems)


async def test_a_figure_that_is_missing_is_not_measured_and_never_passed(bench: Bench) -> None:
    record = await bench.of(Fallible(bench, "never errs"))
    for name in record.figures:
        without = replace(record, figures={k: v for k, v in record.figures.items() if k != name})
        assert without.problems == (next(p for p in without.problems if p.startswith(f"{name} not measured")),)


def test_the_bars_are_those_that_were_asked_for() -> None:
    assert LEAST == {"kappa": 0.8, "retest": 0.95, "caught": 0.98}
    assert FEWEST_PAIRS >= 100


# ---------------------------------------------------------------------------------------------- the cases


def test_equal_libraries_give_equal_cases_and_another_seed_others(library_cases: tuple[Case, ...]) -> None:
    library = generate(7, 100, 440)
    assert digest(cases(library, 80)) == digest(library_cases)
    assert digest(cases(library, 80, seed=8)) != digest(library_cases)


def test_every_grade_is_there_often(library_cases: tuple[Case, ...]) -> None:
    for grade in Grade:
        assert sum(case.grade is grade for case in library_cases) >= 50


def test_turned_round_nothing_is_added_and_longer_nothing_is_lost(library_cases: tuple[Case, ...]) -> None:
    for case in library_cases:
        assert case.turned != case.submission
        assert sorted(p.quote for p in case.turned.passages) == sorted(p.quote for p in case.submission.passages)
        assert {p.quote for p in case.submission.passages} <= {p.quote for p in case.longer.passages}
        assert len(case.longer.answer) > len(case.submission.answer)
