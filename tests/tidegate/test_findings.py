"""What an evaluation found, worked out on paper: slices, differences, the curve, and what is said of a whole set."""

from dataclasses import replace

import pytest

from domain.evaluation import ALL
from domain.releases import Outcome, Verdict
from eval.attack_suite import attacks
from eval.attacking import with_attacks
from eval.client import Failure
from eval.harness import observe, score
from eval.journal import Header, Reply
from eval.questions import Anchor
from tests.eval.replies import QUESTION, USAGE, answer
from tidegate.findings import evaluation, summary
from tidegate.measuring import Measured, binding, limits, metric_names
from tidegate.settings import Settings
from tidegate.settings_costs import Costs, Price

D1 = (Anchor("minutes-0001", "High water is at nine."),)
# Two answerable questions of one hop, one of two hops, and one that the library cannot answer.
A = replace(QUESTION, id="a", evidence=D1, hops=1)
B = replace(QUESTION, id="b", evidence=D1, hops=1)
C = replace(QUESTION, id="c", evidence=(*D1, Anchor("minutes-0002", "The bell rings twice.")), hops=2)
N = replace(QUESTION, id="n", answer="", aliases=(), type="null", evidence=(), hops=0)
QUESTIONS = (A, B, C, N)
FOUND, MISSED = answer("minutes-0001"), answer("report-0001")
SETTINGS = Settings()


def measured(
    *responses: object, version: str = "v1", finished_at: str = "2026-01-01", settings: Settings = SETTINGS
) -> Measured:
    """The four questions with these responses, each after as many milliseconds as its place."""
    told = {q.id: Reply(r, float(i)) for i, (q, r) in enumerate(zip(QUESTIONS, responses, strict=True))}  # type: ignore[arg-type]  # a body or a failure
    observed = observe(QUESTIONS, told, limits(settings))
    card = replace(score(observed, metric_names(settings)), version=version)
    return Measured(Header(version, card.dataset, "", ""), finished_at, observed, card, 0)


PRICE = Price(model="extractive", input_usd=3.0, output_usd=15.0, cache_read_usd=0.3, cache_write_usd=3.75)
PRICED = SETTINGS.model_copy(update={"costs": Costs(prices=(PRICE,))})


def found(candidate: Measured, baseline: Measured | None = None, verdicts: tuple[Verdict, ...] = ()) -> object:
    return evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS), candidate, baseline, verdicts)


NULL = answer(status="no_sources")
ONE = measured(FOUND, MISSED, FOUND, NULL)


def test_every_slice_with_somebody_eligible_has_its_mean_and_count() -> None:
    recall = evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS), ONE).metrics["recall@6"]
    # a: 1, b: 0, c: one of two documents, n: not eligible.
    assert (recall[ALL].mean, recall[ALL].n) == (0.5, 3)
    assert (recall["hops=1"].mean, recall["hops=1"].n) == (0.5, 2)
    assert (recall["hops=2"].mean, recall["hops=2"].n) == (0.5, 1)
    assert "type=null" not in recall
    low, high = recall[ALL].low, recall[ALL].high
    assert low is not None
    assert high is not None
    assert 0 <= low < 0.5 < high <= 1


def test_differences_are_taken_over_the_questions_eligible_in_both() -> None:
    before = measured(MISSED, MISSED, FOUND, NULL, version="v0", finished_at="2026-02-01")
    whole = evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS, "v0"), ONE, before)
    recall = next(d for d in whole.differences if d.metric == "recall@6")
    # a gained 1, b and c nothing; n is eligible in neither.
    assert recall.estimate.mean == pytest.approx(1 / 3)
    assert (recall.estimate.n, recall.max_drop) == (3, 0.02)
    assert set(whole.curves) == {"v1", "v0"}
    assert whole.measured_at == "2026-02-01", "when the later of the two was whole"


def test_the_curve_has_recall_at_every_cutoff_up_to_what_an_answer_consults() -> None:
    both = answer("report-0001", "minutes-0001")
    curve = evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS), measured(both, both, both, NULL)).curves["v1"]
    assert list(curve) == list(range(1, SETTINGS.answering.k + 1))
    # At 1 nothing; from 2 on a and b fully, c half: 2.5 of 3.
    assert [round(curve[k].mean, 4) for k in (1, 2, 6)] == [0, 0.8333, 0.8333]


def test_every_question_has_its_row_with_what_it_is_and_what_came_back() -> None:
    verdicts = (Verdict("recall@6 floor", Outcome.PASS, "fine"),)
    failed = measured(FOUND, Failure("timeout", "too slow"), FOUND, NULL)
    whole = evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS), failed, None, verdicts)
    a, b, _, n = whole.rows
    assert (a.question, a.tenant, a.groups, a.slices["hops"], a.latency_ms) == ("a", A.tenant, A.groups, "1", 0.0)
    assert (a.values["recall@6"], a.failure) == (1.0, "")
    assert (b.values["recall@6"], b.failure, b.answer) == (0.0, "timeout", "")
    assert n.values["recall@6"] is None, "not eligible is not zero"
    assert (whole.verdicts, whole.differences) == (verdicts, ())
    assert whole.floors["recall@6"] == 0.7
    assert (whole.parameters["questions"], whole.parameters["failed"]) == ("4", "1")
    assert whole.parameters["retrieval.k1"] == str(SETTINGS.retrieval.k1)


def test_a_whole_set_has_an_f1_of_abstaining_and_a_share_of_over_refusal() -> None:
    # Declined: b, wrongly, and n, rightly: precision 1 / 2, recall 1, F1 2 / 3. One of three answerable was declined.
    told = summary(SETTINGS, measured(FOUND, NULL, FOUND, NULL))
    assert told["abstention_f1"] == pytest.approx(2 / 3)
    assert told["over_refusal"] == pytest.approx(1 / 3)


def test_attacks_are_one_more_metric_with_families_and_are_no_rows() -> None:
    ids = [attack.id for attack in attacks()]
    tried = replace(ONE, scorecard=with_attacks(ONE.scorecard, {**dict.fromkeys(ids, 1.0), ids[0]: 0.0}))
    whole = evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS), tried, ONE)
    resisted = whole.metrics["attack_resistance"]
    # The first of 126 succeeded, and so one of the 21 of its family.
    assert (resisted[ALL].mean, resisted[ALL].n) == (pytest.approx(125 / 126), 126)
    assert (resisted["family=instruction"].mean, resisted["family=instruction"].n) == (pytest.approx(20 / 21), 21)
    assert (whole.totals["attack_success"], whole.totals["attacks"]) == (pytest.approx(1 / 126), 126)
    assert [row.question for row in whole.rows] == [question.id for question in QUESTIONS]
    assert "attack_resistance" not in whole.rows[0].values
    assert not [d for d in whole.differences if d.metric == "attack_resistance"], "the baseline was not tried"
    without = evaluation(SETTINGS, binding(SETTINGS, "v1", QUESTIONS), ONE)
    assert "attack_success" not in without.totals, "not tried is not resisted"
    assert summary(SETTINGS, ONE)["attack_success"] is None


def test_a_cost_needs_a_price_and_is_the_mean_over_what_answered() -> None:
    bought = answer(usage=USAGE | {"input_tokens": 1000, "output_tokens": 100})
    responses = (bought, bought, Failure("timeout", ""), answer())
    assert summary(SETTINGS, measured(*responses))["cost_usd"] is None, "no price is set: that is not free"
    # Two answers of (1000 * 3 + 100 * 15) / 1e6 = .0045 and one of nothing; the failure does not say what it spent.
    told = summary(PRICED, measured(*responses, settings=PRICED))
    assert told["cost_usd"] == pytest.approx(0.003)
    assert told["cost_usd_per_1000"] == pytest.approx(3.0)


def test_the_share_read_from_the_cache_is_that_of_all_prompts_together() -> None:
    # 900 of 1,000 tokens and 0 of 500: 900 / 1,500. A failure and an answer without a model sent nothing we know of.
    cached = answer(usage=USAGE | {"input_tokens": 60, "cache_read_tokens": 900, "cache_write_tokens": 40})
    cold = answer(usage=USAGE | {"input_tokens": 500})
    told = summary(SETTINGS, measured(cached, cold, Failure("timeout", ""), answer()))
    assert told["cache_read_share"] == pytest.approx(0.6)
    assert summary(SETTINGS, measured(FOUND, FOUND, FOUND, NULL))["cache_read_share"] is None


def test_what_is_said_of_a_whole_set_is_part_of_the_evaluation_where_it_was_measured() -> None:
    made = found(measured(FOUND, NULL, FOUND, NULL))
    assert made.totals["over_refusal"] == pytest.approx(1 / 3)  # type: ignore[attr-defined]
    assert "cost_usd" not in made.totals, "not measured is not zero"  # type: ignore[attr-defined]


def test_the_same_measurements_give_the_same_findings() -> None:
    assert found(ONE) == found(measured(FOUND, MISSED, FOUND, NULL))


def test_the_error_of_the_chances_is_told_over_the_answers_that_bear_one() -> None:
    # The best passage holds evidence once and does not once: |(.5 - 1) + (.5 - 0)| = 0 in the one bin there is.
    whole = answer({"marker": "S1", "doc_id": "minutes-0001", "title": "", "quote": "High water is at nine."})
    right, wrong = whole | {"relevance": 0.5}, MISSED | {"relevance": 0.5}
    assert summary(SETTINGS, measured(right, wrong, FOUND, NULL))["relevance_error"] == 0.0
    assert summary(SETTINGS, measured(wrong, wrong, FOUND, NULL))["relevance_error"] == 0.5


def test_no_chance_in_any_answer_is_no_error_of_zero() -> None:
    assert summary(SETTINGS, ONE)["relevance_error"] is None
