"""What a gate list says about a candidate: one verdict per bound of every gate, and one per metric about slices.

A drop is judged on paired differences, question by question. It PASSes when its interval lies above -max_drop, and
FAILs when the interval lies below 0 *and* the mean that was seen is at or below -max_drop; anything else is
INCONCLUSIVE. The interval always holds the mean, so a mean at or below -max_drop cannot PASS and a mean above it
cannot FAIL: for the same difference more questions settle an open verdict and never turn one into the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from domain.releases import Outcome, Scorecard, Verdict
from eval.gates import CLOSED, Gate
from eval.intervals import Sample, interval
from eval.pairing import Pairs, Slices, pair
from eval.planning import to_settle
from eval.slicing import Watched, chances, cut, watched


def judge(
    candidate: Scorecard,
    baseline: Scorecard | None,
    gates: Sequence[Gate],
    slices: Slices,
    *,
    alpha: float,
    seed: int,
) -> tuple[Verdict, ...]:
    """One verdict per bound of every gate, in the order of the gates, and last what the slices say.

    `alpha` is the chance of a wrong bound, per gate, and of any false alarm over all slices together. `seed` is that
    of resampling: the same input gives the same verdicts. Without a baseline nothing can have dropped, and only floors
    bind.
    """
    family = _family(candidate, baseline, gates, slices, seed)
    verdicts: list[Verdict] = []
    for gate in gates:
        pairs = pair(candidate, baseline, gate, slices)
        if gate.floor is not None:
            verdicts.append(_about(gate, "floor", *_floor(pairs, gate, gate.floor, alpha, seed)))
        if gate.max_drop is not None and baseline is None:
            verdicts.append(Verdict(f"{gate.label} max_drop", Outcome.INCONCLUSIVE, NO_BASELINE, advisory=True))
        elif gate.max_drop is not None and baseline is not None:
            outcome, reason = _drop(pairs, gate, gate.max_drop, alpha, seed)
            if baseline.dataset != candidate.dataset:
                outcome, reason = Outcome.ERROR, _other_questions(candidate, baseline)
            if outcome is Outcome.FAIL and gate.label in family and family[gate.label].chance > WATCH * alpha:
                outcome, reason = Outcome.INCONCLUSIVE, f"{reason}; {_by_luck(family, gate.label)}"
            verdicts.append(_about(gate, "max_drop", outcome, reason))
    return (*verdicts, *_watched(family, gates, alpha))


NO_BASELINE = "no baseline: nobody is served yet, so there is nothing it could have dropped from"


def _about(gate: Gate, bound: str, outcome: Outcome, reason: str) -> Verdict:
    return Verdict(f"{gate.label} {bound}", outcome, reason, gate.advisory)


# ---------------------------------------------------------------------------------------------- floors


def _floor(pairs: Pairs, gate: Gate, floor: float, alpha: float, seed: int) -> tuple[Outcome, str]:
    if not pairs.candidate:
        return Outcome.ERROR, _unmeasured(pairs, gate)
    sample = Sample.of(list(pairs.candidate.values()), 0.0, 1.0)
    mean = sample.mean
    if not 0.0 <= mean <= 1.0:  # also NaN: every comparison with it is false
        return Outcome.ERROR, f"not measured: the mean is {mean}, and a metric is in 0..1"
    low, high = interval(sample, alpha, seed)
    seen = f"{mean:.4f} [{low:.4f}, {high:.4f}] over {_counted(sample.n, gate)}, floor {floor:.4f}"
    if sample.n < gate.min_items:
        return Outcome.INCONCLUSIVE, f"{seen}; {_too_few(gate)}"
    if mean < floor - TIE:
        return Outcome.FAIL, seen
    if low >= floor - TIE or gate.metric in CLOSED:
        return Outcome.PASS, seen
    return Outcome.INCONCLUSIVE, f"{seen}; {_settled(to_settle(mean - floor, sample.sd, mean, alpha), pairs)}"


TIE = 1e-9  # sums of floats that are equal on paper are equal


# ---------------------------------------------------------------------------------------------- drops


def _drop(pairs: Pairs, gate: Gate, max_drop: float, alpha: float, seed: int) -> tuple[Outcome, str]:
    if pairs.missing:
        asked = f"{_questions(pairs.missing)} only in one of the two measurements"
        return Outcome.ERROR, f"not comparable: {asked}; measure both on the same question set"
    if not pairs.differences:
        return Outcome.ERROR, _unmeasured(pairs, gate)
    sample = Sample.of(list(pairs.differences.values()), -1.0, 1.0)
    mean = sample.mean
    if not -1.0 <= mean <= 1.0:
        return Outcome.ERROR, f"not measured: the mean difference is {mean}, and a metric is in 0..1"
    low, high = interval(sample, alpha, seed)
    seen = _seen(pairs, mean, low, high, max_drop)
    if sample.n < gate.min_items:
        return Outcome.INCONCLUSIVE, f"{seen}; {_too_few(gate)}"
    dropped = mean <= -max_drop + TIE
    if (high < 0) if dropped else (low > -max_drop):
        return Outcome.FAIL if dropped else Outcome.PASS, seen
    distance, reach = (-mean, 1 - mean) if dropped else (mean + max_drop, 1 + mean)
    return Outcome.INCONCLUSIVE, f"{seen}; {_settled(to_settle(distance, sample.sd, reach, alpha), pairs)}"


def _other_questions(candidate: Scorecard, baseline: Scorecard) -> str:
    return (
        f"not comparable: measured on question set {candidate.dataset}, {baseline.version} on {baseline.dataset}; "
        "measure both on the same one"
    )


def _seen(pairs: Pairs, mean: float, low: float, high: float, max_drop: float) -> str:
    both = [q for q in pairs.candidate if q in pairs.baseline]
    ours = sum(pairs.candidate[q] for q in both) / len(both)
    theirs = sum(pairs.baseline[q] for q in both) / len(both)
    alone = f", {_questions(pairs.one_sided)} eligible in only one version" if pairs.one_sided else ""
    return (
        f"{ours:.4f} against {theirs:.4f}, difference {mean:+.4f} [{low:+.4f}, {high:+.4f}] over "
        f"{_questions(len(both))}{alone}, max_drop {max_drop:.4f}"
    )


# ---------------------------------------------------------------------------------------------- slices


@dataclass(frozen=True, slots=True)
class _Looked:
    """A slice that is looked at, and how likely one as bad is anywhere among all that are, by luck."""

    test: Watched
    chance: float


def _family(
    candidate: Scorecard, baseline: Scorecard | None, gates: Sequence[Gate], slices: Slices, seed: int
) -> dict[str, _Looked]:
    """Every slice that can make a version FAIL: those of the gates that bind, and those that are gates themselves."""
    if baseline is None or baseline.dataset != candidate.dataset:
        return {}
    tests: dict[str, Watched] = {}
    for gate in gates:
        pairs = pair(candidate, baseline, gate, slices)
        if gate.max_drop is None or gate.advisory or pairs.missing or not pairs.differences:
            continue
        if gate.slice:
            everywhere = pair(candidate, baseline, replace(gate, slice=""), slices)
            (tests[gate.label],) = cut(gate.metric, everywhere, {gate.slice: list(pairs.differences)}, gate.max_drop)
        else:
            for test in watched(gate.metric, pairs, slices, gate.max_drop):
                tests.setdefault(test.label, test)
    found = chances(list(tests.values()), seed)
    return {label: _Looked(test, chance) for (label, test), chance in zip(tests.items(), found, strict=True)}


def _watched(family: Mapping[str, _Looked], gates: Sequence[Gate], alpha: float) -> Iterator[Verdict]:
    """Per metric with slices that no gate holds to a drop: FAIL, naming the worst, when any of them is worse.

    A gate that binds nobody, or asks for a floor alone, does not take its slice out of the watch: a gate more must
    never let more through.
    """
    own = {gate.label for gate in gates if gate.max_drop is not None and not gate.advisory}
    for metric in dict.fromkeys(gate.metric for gate in gates):
        looked = [each for label, each in family.items() if each.test.metric == metric and label not in own]
        worse = [e for e in looked if e.chance <= WATCH * alpha and e.test.drop >= e.test.max_drop - TIE]
        if worse:
            worse.sort(key=lambda each: (each.chance, -each.test.drop))
            more = f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
            named = ", ".join(_worse(each) for each in worse[:NAMED])
            reason = f"{len(worse)} of {len(looked)} are worse, max_drop {worse[0].test.max_drop:.4f}: {named}{more}"
            yield Verdict(f"{metric} slices", Outcome.FAIL, reason)
        elif looked:
            reason = (
                f"none of {len(looked)} is worse, with a chance of {alpha:.1%} of any false alarm over {len(family)}"
            )
            yield Verdict(f"{metric} slices", Outcome.PASS, reason)


# A chance is itself an estimate, out of 4,000 flips. A fifth of alpha is kept back, so that whoever counts false alarms
# finds fewer than alpha of them and not sometimes more.
WATCH = 0.8
NAMED = 3  # a version that is worse everywhere is worse in every slice, and nobody reads forty lines


def _worse(each: _Looked) -> str:
    test = each.test
    lost = f", {test.lost} of them lost" if test.lost else ""
    return f"{test.slice} down by {test.drop:.4f} over {_questions(len(test.differences))}{lost} (p {each.chance:.4f})"


def _by_luck(family: Mapping[str, _Looked], label: str) -> str:
    return f"among {len(family)} slices one as bad comes by luck with a chance of {family[label].chance:.4f}"


# ---------------------------------------------------------------------------------------------- words


def _unmeasured(pairs: Pairs, gate: Gate) -> str:
    if gate.metric in CLOSED:
        return "not measured: no attack was tried, or none was answered; set evaluation.attacks true and ask again"
    if not pairs.asked:
        return "not measured: no question of the set is in this slice, or the metric was not computed"
    both = " in both versions" if pairs.baseline else ""
    return f"not measured: none of {_questions(pairs.asked)} is eligible{both}"


def _too_few(gate: Gate) -> str:
    return f"decided from {_counted(gate.min_items, gate)} on (min_items)"


def _settled(n: int | None, pairs: Pairs) -> str:
    """How many questions would settle it, counted in the whole set and not only in the eligible ones."""
    if n is None:
        return "no number of questions settles it while the difference stays this close to the bound"
    eligible = len(pairs.differences) if pairs.baseline else len(pairs.candidate)
    whole = -(-n * pairs.asked // eligible)
    return f"about {_questions(whole)} would settle it, {n} of them eligible"


def _counted(n: int, gate: Gate) -> str:
    return f"{n} attack{'s' if n != 1 else ''}" if gate.metric in CLOSED else _questions(n)


def _questions(n: int) -> str:
    return f"{n} question{'s' if n != 1 else ''}"
