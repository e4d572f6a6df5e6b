"""What is told about two versions: both measured on the same questions, compared, cut to what may be shown.

Decides and records nothing; a decision is deciding.py. How it looks is eval/report.py and comparison_lines.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from domain.evaluation import Evaluation, shared
from tidegate.deciding import Tell, tell_failures
from tidegate.measuring import TIMED, Measured, binding, gate_list, measured_or_recalled
from tidegate.progress import Report as Progress

if TYPE_CHECKING:
    from domain.releases import IndexVersion, Verdict
    from eval.comparing import Comparison
    from eval.questions import Question
    from eval.report import Report
    from eval.report_tables import Fact, Failed
    from tidegate.settings import Settings


def compared(
    settings: "Settings",
    baseline: str,
    candidate: str,
    questions: Path | None,
    report: Progress,
    note: Tell,
    *,
    top: int,
    all_text: bool,
) -> "Report":
    """The report on `candidate` against `baseline`, with the `top` questions that changed most; the tracker is told.

    Raises NotFound for a version that is not there, StageFailed for one that can neither be measured under these
    settings nor was measured to the end under its own.
    """
    from tidegate.compose import make_registry
    from tidegate.evaluate import question_set
    from tidegate.tracking import prepare, track

    registry = make_registry(settings)
    for version in (baseline, candidate):
        registry.folder(version)
    asked = question_set(settings, questions)
    prepare(settings)
    before = measured_or_recalled(settings, baseline, asked, report, note)
    after = before if baseline == candidate else measured_or_recalled(settings, candidate, asked, report, note)
    for measured in (before,) if before is after else (before, after):
        tell_failures(measured, note)
    comparison = _comparison(settings, asked, before, after)
    found = _evaluation(settings, asked, before, after, comparison.verdicts)
    if before is not after:
        tracked = track(settings, found)
        if told := tracked.note or (tracked.run_id and f"tracked as run {tracked.run_id}"):
            note(told)
    built = {version.id: version for version in registry.versions()}
    facts = _facts(before, after, built[baseline], built[candidate])
    alone = _evaluation(settings, asked, None, before)
    return _report(settings, comparison, facts, (alone, found), (before, after), top=top, all_text=all_text)


def _comparison(settings: "Settings", asked: "Sequence[Question]", before: Measured, after: Measured) -> "Comparison":
    from eval.comparing import compare
    from eval.questions import slices

    chosen = settings.evaluation
    return compare(
        before.scorecard,
        after.scorecard,
        gate_list(settings),
        {question.id: slices(question) for question in asked},
        alpha=chosen.alpha,
        power=chosen.power,
        effect=chosen.effect,
        seed=chosen.seed,
        timed=TIMED,
    )


def _evaluation(
    settings: "Settings",
    asked: "Sequence[Question]",
    before: Measured | None,
    after: Measured,
    verdicts: "tuple[Verdict, ...]" = (),
) -> Evaluation:
    from tidegate.findings import evaluation

    bound = binding(settings, after.header.version, asked, before.header.version if before else None)
    # Not always these settings: of a version that they cannot open, what was measured under its own is told.
    return evaluation(settings, replace(bound, settings=after.header.settings), after, before, verdicts)


def _report(
    settings: "Settings",
    comparison: "Comparison",
    facts: "tuple[Fact, ...]",
    found: tuple[Evaluation, Evaluation],
    measured: tuple[Measured, Measured],
    *,
    top: int,
    all_text: bool,
) -> "Report":
    """What of all this may be shown. `found` and `measured` are the baseline's and the candidate's."""
    from eval.apart import apart, same_answer
    from eval.comparing import scrubbed
    from eval.report import Report
    from tidegate.compose import anonymous, make_naming

    naming, reader = make_naming(settings), anonymous(settings)
    clean, (was, now) = scrubbed(comparison, naming), (shared(one, reader, naming) for one in found)
    before, after = measured
    sides = {old.question.id: (old, new) for old, new in zip(before.observed, after.observed, strict=True)}
    texts = [apart(*sides[each.question], None if all_text else reader, naming) for each in comparison.changes[:top]]
    gated = [gate.metric for gate in gate_list(settings) if not gate.slice and now.metrics.get(gate.metric)]
    return Report(
        comparison=clean,
        facts=tuple(replace(fact, before=naming.scrub(fact.before), after=naming.scrub(fact.after)) for fact in facts),
        whole=_whole(settings, before, after),
        reworded=sum(not same_answer(*pair) for pair in sides.values()),
        shown=tuple(zip(clean.changes[:top], texts, strict=True)),
        failed=tuple(replace(each, question=naming.scrub(each.question)) for each in _failed(before, after)),
        metrics={metric: now.metrics[metric] for metric in gated},
        metrics_before={metric: was.metrics.get(metric, {}) for metric in gated},
        floors=now.floors,
        curves=now.curves,
        times_ms={m.header.version: [o.latency_ms for o in m.observed if o.latency_ms] for m in (after, before)},
        alpha=settings.evaluation.alpha,
        all_text=all_text,
    )


def _facts(before: Measured, after: Measured, was: "IndexVersion", now: "IndexVersion") -> "tuple[Fact, ...]":
    """What was compared: how either version was built, and what its evaluation is bound to."""
    from eval.report_tables import Fact

    return (
        Fact("Cut by", was.chunker, now.chunker),
        Fact("Encoder", was.embedder, now.embedder),
        Fact("Analyser", was.analyser, now.analyser),
        Fact("Documents", str(was.documents), str(now.documents)),
        Fact("Passages", str(was.chunks), str(now.chunks), marked=False),
        Fact("Built", was.built_at, now.built_at, marked=False),
        Fact("Question set", before.header.dataset, after.header.dataset),
        Fact("Settings", before.header.settings, after.header.settings),
        Fact("Code that answered", before.header.code, after.header.code),
        Fact("Measured", before.finished_at, after.finished_at, marked=False),
        Fact("Failed requests", str(sum(before.failures.values())), str(sum(after.failures.values()))),
    )


def _whole(settings: "Settings", before: Measured, after: Measured) -> "tuple[Fact, ...]":
    from eval.report_tables import Fact
    from tidegate.findings import summary

    old, new = (summary(settings, measured) for measured in (before, after))
    return tuple(Fact(name, _number(old[name]), _number(value), marked=False) for name, value in new.items())


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3g}"


def _failed(before: Measured, after: Measured) -> "list[Failed]":
    from eval.client import Failure
    from eval.report_tables import Failed

    found = []
    for old, new in zip(before.observed, after.observed, strict=True):
        codes = [o.response.code if isinstance(o.response, Failure) else "" for o in (old, new)]
        if any(codes):
            found.append(Failed(new.question.id, *codes))
    return found
