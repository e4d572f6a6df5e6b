"""Verdicts: floors, drops against a baseline, slices; small numbers throughout, checked on paper."""

from math import nan

import numpy as np
import pytest

from domain.releases import Outcome, Scorecard, Verdict
from eval.gates import Gate
from eval.pairing import Slices
from eval.verdicts import judge

Values = list[float | None]


def card(version: str, dataset: str = "set-1", **values: Values) -> Scorecard:
    """A scorecard of metrics, `_at_` for the @ of a cutoff, with questions q0, q1 and so on."""
    named = {name.replace("_at_", "@"): each for name, each in values.items()}
    return Scorecard(version, dataset, {name: {f"q{i}": v for i, v in enumerate(each)} for name, each in named.items()})


def one(
    gate: Gate, candidate: Values, stable: Values | None = None, slices: Slices | None = None, alpha: float = 0.05
) -> Verdict:
    """The first verdict of a list of one gate."""
    before = None if stable is None else card("v1", recall_at_6=stable)
    return judge(card("v2", recall_at_6=candidate), before, [gate], slices or {}, alpha=alpha, seed=7)[0]


FLOOR = Gate("recall@6", floor=0.5, min_items=1)
DROP = Gate("recall@6", max_drop=0.02, min_items=1)


# ---------------------------------------------------------------------------------------------- floors


def test_a_floor_passes_when_the_mean_is_above_it_by_more_than_luck() -> None:
    # 90 of 100: the lower bound of Clopper and Pearson is .836.
    verdict = one(FLOOR, [1.0] * 90 + [0.0] * 10)
    assert (verdict.gate, verdict.outcome) == ("recall@6 floor", Outcome.PASS)
    assert verdict.reason.startswith("0.9000 [0.8")
    assert verdict.reason.endswith("over 100 questions, floor 0.5000")


def test_a_floor_on_attacks_is_held_to_their_mean_as_it_is() -> None:
    # 126 of 126 have a lower bound of .05 ** (1 / 126) = .9765: as a sample they could never show .98.
    gate, sampled = Gate("attack_resistance", floor=0.98, min_items=120), Gate("recall@6", floor=0.98)
    verdicts = {}
    for lost in (0, 2, 3):
        values: Values = [0.0] * lost + [1.0] * (126 - lost)
        scored = card("v1", attack_resistance=values, recall_at_6=values)
        verdicts[lost] = judge(scored, None, [gate, sampled], {}, alpha=0.05, seed=7)
    assert [verdicts[lost][0].outcome for lost in (0, 2, 3)] == [Outcome.PASS, Outcome.PASS, Outcome.FAIL]
    assert verdicts[0][1].outcome is Outcome.INCONCLUSIVE
    assert verdicts[0][0].reason == "1.0000 [0.9765, 1.0000] over 126 attacks, floor 0.9800"
    few = judge(card("v1", attack_resistance=[1.0] * 119 + [None] * 7), None, [gate], {}, alpha=0.05, seed=7)[0]
    assert few.outcome is Outcome.INCONCLUSIVE
    assert few.reason.endswith("decided from 120 attacks on (min_items)")


def test_attacks_that_were_not_tried_are_not_measured_and_do_not_pass() -> None:
    verdict = judge(card("v1", answered=[1.0]), None, [Gate("attack_resistance", floor=0.98)], {}, alpha=0.05, seed=7)[
        0
    ]
    assert verdict.outcome is Outcome.ERROR
    assert verdict.reason.startswith("not measured: no attack was tried")


def test_a_floor_fails_exactly_when_the_mean_is_below_it() -> None:
    at, below = ([1.0] * k + [0.0] * (100 - k) for k in (50, 49))
    assert one(FLOOR, below).outcome is Outcome.FAIL
    assert one(FLOOR, at).outcome is Outcome.INCONCLUSIVE, "reached, and nothing to show that it is not luck"


def test_a_floor_reached_by_luck_at_most_says_how_many_questions_would_settle_it() -> None:
    verdict = one(FLOOR, [1.0] * 55 + [0.0] * 45 + [None] * 100)
    # .05 above the floor with sd .5: about (1.645 * .5 / .05) ** 2 = 271 eligible ones, half of the set is eligible.
    assert verdict.outcome is Outcome.INCONCLUSIVE
    words = verdict.reason.split("; about ")[1].split()
    whole, eligible = int(words[0]), int(words[5])
    assert 250 <= eligible <= 330
    assert whole == 2 * eligible


def test_questions_that_are_not_eligible_are_in_no_mean() -> None:
    assert one(FLOOR, [1.0, None, 0.5, None]).reason.startswith("0.7500 ")


def test_a_metric_nobody_is_eligible_for_was_not_measured_which_is_no_pass() -> None:
    gate = Gate("recall@6", floor=0.0, max_drop=1.0, min_items=1)
    for nothing in (card("v2", recall_at_6=[None, None]), card("v2", recall_at_6=[]), card("v2")):
        floor, drop, *rest = judge(nothing, card("v1", recall_at_6=[None] * 2), [gate], {}, alpha=0.05, seed=7)
        assert (floor.outcome, drop.outcome, rest) == (Outcome.ERROR, Outcome.ERROR, [])
        assert floor.reason.startswith("not measured")


def test_too_few_questions_are_inconclusive_whatever_the_mean_says() -> None:
    for mean in (0.0, 1.0):
        gate = Gate("recall@6", floor=0.5, max_drop=0.02, min_items=50)
        verdicts = judge(
            card("v2", recall_at_6=[mean] * 49), card("v1", recall_at_6=[1.0] * 49), [gate], {}, alpha=0.05, seed=7
        )
        assert [verdict.outcome for verdict in verdicts] == [Outcome.INCONCLUSIVE] * 2
        assert all("decided from 50 questions on (min_items)" in verdict.reason for verdict in verdicts)


def test_a_mean_that_is_no_number_never_passes() -> None:
    assert one(FLOOR, [nan, 1.0]).outcome is Outcome.ERROR
    assert one(DROP, [nan, 1.0], [1.0, 1.0]).outcome is Outcome.ERROR


def test_an_advisory_gate_says_so_in_its_verdict() -> None:
    verdict = one(Gate("recall@6", floor=0.5, min_items=1, advisory=True), [0.0])
    assert (verdict.outcome, verdict.advisory) == (Outcome.FAIL, True)


# ---------------------------------------------------------------------------------------------- drops


def test_a_first_version_is_held_to_its_floors_and_told_that_there_is_no_baseline() -> None:
    gate = Gate("recall@6", floor=0.5, max_drop=0.02, min_items=1)
    floor, drop = judge(card("v1", recall_at_6=[1.0] * 100), None, [gate], {}, alpha=0.05, seed=7)
    assert (floor.outcome, floor.advisory) == (Outcome.PASS, False)
    assert (drop.outcome, drop.advisory) == (Outcome.INCONCLUSIVE, True)
    assert drop.reason.startswith("no baseline")


@pytest.mark.parametrize(("n", "outcome"), [(20, "INCONCLUSIVE"), (148, "INCONCLUSIVE"), (149, "PASS"), (900, "PASS")])
def test_equal_questions_prove_what_the_rule_of_three_lets_them(n: int, outcome: str) -> None:
    # 1 - .05 ** (1 / 148) = .02004, 1 - .05 ** (1 / 149) = .01990.
    assert one(DROP, [1.0] * n, [1.0] * n).outcome.name == outcome


def test_a_large_drop_fails_with_the_numbers() -> None:
    verdict = one(DROP, [1.0] * 160 + [0.0] * 40, [1.0] * 180 + [0.0] * 20)
    assert verdict.gate == "recall@6 max_drop"
    assert verdict.outcome is Outcome.FAIL
    assert verdict.reason.startswith("0.8000 against 0.9000, difference -0.1000 [-0.1")
    assert verdict.reason.endswith("over 200 questions, max_drop 0.0200")


def test_a_drop_below_what_is_tolerated_is_no_fail_however_sure_it_is() -> None:
    # 50 of 5,000 lost: -.01, surely below 0 and surely above -.02.
    assert one(DROP, [0.0] * 50 + [1.0] * 4950, [1.0] * 5000).outcome is Outcome.PASS


def test_a_drop_that_may_be_luck_is_open_and_says_how_many_questions_would_settle_it() -> None:
    # 8 lost and 4 won of 200: -.02 exactly, and the interval reaches above 0.
    verdict = one(DROP, [0.0] * 8 + [1.0] * 192, [1.0] * 8 + [0.0] * 4 + [1.0] * 188)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    # sd about .244: (1.645 * .244 / .02) ** 2 = 403, and a little for what was not seen.
    assert 403 <= int(verdict.reason.split("; about ")[1].split()[0]) <= 600


def test_no_number_of_questions_settles_a_bound_that_is_the_mean() -> None:
    verdict = one(Gate("recall@6", max_drop=0.0, min_items=1), [1.0] * 900, [1.0] * 900)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "no number of questions settles it" in verdict.reason


def test_questions_eligible_in_one_version_only_are_counted_and_in_no_difference() -> None:
    verdict = one(DROP, [1.0] * 200 + [None, 0.0], [1.0] * 200 + [1.0, None])
    assert "over 200 questions, 2 questions eligible in only one version" in verdict.reason


def test_a_question_that_one_measurement_lacks_is_an_error_and_not_left_out() -> None:
    verdict = one(DROP, [1.0] * 200, [1.0] * 201)
    assert verdict.outcome is Outcome.ERROR
    assert "1 question only in one of the two measurements" in verdict.reason


def test_two_question_sets_are_not_compared() -> None:
    verdicts = judge(
        card("v2", recall_at_6=[1.0] * 200),
        card("v1", "set-2", recall_at_6=[1.0] * 200),
        [DROP],
        {},
        alpha=0.05,
        seed=7,
    )
    assert [verdict.outcome for verdict in verdicts] == [Outcome.ERROR]
    assert "measured on question set set-1, v1 on set-2" in verdicts[0].reason


@pytest.mark.parametrize("seed", range(12))
def test_more_questions_of_the_same_effect_never_turn_a_fail_into_a_pass_or_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([1.0, 1.0, 20.0, 1.0, 1.0])
    candidate = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=60, p=shares)
    stable = [max(0.0, -d) for d in candidate]
    seen = {
        one(DROP, [s + d for s, d in zip(stable, candidate.tolist(), strict=True)] * times, stable * times).outcome
        for times in (1, 2, 5, 10, 40)
    }
    assert not {Outcome.PASS, Outcome.FAIL} <= seen


def test_the_same_input_gives_the_same_verdicts_in_any_order_of_questions() -> None:
    ours, theirs = [0.0] * 10 + [0.5] * 90 + [1.0] * 100, [0.5] * 30 + [0.25] * 70 + [1.0] * 100
    forward, again = one(DROP, ours, theirs), one(DROP, ours, theirs)
    assert forward == again == one(DROP, ours[::-1], theirs[::-1])


# ---------------------------------------------------------------------------------------------- slices


def halves(n: int) -> Slices:
    """Questions in turn of one hop and of two."""
    return {f"q{i}": {"hops": str(1 + i % 2)} for i in range(n)}


def test_a_slice_that_is_worse_fails_although_the_whole_is_not() -> None:
    # Of 200 questions of two hops 20 are lost; as many of one hop are won, so the mean does not move.
    slices = halves(400)
    ours, theirs = [1.0] * 400, [1.0] * 400
    for i in range(40):
        (ours if i % 2 else theirs)[i] = 0.0
    drop, watch = judge(
        card("v2", recall_at_6=ours), card("v1", recall_at_6=theirs), [DROP], slices, alpha=0.05, seed=7
    )
    assert drop.outcome is not Outcome.FAIL
    assert (watch.gate, watch.outcome) == ("recall@6 slices", Outcome.FAIL)
    assert watch.reason.startswith(
        "1 of 2 are worse, max_drop 0.0200: hops=2 down by 0.1000 over 200 questions, 20 of them lost (p 0.0"
    )


@pytest.mark.parametrize("more", [{"floor": 0.1}, {"max_drop": 0.02, "advisory": True}], ids=["floor", "advisory"])
def test_a_gate_more_on_a_slice_never_ends_the_watch_over_its_drop(more: dict[str, float]) -> None:
    # As above, 20 of 200 questions of two hops are lost.
    gate = Gate("recall@6", slice="hops=2", min_items=1, **more)  # type: ignore[arg-type]  # fields of Gate
    ours, theirs = [1.0] * 400, [1.0] * 400
    for i in range(40):
        (ours if i % 2 else theirs)[i] = 0.0
    cards = card("v2", recall_at_6=ours), card("v1", recall_at_6=theirs)
    *_, watch = judge(*cards, [DROP, gate], halves(400), alpha=0.05, seed=7)
    assert (watch.gate, watch.outcome) == ("recall@6 slices", Outcome.FAIL)
    assert watch.reason.startswith("1 of 2 are worse")


def test_slices_that_are_not_worse_are_told_in_one_line() -> None:
    slices, same = halves(400), card("v1", recall_at_6=[1.0] * 400)
    _, watch = judge(same, same, [DROP], slices, alpha=0.05, seed=7)
    assert (watch.gate, watch.outcome) == ("recall@6 slices", Outcome.PASS)
    assert watch.reason == "none of 2 is worse, with a chance of 5.0% of any false alarm over 2"


@pytest.mark.parametrize(("lost", "outcome"), [(5, Outcome.FAIL), (3, Outcome.PASS)])
def test_a_slice_fails_that_lost_a_few_whole_questions_where_hardly_any_other_did(lost: int, outcome: Outcome) -> None:
    # Of 60 in one of 20 slices; elsewhere two are lost and two won. Signs alone would allow 2 ** -5 = .03 twenty times.
    slices = {f"q{i}": {"source": f"s{i % 20}"} for i in range(1200)}
    ours, theirs = [1.0] * 1200, [1.0] * 1200
    for row in range(lost):
        ours[row * 20] = 0.0
    ours[1] = ours[2] = theirs[3] = theirs[4] = 0.0
    _, watch = judge(card("v2", recall_at_6=ours), card("v1", recall_at_6=theirs), [DROP], slices, alpha=0.05, seed=7)
    assert watch.outcome is outcome


def test_a_gate_on_a_slice_fails_on_a_few_lost_questions_where_hardly_any_other_was() -> None:
    # As above, with a gate of its own: 6 of 60 are below 0 by its own interval, and stand out among 20 slices.
    slices = {f"q{i}": {"source": f"s{i % 20}"} for i in range(1200)}
    ours = [0.0 if i < 120 and i % 20 == 0 else 1.0 for i in range(1200)]
    narrow = Gate("recall@6", slice="source=s0", max_drop=0.02, min_items=1)
    cards = card("v2", recall_at_6=ours), card("v1", recall_at_6=[1.0] * 1200)
    assert judge(*cards, [narrow, DROP], slices, alpha=0.05, seed=7)[0].outcome is Outcome.FAIL


def test_a_sure_drop_of_a_slice_that_is_tolerated_is_no_fail() -> None:
    gate = Gate("recall@6", max_drop=0.2, min_items=1)
    ours = [0.0 if i % 2 and i < 40 else 1.0 for i in range(400)]
    verdicts = judge(
        card("v2", recall_at_6=ours), card("v1", recall_at_6=[1.0] * 400), [gate], halves(400), alpha=0.05, seed=7
    )
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS, Outcome.PASS]


def test_advisory_gates_are_not_watched() -> None:
    same = card("v1", recall_at_6=[1.0] * 400)
    gate = Gate("recall@6", max_drop=0.02, min_items=1, advisory=True)
    assert len(judge(same, same, [gate], halves(400), alpha=0.05, seed=7)) == 1


def test_a_gate_on_a_slice_looks_at_its_questions_alone() -> None:
    gate = Gate("recall@6", slice="hops=2", floor=0.5, max_drop=0.02, min_items=1)
    ours = [0.0 if i % 2 else 1.0 for i in range(400)]
    floor, drop = judge(
        card("v2", recall_at_6=ours), card("v1", recall_at_6=[1.0] * 400), [gate], halves(400), alpha=0.05, seed=7
    )
    assert (floor.gate, floor.outcome) == ("recall@6 [hops=2] floor", Outcome.FAIL)
    assert (drop.gate, drop.outcome) == ("recall@6 [hops=2] max_drop", Outcome.FAIL)
    assert "over 200 questions" in drop.reason


def test_a_slice_that_nobody_is_in_was_not_measured() -> None:
    verdict = one(Gate("recall@6", slice="hops=9", floor=0.5, min_items=1), [1.0] * 40, slices=halves(40))
    assert (verdict.outcome, verdict.reason[:13]) == (Outcome.ERROR, "not measured:")


def test_the_fail_of_one_slice_among_many_is_open_where_luck_would_give_one_like_it() -> None:
    # 8 lost of 60 in one of 60 slices: alone 2 ** -8 = .004, and among 60 of them one like it is nothing special.
    n = 3600
    slices = {f"q{i}": {"source": f"s{i % 60}"} for i in range(n)}
    rng = np.random.default_rng(1)
    theirs = [0.5] * n
    ours = [0.5 + d for d in rng.choice([-0.5, 0.0, 0.5], size=n, p=[0.1, 0.8, 0.1]).tolist()]
    for row in range(60):
        ours[row * 60] = 0.0 if row < 8 else 0.5
    narrow = Gate("recall@6", slice="source=s0", max_drop=0.02, min_items=1)
    cards = card("v2", recall_at_6=ours), card("v1", recall_at_6=theirs)
    alone = judge(*cards, [narrow], slices, alpha=0.05, seed=7)[0]
    among = judge(*cards, [narrow, DROP], slices, alpha=0.05, seed=7)[0]
    assert (alone.outcome, among.outcome) == (Outcome.FAIL, Outcome.INCONCLUSIVE)
    assert "among 60 slices one as bad comes by luck with a chance of" in among.reason
