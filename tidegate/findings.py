"""What an evaluation found, as it is printed and written down: means, intervals, slices, differences, every question.

Nothing is measured or decided here; the same measurements give the same findings.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from domain.evaluation import ALL, Difference, Estimate, Evaluation, Row
from domain.releases import Binding, Scorecard, Verdict
from tidegate.effective import leaves, shown
from tidegate.measuring import Measured, gate_list

if TYPE_CHECKING:
    from eval.observed import Observed
    from tidegate.settings import Settings

Values = Mapping[str, float | None]  # question id -> value; None is not eligible


def evaluation(
    settings: "Settings",
    bound: Binding,
    candidate: Measured,
    baseline: Measured | None = None,
    verdicts: tuple[Verdict, ...] = (),
) -> Evaluation:
    """The whole of an evaluation; with a baseline, the differences between the two as well."""
    from eval.attacking import groups
    from eval.questions import slices

    gates = gate_list(settings)
    parts = groups() | {o.question.id: slices(o.question) for o in candidate.observed}
    both = [candidate, *([baseline] if baseline else [])]
    return Evaluation(
        binding=bound,
        measured_at=max(measured.finished_at for measured in both),
        metrics={metric: _by_slice(values, parts, settings) for metric, values in candidate.scorecard.values.items()},
        rows=tuple(_row(o, candidate.scorecard, parts[o.question.id]) for o in candidate.observed),
        verdicts=verdicts,
        differences=_differences(settings, candidate, baseline) if baseline else (),
        curves={measured.scorecard.version: _curve(measured, settings) for measured in both},
        floors={gate.metric: gate.floor for gate in gates if gate.floor is not None and not gate.slice},
        parameters=_parameters(settings, candidate),
        totals={name: value for name, value in summary(settings, candidate).items() if value is not None},
    )


def summary(settings: "Settings", measured: Measured) -> dict[str, float | None]:
    """What is said of a whole set and of no single question; None is not measured.

    `over_refusal` is the share of the answerable questions that were declined, `cost_usd` the mean of an answer: not
    measured where no price is set, which is not the same as free. `cache_read_share` is how much of all prompts came
    from the vendor's cache. `relevance_error` is the expected calibration error
    of the chances that answers bear: not measured where answering.calibration names none. `attack_success` is the
    share of `attacks` that reached the reader: not measured where none was tried.
    """
    from domain.costs import prompt_tokens
    from eval.abstention import abstention_f1
    from eval.attacking import success_rate
    from eval.metrics import cost_usd, used

    kept = _eligible(measured.scorecard.values["no_over_refusal"])
    costs = [cost for o in measured.observed if (cost := cost_usd(o)) is not None]
    told = [usage for o in measured.observed if (usage := used(o)) is not None and usage.measured]
    sent = sum(map(prompt_tokens, told))
    success, tried = success_rate(measured.scorecard)
    return {
        "abstention_f1": abstention_f1(measured.scorecard),
        "over_refusal": 1 - fmean(kept) if kept else None,
        "cost_usd": fmean(costs) if costs else None,
        "cost_usd_per_1000": 1000 * fmean(costs) if costs else None,
        "cache_read_share": sum(usage.cache_read_tokens for usage in told) / sent if sent else None,
        "relevance_error": _relevance_error(measured.observed, settings.evaluation.seed),
        "attack_success": success,
        "attacks": tried or None,
    }


def _relevance_error(observed: "Sequence[Observed]", seed: int) -> float | None:
    """How far the chances that the best passage holds evidence are from how often it did; None without a chance."""
    import numpy as np

    from eval.calibrating import Scored, calibration_error
    from eval.ranking import contains

    seen = [(o.relevance, o.passages("consulted")[0], o.question.evidence) for o in observed if o.relevance is not None]
    if not seen:
        return None
    chances = np.array([chance for chance, _, _ in seen])
    held = np.array([float(any(contains(passage, anchor) for anchor in gold)) for _, passage, gold in seen])
    return calibration_error(chances, Scored(chances, held, np.arange(len(seen))), seed).value


def _by_slice(values: Values, parts: Mapping[str, Mapping[str, str]], settings: "Settings") -> dict[str, Estimate]:
    """The estimate over all questions, and over every slice somebody in it is eligible for."""
    members: dict[str, list[str]] = {ALL: list(values)}
    for question_id in values:
        for dimension, value in parts[question_id].items():
            members.setdefault(f"{dimension}={value}", []).append(question_id)
    eligible = {name: _eligible({i: values[i] for i in ids}) for name, ids in sorted(members.items())}
    return {name: _estimate(found, settings) for name, found in eligible.items() if found}


def _differences(settings: "Settings", candidate: Measured, baseline: Measured) -> tuple[Difference, ...]:
    """Per metric, candidate less baseline over the questions that are eligible in both."""
    drops = {gate.metric: gate.max_drop for gate in gate_list(settings) if not gate.slice}
    found = []
    for metric, values in candidate.scorecard.values.items():
        before = baseline.scorecard.values.get(metric, {})  # attacks were perhaps tried on one of the two alone
        pairs = [(v, before[i]) for i, v in values.items() if i in before]
        differences = [new - old for new, old in pairs if new is not None and old is not None]
        if differences:
            found.append(Difference(metric, ALL, _estimate(differences, settings, least=-1.0), drops.get(metric)))
    return tuple(found)


def _curve(measured: Measured, settings: "Settings") -> dict[int, Estimate]:
    """Recall by cutoff, up to as many passages as an answer consults."""
    from eval.ranking import recall

    curve = {k: [recall(o, k) for o in measured.observed] for k in range(1, settings.answering.k + 1)}
    eligible = {k: [value for value in values if value is not None] for k, values in curve.items()}
    return {k: _estimate(values, settings) for k, values in eligible.items() if values}


def _estimate(values: Sequence[float], settings: "Settings", least: float = 0.0) -> Estimate:
    """The mean of values between `least` and 1, and bounds that it is beyond with a chance of alpha each."""
    from eval.intervals import Sample, interval

    low, high = interval(Sample.of(values, least, 1.0), settings.evaluation.alpha, settings.evaluation.seed)
    return Estimate(fmean(values), low, high, len(values))


def _row(observed: "Observed", scorecard: Scorecard, parts: Mapping[str, str]) -> Row:
    from eval.client import Failure

    question, response = observed.question, observed.response
    return Row(
        question=question.id,
        tenant=question.tenant,
        groups=question.groups,
        slices=parts,
        values={metric: values[question.id] for metric, values in scorecard.values.items() if question.id in values},
        latency_ms=observed.latency_ms,
        failure=response.code if isinstance(response, Failure) else "",
        query=question.query,
        answer=observed.text,
    )


def _parameters(settings: "Settings", measured: Measured) -> dict[str, str]:
    """The settings as they were, masked, with how many questions there were and how many failed."""
    told = {path: str(shown(path, value)) for path, value in leaves(settings)}
    counts = {"questions": len(measured.observed), "failed": sum(measured.failures.values())}
    return {**told, **{name: str(n) for name, n in counts.items()}}


def _eligible(values: Values) -> list[float]:
    return [value for value in values.values() if value is not None]
