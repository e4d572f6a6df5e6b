"""Thresholds: what they read, what they count, and that they can fail."""

import pytest

from load.samples import Sample
from load.slo import Outcome, judged, threshold, worst

OK = [Sample("answer", float(n), complete_ms=float(n), citations_complete=True) for n in range(1, 101)]
FAILED = Sample("answer", 0.5, failure="HTTP 503 overloaded")


def outcome(text: str, samples: list[Sample], seconds: float = 10.0) -> Outcome:
    return judged(samples, [threshold(text)], seconds)[1].outcome


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("p95_complete_ms=95", True),  # the 95th of 1..100
        ("p95_complete_ms=94.9", False),
        ("p99.9_complete_ms=99", False),
        ("answer.p50_complete_ms=50", True),
        ("error_share=0", True),
        ("citations_share=1", True),
        ("requests_per_s=10", True),  # 100 in 10 s
        ("requests_per_s=10.1", False),
    ],
)
def test_a_bound_is_held_or_missed(text: str, held: bool) -> None:
    assert outcome(text, OK) is (Outcome.HELD if held else Outcome.MISSED)


def test_a_failed_request_is_in_the_share_of_errors_and_in_no_latency() -> None:
    slow_failures = [FAILED] * 25
    assert outcome("p99_complete_ms=99", [*OK, *slow_failures]) is Outcome.HELD
    verdict = judged([*OK, *slow_failures], [threshold("error_share=0.19")], 10.0)[1]
    assert (verdict.outcome, verdict.value, verdict.count) == (Outcome.MISSED, 0.2, 125)  # 25 of 125


def test_a_run_without_a_success_has_failed_whatever_was_asked() -> None:
    for samples in ([], [FAILED]):
        verdicts = judged(samples, [threshold("p95_complete_ms=100000")], 10.0)
        assert [one.outcome for one in verdicts] == [Outcome.MISSED, Outcome.NOT_MEASURED]
        assert worst(verdicts) is Outcome.MISSED


def test_what_nothing_was_measured_of_has_not_passed() -> None:
    assert outcome("stream.p95_first_ms=800", OK) is Outcome.NOT_MEASURED
    assert outcome("cost_usd_per_1000=5", OK) is Outcome.NOT_MEASURED, "nobody said what it cost, which is not 0"
    assert worst(judged(OK, [threshold("p95_first_ms=800")], 10.0)) is Outcome.NOT_MEASURED


def test_a_cost_is_known_only_when_that_of_every_answer_is() -> None:
    paid = [Sample("answer", 1.0, 5.0, citations_complete=True, cost_usd=0.002)] * 3
    assert judged(paid, [threshold("cost_usd_per_1000=2")], 10.0)[1].value == pytest.approx(2.0)
    assert outcome("cost_usd_per_1000=2", [*paid, OK[0]]) is Outcome.NOT_MEASURED


def test_citations_are_counted_where_a_reply_has_them_to_have() -> None:
    search, broken = Sample("search", 1.0, 3.0), Sample("answer", 1.0, 3.0, citations_complete=False)
    verdict = judged([*OK[:3], broken, search], [threshold("citations_share=0.9")], 10.0)[1]
    assert (verdict.outcome, verdict.value, verdict.count) == (Outcome.MISSED, 0.75, 4)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p95_complete=100", "is none, wanted"),
        ("p96_complete_ms=100", "is none, wanted"),
        ("chat.p95_complete_ms=100", "is none, wanted"),
        ("p95_complete_ms", "is none, wanted"),
        ("p95_complete_ms=", "has no bound"),
        ("p95_complete_ms=-1", "has no bound"),
        ("p95_complete_ms=nan", "has no bound"),
        ("error_share=inf", "has no bound"),
        ("p95_kind=1", "is none, wanted"),
    ],
)
def test_a_threshold_that_is_none_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        threshold(text)
    assert repr(text) in str(refused.value)
