"""Live observations to evidence: who counts, what is worse, what is fine, and that nothing is passed on silence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from domain.errors import BadRequest
from domain.releases import Evidence, LiveMetric, Observation, Outcome, Rollout
from eval.canary import ALARMS, LIVE, Binds, LiveRules, Weighing, weigh

POINTER = Rollout(stable="v1", canary="v2", share=0.25, revision=4, began=3)
RULES = LiveRules(max_drop=0.05, alpha=0.05)
GOOD: Mapping[str, float | None] = {
    "success": 1.0, "within_slo": 1.0, "citations_resolved": 1.0, "answered": 1.0, "grounded": 1.0,
}  # fmt: skip
ALIKE: Mapping[str, tuple[float, float]] = {"found": (1.0, 1.0), "coverage": (0.8, 0.8), "overlap": (0.5, 1.0)}


def on(
    version: str,
    number: int,
    *,
    at: float = 0.0,
    pairs: Mapping[str, tuple[float, float]] | None = None,
    **changes: float | None,
) -> Observation:
    """Request `number`, answered well by `version`, with these values changed."""
    paired = (ALIKE | dict(pairs or {})) if version == "v2" else {}
    return Observation(f"{version}-{number}", at, version, {**GOOD, **changes}, paired)


def mixed(canary: Sequence[Observation], stable: Sequence[Observation]) -> list[Observation]:
    """Both spread evenly over the same time."""
    places = [(i / len(arm), o) for arm in (stable, canary) for i, o in enumerate(arm)]
    return [observation for _, observation in sorted(places, key=lambda place: place[0])]


def weighed(observations: Sequence[Observation], widened_at: float = 0.0) -> Evidence:
    return weigh(observations, POINTER, widened_at, RULES)


def metric(evidence: Evidence, name: str) -> LiveMetric:
    return next(m for m in evidence.metrics if m.metric == name)


# ---------------------------------------------------------------------------------------------- too little traffic


def test_no_traffic_is_inconclusive_and_not_zero() -> None:
    nothing = weighed([])
    assert nothing.outcome is Outcome.INCONCLUSIVE
    assert (nothing.canary_n, nothing.stable_n) == (0, 0)
    assert all(m.canary_mean is None and m.stable_mean is None for m in nothing.metrics)
    assert "not measured" in metric(nothing, "success").reason


def test_what_is_undecided_says_how_many_more_would_settle_it_where_that_can_be_said() -> None:
    nothing = weighed([])
    assert {m.more for m in nothing.metrics} == {None}
    some = weighed(mixed([on("v2", i) for i in range(30)], [on("v1", i) for i in range(90)]))
    success, overlap = metric(some, "success"), metric(some, "overlap")
    # 60 without a loss exclude a drop of .05 (.95^59 < .05), half of them are there
    assert (success.outcome, overlap.more) == (Outcome.INCONCLUSIVE, None)
    assert success.more is not None
    assert 30 <= success.more <= 70
    settled = weighed(mixed([on("v2", i) for i in range(300)], [on("v1", i) for i in range(900)]))
    assert (metric(settled, "success").outcome, metric(settled, "success").more) == (Outcome.PASS, None)


@pytest.mark.parametrize("n", [1, 50, 58])
def test_too_few_requests_are_inconclusive_however_good_they_are(n: int) -> None:
    # 58 faultless requests happen to one canary in 20 that loses 5 in 100: .95^58 = .051.
    seen = weighed(mixed([on("v2", i) for i in range(n)], [on("v1", i) for i in range(400)]))
    assert seen.outcome is Outcome.INCONCLUSIVE
    assert (seen.canary_n, seen.stable_n) == (n, 400)


def test_traffic_only_to_stable_says_nothing_about_the_canary() -> None:
    seen = weighed([on("v1", i) for i in range(500)])
    assert seen.outcome is Outcome.INCONCLUSIVE
    assert (seen.canary_n, seen.stable_n) == (0, 500)


def test_a_faultless_canary_passes_after_some_80_requests() -> None:
    seen = weighed(mixed([on("v2", i) for i in range(90)], [on("v1", i) for i in range(900)]))
    assert seen.outcome is Outcome.PASS
    assert all(m.low >= -0.05 for m in seen.metrics if not m.advisory)


def test_a_metric_that_is_never_eligible_keeps_the_canary_undecided() -> None:
    canary = [on("v2", i, citations_resolved=None) for i in range(90)]
    seen = weighed(mixed(canary, [on("v1", i, citations_resolved=None) for i in range(900)]))
    assert seen.outcome is Outcome.INCONCLUSIVE
    assert "0 eligible on the canary" in metric(seen, "citations_resolved").reason


# ---------------------------------------------------------------------------------------------- worse


@pytest.mark.parametrize("stable_n", [0, 6, 30, 600])
def test_a_canary_that_only_fails_is_worse_within_a_few_dozen_requests(stable_n: int) -> None:
    failing = [on("v2", i, success=0.0, pairs={}) for i in range(24)]
    seen = weighed(mixed(failing, [on("v1", i) for i in range(stable_n)]) if stable_n else failing)
    assert metric(seen, "success").outcome is Outcome.FAIL
    assert seen.outcome is Outcome.FAIL


def test_sessions_of_ten_requests_that_take_turns_are_compared_too() -> None:
    # Each turn leaves eight requests to be matched by the next, four at a time: two pairs, 14 after eight turns.
    turns = [on("v2", i, within_slo=0.0) if i // 10 % 2 else on("v1", i) for i in range(80)]
    seen = metric(weighed(turns), "within_slo")
    assert "over 14 matched pairs" in seen.reason
    assert seen.outcome is Outcome.FAIL


def test_an_outage_that_strikes_both_versions_does_not_turn_the_canary_back() -> None:
    canary, stable = ([on(v, i, success=0.0) for i in range(n)] for v, n in (("v2", 60), ("v1", 180)))
    assert metric(weighed(mixed(canary, stable)), "success").outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("name", ["success", "within_slo"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_being_as_good_as_a_stable_that_mostly_fails_itself_shows_nothing(name: str, share: float) -> None:
    # An overloaded service answers nobody in time, on either version: a slow one would be promoted for it.
    def some(version: str, n: int) -> list[Observation]:
        return [on(version, i, **{name: float(i % 10 < 10 * share)}) for i in range(n)]

    told = metric(weighed(mixed(some("v2", 2000), some("v1", 2000))), name)
    assert (told.outcome, told.more) == (Outcome.INCONCLUSIVE, None)
    assert "being as good as that shows nothing" in told.reason


def test_being_as_good_as_a_stable_that_mostly_works_is_enough() -> None:
    def some(version: str, n: int) -> list[Observation]:
        return [on(version, i, within_slo=float(i % 10 < 8)) for i in range(n)]

    assert metric(weighed(mixed(some("v2", 2000), some("v1", 2000))), "within_slo").outcome is Outcome.PASS


def test_a_slow_canary_fails_on_the_slo_alone() -> None:
    slow = [on("v2", i, within_slo=float(i % 2)) for i in range(80)]
    seen = weighed(mixed(slow, [on("v1", i) for i in range(240)]))
    assert [m.metric for m in seen.metrics if m.outcome is Outcome.FAIL] == ["within_slo"]
    assert "worse" in metric(seen, "within_slo").reason


def test_a_retrieval_that_finds_less_fails_on_the_paired_questions() -> None:
    less = [on("v2", i, pairs={"coverage": (0.6, 0.8)}) for i in range(60)]
    seen = weighed(mixed(less, [on("v1", i) for i in range(60)]))
    assert metric(seen, "coverage").outcome is Outcome.FAIL
    assert (metric(seen, "coverage").canary_n, metric(seen, "coverage").stable_n) == (60, 60)
    assert metric(seen, "coverage").paired


def test_a_drop_that_is_surely_there_but_tolerated_is_no_failure() -> None:
    # .02 on every question: certain after enough of them, and within max_drop.
    less = [on("v2", i, pairs={"coverage": (0.78, 0.8)}) for i in range(2_000)]
    seen = metric(weighed(less), "coverage")
    assert seen.high <= 0.0
    assert seen.outcome is Outcome.PASS


@pytest.mark.parametrize("name", [name for name, live in LIVE.items() if live.binds is Binds.FALL])
def test_a_collapse_of_a_metric_nobody_waits_for_turns_the_canary_back(name: str) -> None:
    fallen = [on("v2", i, **{name: 0.0}) for i in range(60)]
    seen = weighed(mixed(fallen, [on("v1", i) for i in range(180)]))
    assert metric(seen, name).outcome is Outcome.FAIL
    assert not metric(seen, name).advisory
    assert seen.outcome is Outcome.FAIL


@pytest.mark.parametrize("name", [name for name, live in LIVE.items() if live.binds is Binds.FALL])
def test_such_a_metric_never_holds_a_good_canary_back(name: str) -> None:
    stable = [on("v1", i, **{name: None}) for i in range(900)]
    seen = weighed(mixed([on("v2", i, **{name: None}) for i in range(90)], stable))
    assert metric(seen, name).advisory
    assert seen.outcome is Outcome.PASS


# ---------------------------------------------------------------------------------------------- who counts


def test_a_request_that_neither_version_answered_counts_for_neither() -> None:
    others = [on(version, i, success=0.0) for i in range(50) for version in ("", "v0")]
    seen = weighed(others)
    assert (seen.canary_n, seen.stable_n) == (0, 0)
    assert metric(seen, "success").canary_n == 0


def test_pairs_of_a_request_that_the_canary_did_not_answer_count_nowhere() -> None:
    strays = [Observation(f"t{i}", 0.0, version, GOOD, ALIKE) for i, version in enumerate(["v1", "", "v0"])]
    assert metric(weighed(strays), "coverage").canary_n == 0


def test_a_trace_counts_once() -> None:
    twice = [on("v2", 1), on("v2", 1, success=0.0), Observation("v2-1", 0.0, "v1", GOOD)]
    seen = weighed(twice)
    assert (seen.canary_n, seen.stable_n) == (1, 0)
    assert metric(seen, "success").canary_mean == 1.0


def test_the_canarys_own_requests_since_the_last_widening_are_counted() -> None:
    seen = weighed([*(on("v2", i, at=float(i)) for i in range(10)), on("v1", 0, at=9.0)], widened_at=7.0)
    assert seen.since_widened == 3  # at 7, 8 and 9


def feedback(trace_id: str, value: float) -> Observation:
    return Observation(trace_id, 0.0, "", {"feedback": value})


def test_feedback_counts_for_the_version_that_gave_the_answer_in_whatever_order_it_comes() -> None:
    seen = weighed([feedback("v2-1", 0.0), on("v1", 1), on("v2", 1), feedback("v1-1", 1.0)])
    heard = metric(seen, "feedback")
    assert (heard.canary_mean, heard.stable_mean) == (0.0, 1.0)
    assert (seen.canary_n, seen.stable_n) == (1, 1)
    assert heard.advisory


def test_feedback_about_nothing_and_feedback_twice_count_nothing() -> None:
    seen = weighed([on("v2", 1), feedback("unknown", 0.0), feedback("v2-1", 1.0), feedback("v2-1", 0.0)])
    heard = metric(seen, "feedback")
    assert (heard.canary_n, heard.canary_mean, heard.stable_n) == (1, 1.0, 0)


def test_unhappy_readers_alone_turn_nothing_back() -> None:
    both = mixed([on("v2", i) for i in range(90)], [on("v1", i) for i in range(900)])
    unhappy = [feedback(o.trace_id, float(o.version == "v1")) for o in both]
    seen = weighed([*both, *unhappy])
    assert metric(seen, "feedback").outcome is Outcome.FAIL
    assert seen.outcome is Outcome.PASS


def test_the_overlap_of_the_evidence_is_shown_and_judged_by_nobody() -> None:
    shown = metric(weighed([on("v2", i) for i in range(90)]), "overlap")
    assert (shown.canary_mean, shown.outcome, shown.advisory) == (0.5, Outcome.INCONCLUSIVE, True)
    assert shown.max_drop is None


def test_a_judged_metric_says_how_much_of_it_may_be_lost() -> None:
    assert {m.max_drop for m in weighed([]).metrics if m.metric != "overlap"} == {0.05}


# ---------------------------------------------------------------------------------------------- matching


def test_requests_are_set_against_the_newest_of_the_other_version() -> None:
    # Stable waits with 0, 1, 1, 0, 1 (the last is the newest). The canary's 1 meets the newest four: 1 - 3/4 = +.25.
    stable = [on("v1", i, within_slo=value) for i, value in enumerate((0.0, 1.0, 1.0, 0.0, 1.0))]
    seen = metric(weighed([*stable, on("v2", 1)]), "within_slo")
    assert "+0.250 over 1 matched pairs" in seen.reason
    # Its second, a 0, meets the one that is left: 0 - 0. The third finds nobody: two pairs, mean +.125.
    seen = metric(weighed([*stable, on("v2", 1), on("v2", 2, within_slo=0.0), on("v2", 3)]), "within_slo")
    assert "+0.125 over 2 matched pairs" in seen.reason
    assert (seen.canary_n, seen.stable_n) == (3, 5)


def test_a_day_that_gets_worse_for_both_while_the_share_grows_looks_like_no_difference() -> None:
    # First 50 of 1,000 go to the canary and all are fast; then 500 of 1,000 do and half are slow, on both alike.
    early = mixed([on("v2", i) for i in range(50)], [on("v1", i) for i in range(950)])
    fast = np.random.default_rng(2).integers(2, size=1_000).astype(float)
    late = mixed(
        [on("v2", 50 + i, within_slo=fast[i]) for i in range(500)],
        [on("v1", 950 + i, within_slo=fast[500 + i]) for i in range(500)],
    )
    seen = metric(weighed([*early, *late]), "within_slo")
    assert seen.canary_mean is not None
    assert seen.stable_mean is not None
    assert seen.canary_mean - seen.stable_mean < -0.25  # the plain means blame the canary for the hour
    assert seen.low < 0.0 < seen.high


# ---------------------------------------------------------------------------------------------- bad values


@pytest.mark.parametrize("bad", [float("nan"), 1.01, -0.5, float("inf"), "1"])
def test_a_value_that_is_no_share_is_an_error_that_names_it(bad: float) -> None:
    seen = metric(weighed([on("v2", 1, success=bad), on("v2", 2), on("v1", 1)]), "success")
    assert seen.outcome is Outcome.ERROR
    assert repr(bad) in seen.reason
    assert "v2-1" in seen.reason


@pytest.mark.parametrize("bad", [(1.0, float("nan")), (1.0,), 0.5, (2.0, 1.0)])
def test_a_pair_that_is_none_is_an_error_that_names_it(bad: tuple[float, float]) -> None:
    seen = metric(weighed([on("v2", 1, pairs={"coverage": bad})]), "coverage")
    assert seen.outcome is Outcome.ERROR
    assert "v2-1" in seen.reason
    assert seen.canary_n == 0


def test_no_canary_is_refused() -> None:
    with pytest.raises(BadRequest, match="no canary"):
        weigh([], Rollout(stable="v1", revision=1), 0.0, RULES)


# ---------------------------------------------------------------------------------------------- going on


def traffic(seed: int, n: int, share: float, *, canary_slo: float = 0.95) -> list[Observation]:
    """`n` requests of two versions that differ at most in how many canary requests are within the SLO."""
    random, seen = np.random.default_rng(seed), []
    for i in range(n):
        version = "v2" if random.random() < share else "v1"
        slo = canary_slo if version == "v2" else 0.95
        rates = {"success": 0.99, "within_slo": slo, "citations_resolved": 0.98, "answered": 0.7, "grounded": 0.9}
        values = {name: float(random.random() < rate) for name, rate in rates.items()}
        churn = float(random.choice([0.0, 0.25], p=[0.9, 0.1]))
        pair = (0.75, 0.75 + churn) if random.random() < 0.5 else (0.75 + churn, 0.75)
        seen.append(on(version, i, at=float(i), pairs={"coverage": pair}, **values))
    return seen


def test_going_on_gives_the_same_evidence_as_beginning_anew() -> None:
    seen, weighing = traffic(1, 700, 0.3), Weighing(RULES)
    for so_far in (0, 1, 2, 90, 91, 400, 700, 700):
        assert weighing(seen[:so_far], POINTER, 50.0) == weigh(seen[:so_far], POINTER, 50.0, RULES)


def test_what_arrives_late_or_is_read_anew_counts_once_like_everything_else() -> None:
    early, late, later = on("v2", 1, at=1.0), on("v2", 2, at=2.0), on("v1", 3, at=3.0)
    weighing, counts = Weighing(RULES), []
    for seen in ((early, later), (early, later), (early, late, later), (replace(early), replace(late), later)):
        told = weighing(seen, POINTER, 1.5)
        counts.append((told.canary_n, told.stable_n, told.since_widened))
    assert counts == [(1, 1, 0), (1, 1, 0), (2, 1, 1), (2, 1, 1)]


def test_a_list_that_grows_in_the_hands_of_its_owner_is_seen_to_have_grown() -> None:
    weighing, seen = Weighing(RULES), [on("v2", 1)]
    weighing(seen, POINTER, 0.0)
    seen.append(on("v2", 2))
    assert weighing(seen, POINTER, 0.0).canary_n == 2


def test_another_canary_begins_with_nothing() -> None:
    weighing = Weighing(RULES)
    weighing([on("v2", i, success=0.0) for i in range(60)], POINTER, 0.0)
    again = Rollout(stable="v1", canary="v2", share=0.05, revision=6, began=6)
    assert weighing([], again, 0.0) == weigh([], again, 0.0, RULES)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_whole_canary_that_is_no_worse_is_turned_back_in_at_most_alpha_of_all_cases(share: float) -> None:
    # The bounds only ever sink, so the last look knows whether any look found a difference below zero, which is more
    # than failing asks for. 60 runs: 3 are allowed, and 3 standard deviations of the draw, sqrt(60 * .05 * .95) * 3.
    runs, alarms = 60, 0
    for run in range(runs):
        seen = weigh(traffic(100 + run, 800, share), POINTER, 0.0, RULES)
        binding = [m for m in seen.metrics if LIVE[m.metric].binds is Binds.BOTH]
        alarms += any(m.high <= 0.0 or m.outcome is Outcome.FAIL for m in binding)  # a late failure stays too
    assert alarms <= runs * RULES.alpha + 3.0 * sqrt(runs * RULES.alpha * (1.0 - RULES.alpha))


@pytest.mark.slow
def test_a_canary_that_is_worse_by_the_tolerated_drop_passes_in_at_most_alpha_of_all_cases() -> None:
    runs, passed = 40, 0
    for run in range(runs):
        seen, weighing = traffic(300 + run, 800, 0.5, canary_slo=0.9), Weighing(RULES)
        passed += any(weighing(seen[:n], POINTER, 0.0).outcome is Outcome.PASS for n in range(100, 801, 100))
    assert passed <= runs * RULES.alpha + 3.0 * sqrt(runs * RULES.alpha * (1.0 - RULES.alpha))


def test_as_many_alarms_share_alpha_as_there_are_ways_to_fail() -> None:
    # Five that bind both ways, two that may fall, and a canary broken by itself.
    assert ALARMS == 8


# ---------------------------------------------------------------------------------------------- good for long


def test_a_canary_that_was_good_for_a_day_and_then_only_fails_is_turned_back_within_sixty_pairs() -> None:
    # The 80th fresh start begins just then; it needs 1 / (.05 / 8 / 2 * 6 / (pi * 80)^2) = 3.4e6 times its stake,
    # ln 15.0: with bets near .95 that is 15.0 / ln 1.95 = 23 failures, and some more until the bets are so high.
    seen, weighing = [on("v2", i) for i in range(20_000)], Weighing(RULES)
    assert metric(weighing(seen, POINTER, 0.0), "coverage").outcome is Outcome.PASS
    coverage, late = metric(weighing(seen, POINTER, 0.0), "coverage"), 0
    while coverage.outcome is not Outcome.FAIL and late < 60:
        late += 1
        seen.append(on("v2", 20_000 + late, pairs={"coverage": (0.0, 1.0)}))
        coverage = metric(weighing(seen, POINTER, 0.0), "coverage")
    assert coverage.outcome is Outcome.FAIL
    assert late >= 23
    assert coverage.reason.startswith(
        f"lately: -1.000 over the last {late} questions asked of both of {20_000 + late}:"
    )
    assert coverage.low > -0.05  # all of its life taken together, it still looks fine
    assert not coverage.advisory
    assert coverage == metric(weighed(seen), "coverage")  # beginning anew finds what going on found


@pytest.mark.parametrize("name", [name for name, live in LIVE.items() if live.binds is not Binds.NEVER])
def test_any_metric_that_may_turn_back_does_so_for_a_late_collapse(name: str) -> None:
    # 3,000 of each were alike; the mean of the whole life is -100 / 3,100 = -.032, which is tolerated.
    good = [each for i in range(3_000) for each in (on("v1", i), on("v2", i))]
    values, pairs = (GOOD, {**ALIKE, name: (0.0, 1.0)}) if LIVE[name].paired else ({**GOOD, name: 0.0}, ALIKE)
    lost = [Observation(f"v2-{i}", 0.0, "v2", values, pairs) for i in range(3_000, 3_100)]
    late = [each for i, canary in enumerate(lost, start=3_000) for each in (on("v1", i), canary)]
    assert metric(weighed(good), name).outcome is Outcome.PASS
    seen = weighed([*good, *late])
    assert [m.metric for m in seen.metrics if m.outcome is Outcome.FAIL] == [name]
    assert metric(seen, name).reason.startswith("lately: ")
    assert seen.outcome is Outcome.FAIL


def test_an_outage_of_both_versions_after_a_good_time_does_not_turn_the_canary_back() -> None:
    good = [each for i in range(1_000) for each in (on("v1", i), on("v2", i))]
    outage = [on(version, i, success=0.0) for i in range(1_000, 1_200) for version in ("v1", "v2")]
    assert metric(weighed([*good, *outage]), "success").outcome is not Outcome.FAIL


def test_a_late_drop_that_is_tolerated_is_no_failure() -> None:
    # .02 on each of 2,000 questions after 3,000 good ones: certain by then, and within max_drop.
    seen = [on("v2", i, pairs={"coverage": (0.78 if i >= 3_000 else 0.8, 0.8)}) for i in range(5_000)]
    assert metric(weighed(seen), "coverage").outcome is Outcome.PASS
