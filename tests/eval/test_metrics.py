"""What is measured about one answer: the numbers, who is eligible, and that failing never looks like answering."""

from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Any

import pytest

from domain.costs import Prices
from domain.errors import ConfigError
from domain.releases import Scorecard
from eval.abstention import abstention_f1, abstention_f1_interval
from eval.client import Failure
from eval.metrics import PLAIN, RANKED, cost_usd, metrics
from eval.observed import Limits, Observed
from eval.questions import Anchor, Question
from tests.eval.replies import BELL, QUESTION, TIDE, answer, passage

NULL = replace(QUESTION, answer="", type="null", evidence=(), hops=0, aliases=())
FAILED = Failure("timeout", "too slow")


def value(name: str, question: Question, response: Any) -> float | None:
    return metrics((name,))[name](Observed(question, response))


def about(*gold: str) -> Question:
    """A question whose evidence lies in these documents."""
    return replace(QUESTION, evidence=tuple(Anchor(doc_id, "A sentence.") for doc_id in gold))


# ---------------------------------------------------------------------------------------------- ranked metrics


def test_ndcg_and_recall_of_gold_documents_are_the_ones_on_paper() -> None:
    # Gold d1 and d9; d1 stands at rank 2: gained 1/log2(3) = 0.6309, ideal 1 + 0.6309 = 1.6309.
    found = answer("d5", "d1", "d6")
    assert value("ndcg@3", about("d1", "d9"), found) == pytest.approx(0.6309 / 1.6309, abs=1e-4)
    assert value("recall@3", about("d1", "d9"), found) == 0.5
    assert value("mrr@3", about("d1", "d9"), found) == 0.5
    assert value("recall@1", about("d1", "d9"), found) == 0


def test_a_document_consulted_twice_counts_once_where_it_first_came() -> None:
    found = answer("d1", "d1", "d1", "d2")
    # By documents: d1, d2: both gold at ranks 1 and 2, so nDCG is 1 and not more.
    assert value("ndcg@4", about("d1", "d2"), found) == 1
    assert value("recall@4", about("d1", "d2"), found) == 1
    assert value("mrr@4", about("d2"), found) == 0.5


def test_the_cutoff_counts_passages() -> None:
    found = answer("d1", "d1", "d2")
    assert value("recall@2", about("d1", "d2"), found) == 0.5
    assert value("recall@50", about("d1", "d2"), found) == 1, "a cutoff beyond the list is no error"


def test_evidence_recall_wants_the_whole_gold_sentence_in_its_own_document() -> None:
    whole = passage("d1", "It is said:\n  High water\nis at nine. Then it falls.")  # line breaks do not matter
    assert value("evidence_recall@6", QUESTION, answer(whole)) == 0.5
    assert value("evidence_recall@6", QUESTION, answer(passage("d1", "High water is at ni"))) == 0
    assert value("evidence_recall@6", QUESTION, answer(passage("d2", TIDE.text))) == 0
    assert value("evidence_recall@1", QUESTION, answer("d7", whole)) == 0


def test_a_chain_is_full_only_with_every_link() -> None:
    first, second = passage("d1", TIDE.text), passage("d2", BELL.text)
    assert value("full_chain_recall@6", QUESTION, answer(first)) == 0
    assert value("full_chain_recall@6", QUESTION, answer(first, second)) == 1
    assert value("full_chain_recall@1", QUESTION, answer(first, second)) == 0


# ---------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("gold", "text", "right"),
    [
        ("9 kilograms", "It weighs 9 Kilograms [S1].", True),
        ("9 kilograms", "It weighs 9 kg.", True),  # an accepted spelling
        ("12", "It weighs 120 tonnes.", False),
        ("12", "It weighs 12.", True),
        ("22 February 2020", "On 22 february, 2020.", True),
        ("ＡＲ７", "The AR7.", True),  # full-width letters are the same letters
        ("東京", "答えは東京です。", True),  # no blanks between words
        ("東京", "答えは京都です。", False),
        ("한 바다", "한 바다는 회사입니다.", True),  # a particle follows without a blank
        ("ไทย", "ภาษาไทยครับ", True),
        ("€", "It costs nothing.", False),  # an answer without a word is never found, rather than always
    ],
)
def test_an_answer_is_correct_when_it_stands_in_the_text_as_whole_words(gold: str, text: str, right: bool) -> None:
    assert value("answer_correctness", replace(QUESTION, answer=gold), answer(text=text)) == float(right)


def test_without_a_known_answer_nobody_can_say_whether_one_is_correct() -> None:
    assert value("answer_correctness", replace(QUESTION, answer="", aliases=()), answer(text="Nine.")) is None


def test_only_a_complete_answer_is_scored_as_one() -> None:
    for status in ("truncated", "interrupted", "blocked", "refused", "no_sources"):
        cut = answer(text="It weighs 9 kilograms.", status=status)
        assert (value("answer_correctness", QUESTION, cut), value("answered", QUESTION, cut)) == (0, 0), status
    whole = answer(text="It weighs 9 kilograms.")
    assert (value("answer_correctness", QUESTION, whole), value("answered", QUESTION, whole)) == (1, 1)


def test_abstention_is_about_null_questions_and_answered_about_the_others() -> None:
    declined, given = answer(status="no_sources"), answer(text="Nine.")
    assert (value("abstention", NULL, declined), value("abstention", NULL, given)) == (1, 0)
    assert value("abstention", QUESTION, declined) is None
    assert value("answered", NULL, given) is None
    assert value("answer_correctness", NULL, given) is None


def test_abstaining_is_precise_on_null_questions_and_over_refusal_on_the_others() -> None:
    declined, given = answer(status="no_sources"), answer(text="Nine.")
    assert (value("abstention_precision", NULL, declined), value("abstention_precision", QUESTION, declined)) == (1, 0)
    assert value("abstention_precision", NULL, given) is None, "nothing was declined"
    assert (value("no_over_refusal", QUESTION, declined), value("no_over_refusal", QUESTION, given)) == (0, 1)
    assert value("no_over_refusal", QUESTION, answer(status="refused")) == 0
    assert value("no_over_refusal", QUESTION, answer(text="Nine", status="truncated")) == 1, "cut short, not declined"
    assert value("no_over_refusal", NULL, declined) is None


def test_f1_of_abstaining_is_made_of_precision_and_recall_of_the_whole_set() -> None:
    # 3 of 4 null questions declined, and 1 answerable one: precision 3/4, recall 3/4, F1 3/4.
    recalls = {"n1": 1.0, "n2": 1.0, "n3": 1.0, "n4": 0.0, "a1": None, "a2": None}
    precisions = {"n1": 1.0, "n2": 1.0, "n3": 1.0, "n4": None, "a1": 0.0, "a2": None}

    def f1(recalls: dict[str, float | None], precisions: dict[str, float | None]) -> float | None:
        return abstention_f1(Scorecard("v1", "set", {"abstention": recalls, "abstention_precision": precisions}))

    assert f1(recalls, precisions) == pytest.approx(0.75)
    # Precision 1/2 and recall 1: 2 * .5 / 1.5 = .6667.
    assert f1({"n1": 1.0, "a1": None}, {"n1": 1.0, "a1": 0.0}) == pytest.approx(2 / 3)
    assert f1({"n1": 0.0}, {"n1": None}) == 0, "nothing declined although something was to be"
    assert f1({"n1": 0.0, "a1": None}, {"n1": None, "a1": 0.0}) == 0
    assert f1({"a1": None}, {"a1": 0.0}) is None, "nothing was to be declined"
    assert abstention_f1(Scorecard("v1", "set", {"abstention": recalls})) is None, "half is not measured"


def declining(right: int, missed: int, wrong: int, kept: int) -> Scorecard:
    """So many null questions declined and answered, and answerable ones declined and answered."""
    kinds = [(1.0, 1.0)] * right + [(0.0, None)] * missed + [(None, 0.0)] * wrong + [(None, None)] * kept
    named = {f"q{i}": kind for i, kind in enumerate(kinds)}
    recalls, precisions = ({q: kind[side] for q, kind in named.items()} for side in (0, 1))
    return Scorecard("v1", "set", {"abstention": recalls, "abstention_precision": precisions})


def test_the_interval_of_f1_holds_it_narrows_with_questions_and_repeats() -> None:
    few, many = (abstention_f1_interval(declining(3 * n, n, n, 15 * n), 0.025, 7) for n in (5, 80))
    assert few is not None
    assert many is not None
    assert few[0] < many[0] < 0.75 < many[1] < few[1]
    assert many == abstention_f1_interval(declining(240, 80, 80, 1200), 0.025, 7)
    # Drawing question by question gives the same bounds, but for the noise of 300 draws.
    assert many == pytest.approx(resampled_f1(declining(240, 80, 80, 1200)), abs=0.015)


def resampled_f1(card: Scorecard) -> tuple[float, float]:
    """The slow twin: questions drawn one by one, F1 of each draw by its own function."""
    rng, ids, found = Random(1), list(card.values["abstention"]), []
    for _ in range(300):
        drawn = {f"d{i}": rng.choice(ids) for i in range(len(ids))}
        again = {name: {d: values[q] for d, q in drawn.items()} for name, values in card.values.items()}
        found.append(abstention_f1(Scorecard("v1", "set", again)) or 0.0)
    found.sort()
    return found[7], found[-8]


def test_without_an_f1_there_is_no_interval_and_nothing_ever_declined_is_zero() -> None:
    assert abstention_f1_interval(declining(0, 0, 2, 5), 0.025, 7) is None
    assert abstention_f1_interval(declining(0, 4, 0, 5), 0.025, 7) == (0.0, 0.0)
    assert abstention_f1_interval(declining(6, 0, 0, 9), 0.025, 7) == (1.0, 1.0)


LIMITS = Limits(
    slo_ms=2000,
    cost_cap_usd=0.01,
    prices=Prices(input_usd=3.0, output_usd=15.0, cache_read_usd=0.3, cache_write_usd=3.75),
)
SPENT = {"input_tokens": 1000, "output_tokens": 200, "cache_read_tokens": 10_000, "cache_write_tokens": 400}


def test_a_reply_is_within_the_slo_up_to_the_limit_and_not_measured_without_a_clock() -> None:
    within = PLAIN["within_slo"]
    assert within(Observed(QUESTION, answer(), 2000.0, LIMITS)) == 1
    assert within(Observed(QUESTION, answer(), 2000.1, LIMITS)) == 0
    assert within(Observed(QUESTION, FAILED, 3.0, LIMITS)) == 0, "failing fast is not being fast"
    assert within(Observed(QUESTION, answer(), None, LIMITS)) is None
    assert within(Observed(QUESTION, answer(), 3.0)) is None


def test_the_cost_of_an_answer_counts_every_class_of_tokens_at_its_price() -> None:
    # (1000 * 3 + 200 * 15 + 10000 * .3 + 400 * 3.75) / 1e6 = (3000 + 3000 + 3000 + 1500) / 1e6 = .0105 dollars.
    paid = Observed(QUESTION, answer(usage=SPENT), 1.0, LIMITS)
    assert cost_usd(paid) == pytest.approx(0.0105)
    assert PLAIN["within_cost"](paid) == 0
    assert PLAIN["within_cost"](replace(paid, limits=replace(LIMITS, cost_cap_usd=0.0105))) == 1
    assert cost_usd(Observed(QUESTION, answer(), 1.0, LIMITS)) == 0, "an answer without a model costs nothing"
    assert cost_usd(Observed(QUESTION, FAILED, 1.0, LIMITS)) is None, "what a failure spent is not known"
    assert PLAIN["within_cost"](Observed(QUESTION, FAILED, 1.0, LIMITS)) == 0
    assert PLAIN["within_cost"](Observed(QUESTION, answer(usage=SPENT))) is None
    unpriced = replace(paid, limits=replace(LIMITS, prices=None))
    assert cost_usd(unpriced) is PLAIN["within_cost"](unpriced) is None, "no price is known: that is not free"
    silent = replace(paid, response=answer(usage={**SPENT, "measured": False}))
    assert cost_usd(silent) is None, "a model that does not say what it used has cost something"


def test_the_tokens_of_a_rewrite_cost_too_and_a_rewriter_without_a_price_makes_the_cost_unknown() -> None:
    rewritten = answer(usage={**SPENT, "rewriting": {**dict.fromkeys(SPENT, 0), "input_tokens": 2000}})
    priced = replace(LIMITS, rewriter_prices=Prices(0.1, 0.4, 0.0, 0.0))
    # .0105 of the answer + 2000 * .1 / 1e6
    assert cost_usd(Observed(QUESTION, rewritten, 1.0, priced)) == pytest.approx(0.0107)
    assert cost_usd(Observed(QUESTION, rewritten, 1.0, LIMITS)) is None


def test_supported_is_what_the_service_found_in_its_own_sentences() -> None:
    wrong = {"text": "It holds 9 kg.", "markers": ["S1"], "lacking": ["9 kg"]}
    assert value("supported", QUESTION, answer(unsupported=[])) == 1
    assert value("supported", QUESTION, answer(unsupported=[wrong])) == 0
    assert value("supported", QUESTION, answer(status="no_sources", unsupported=[])) is None
    assert value("supported", QUESTION, answer()) is None  # from a service that does not check
    assert value("supported", QUESTION, Failure("timeout", "")) == 0


def test_grounded_is_the_services_word_about_answers_it_gave() -> None:
    assert value("grounded", QUESTION, answer()) == 1
    assert value("grounded", QUESTION, answer(grounding="partial")) == 0
    assert value("grounded", QUESTION, answer(status="no_sources", grounding="ungrounded")) is None


# ---------------------------------------------------------------------------------------------- eligibility


EVERY = (*(f"{name}@6" for name in RANKED), *PLAIN)


def test_questions_without_evidence_are_not_eligible_where_evidence_is_measured() -> None:
    for name in (*(f"{ranked}@6" for ranked in RANKED), "citation_recall"):
        assert value(name, NULL, answer("d1", "d2")) is None
        assert value(name, NULL, FAILED) is None


def test_a_failed_request_scores_zero_wherever_it_is_eligible() -> None:
    by_question = {name: value(name, QUESTION, FAILED) for name in EVERY}
    assert by_question.pop("abstention") is None
    assert set(by_question.values()) == {0.0}
    assert (value("abstention", NULL, FAILED), value("success", NULL, FAILED)) == (0, 0)


def test_failing_more_never_looks_better() -> None:
    """Whichever reply is replaced by a failure, no mean grows."""
    random = Random(5)
    quotes = [passage("d1", TIDE.text), passage("d2", BELL.text), passage("d1"), passage("d3")]
    for _ in range(40):
        seen = []
        for _ in range(4):
            consulted = random.sample(quotes, random.randint(0, 4))
            cited = [
                {**found, "marker": f"S{number}"}
                for number, found in enumerate(random.sample(consulted, random.randint(0, len(consulted))), 1)
            ]
            reply = answer(
                *consulted,
                cited=cited,
                text=" ".join(
                    [random.choice(["It is 9 kg.", "Perhaps."]), *(f"{c['quote']} [{c['marker']}]" for c in cited)]
                ),
                status=random.choice(["complete", "no_sources", "truncated"]),
                grounding=random.choice(["grounded", "partial"]),
            )
            seen.append(Observed(random.choice([QUESTION, NULL]), reply, random.choice([90.0, 9000.0]), LIMITS))
        place = random.randrange(len(seen))
        worse = [*seen[:place], replace(seen[place], response=FAILED), *seen[place + 1 :]]
        for name, measure in metrics(EVERY).items():
            before = [v for o in seen if (v := measure(o)) is not None]
            after = [v for o in worse if (v := measure(o)) is not None]
            assert len(after) >= len(before), name
            assert all(0 <= v <= 1 for v in before)
            if before:
                assert fmean(after) <= fmean(before) + 1e-12, (name, seen, place)


# ---------------------------------------------------------------------------------------------- names


def test_every_unknown_name_is_told_at_once_with_those_there_are() -> None:
    wrong = (
        "recall",
        "recall@0",
        "recall@06",
        "recall@-1",
        "recall@٦",
        "citation_recall@6",
        "nonsense",
        "",
        "ndcg@1.5",
    )
    with pytest.raises(ConfigError) as caught:
        metrics(("mrr@10", *wrong))
    assert all(repr(name) in str(caught.value) for name in wrong)
    assert "'mrr@10'" not in str(caught.value)
    assert "full_chain_recall@k, citation_precision" in str(caught.value)
