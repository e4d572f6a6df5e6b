"""A version against what people get now: both measured, every gate judged, the decision recorded.

The one place where measuring becomes a decision; `gate` and `up` come through here. A decision is recorded whatever it
says, also when nothing could be measured: whoever asks later must not read silence as consent.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from domain.errors import StageFailed
from domain.releases import Binding, Decision, Outcome, Verdict
from domain.releasing import stamp, utc_now
from domain.rollout import against
from tidegate.measuring import Measured, binding, gate_list, measure, measured_or_recalled
from tidegate.progress import Report

if TYPE_CHECKING:
    from eval.planning import Detectable
    from eval.questions import Question
    from tidegate.settings import Settings

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compared:
    """A version and what people get now, measured on the same questions under the same settings.

    `baseline` is None for a first version. `detectable` says what these questions can tell apart, gate by gate.
    """

    candidate: Measured
    baseline: Measured | None
    detectable: "tuple[Detectable, ...]"


def gate(
    settings: "Settings", version: str, questions: "Sequence[Question]", report: Report, *, tell: Tell, note: Tell
) -> tuple[Decision, Compared | None]:
    """The decision about `version`, recorded, and the comparison it rests on; None when it could not be measured.

    What the questions can detect is told before anything is judged, so that nobody reads it in the light of the
    outcome; notes are about what went otherwise than wished. Nothing that was measured before is asked again. Raises
    StorageError when the version's folder is not what its name says.
    """
    from tidegate.compose import make_registry
    from tidegate.judging import bound as with_judge
    from tidegate.judging import check_gating
    from tidegate.tracking import follow, prepare

    check_gating(settings)
    prepare(settings)
    registry = make_registry(settings)
    registry.verify(version)  # replies that are kept may be those of a folder that was whole
    bound = with_judge(settings, binding(settings, version, questions, against(registry.rollout(), version)))
    try:
        compared = compare(settings, bound, questions, report, note)
    except StageFailed as error:  # neither good nor bad: there is no number
        decision = _decided(bound, (Verdict("evaluation", Outcome.ERROR, str(error)),))
        registry.record(decision)
        return decision, None
    for measured in (compared.candidate, compared.baseline):
        tell_failures(measured, note)
    for line in compared.detectable:
        tell(str(line))
    decision = judged(settings, bound, compared, note, report)
    registry.record(decision)
    follow(settings)
    return decision, compared


def compare(
    settings: "Settings", bound: Binding, questions: "Sequence[Question]", report: Report, note: Tell
) -> Compared:
    """What a decision bound to this rests on. Raises StageFailed when either of the two versions cannot be measured."""
    from eval.planning import detectable
    from eval.questions import slices

    candidate = asyncio.run(measure(settings, bound.version, questions, report))
    baseline = None
    if (stable := bound.baseline) is not None:
        baseline = measured_or_recalled(settings, stable, questions, report, note, f"What people get now, {stable},")
    chosen = settings.evaluation
    lines = detectable(
        candidate.scorecard,
        baseline.scorecard if baseline else None,
        gate_list(settings),
        {question.id: slices(question) for question in questions},
        alpha=chosen.alpha,
        power=chosen.power,
        effect=chosen.effect,
    )
    return Compared(candidate, baseline, lines)


def judged(
    settings: "Settings", bound: Binding, compared: Compared, note: Tell, report: Report = lambda *_: None
) -> Decision:
    """The decision on a comparison, told to the tracker. Records nothing. The judge has its say where it gates."""
    from eval.judging import METRIC
    from eval.questions import slices
    from eval.verdicts import judge
    from tidegate.findings import evaluation
    from tidegate.judging import judge_gates
    from tidegate.tracking import track, untracked

    chosen = settings.evaluation
    failed: tuple[Verdict, ...] = ()
    try:
        compared = with_grades(settings, compared, report)
    except StageFailed as error:  # the gate of the judge has nothing to look at; the others have
        failed = (Verdict(METRIC, Outcome.ERROR, f"not measured: {error}"),)
    verdicts = judge(
        compared.candidate.scorecard,
        compared.baseline.scorecard if compared.baseline else None,
        (*gate_list(settings), *(() if failed else judge_gates(settings))),
        {o.question.id: slices(o.question) for o in compared.candidate.observed},
        alpha=chosen.alpha,
        seed=chosen.seed,
    )
    verdicts = (*verdicts, *failed)
    tracked = track(settings, evaluation(settings, bound, compared.candidate, compared.baseline, verdicts))
    if tracked.note:
        note(tracked.note)
    if missing := untracked(settings, tracked.run_id):
        verdicts = (*verdicts, Verdict("tracking", Outcome.ERROR, missing))
    return _decided(bound, verdicts, tracked.run_id)


def with_grades(settings: "Settings", compared: Compared, report: Report) -> Compared:
    """Both versions with the judge's grades as one more metric; unchanged where the judge decides nothing."""
    from tidegate.judging import graded

    if not settings.judge.gates:
        return compared

    def by_judge(measured: Measured) -> Measured:
        return replace(measured, scorecard=graded(settings, measured.scorecard, measured.observed, report))

    baseline = by_judge(compared.baseline) if compared.baseline else None
    return replace(compared, candidate=by_judge(compared.candidate), baseline=baseline)


def tell_failures(measured: Measured | None, note: Tell) -> None:
    """Note how many requests of an evaluation failed, and the way to ask them again."""
    if measured and measured.failures:
        counts = ", ".join(f"{n} {code}" for code, n in measured.failures.items())
        name = measured.header.version or measured.header.url
        note(
            f"{sum(measured.failures.values())} of {len(measured.observed)} requests to {name} failed and score zero: "
            f"{counts}; once the cause is mended, ask again with tidegate evaluate {name} --fresh"
        )


def _decided(bound: Binding, verdicts: tuple[Verdict, ...], run_id: str = "") -> Decision:
    return Decision(bound, verdicts, run_id, stamp(utc_now()))
