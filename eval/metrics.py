"""What is measured about one answer, per question first: every value is in [0, 1], higher is better.

None means that the question is not eligible for the metric, which is not zero: nothing was relevant to it, or the
metric is about another kind of question. A failed request scores zero wherever the question is eligible, and where
eligibility depends on what came back it counts as eligible, so that failing more never looks like answering better.

RANKED and PLAIN at the foot are the tables, `metrics` reads their names. Ranked metrics (ranking.py) are written with
their cutoff, `recall@6`. Where sentences and passages are compared is citations.py.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

from domain import costs
from domain.errors import ConfigError
from domain.specifics import WORD
from domain.types import Grounding, Status, Usage
from eval.abstention import abstention, abstention_precision, no_over_refusal
from eval.citations import (
    citation_precision,
    citation_recall,
    sentence_citation_precision,
    sentence_citation_recall,
)
from eval.client import Body, Failure
from eval.observed import Observed
from eval.ranking import evidence_recall, full_chain_recall, mrr, ndcg, recall


def answer_correctness(observed: Observed) -> float | None:
    """1 when the answer, or an accepted spelling of it, stands in a completed text as whole words.

    Containment, not understanding: "not 9 kilograms" contains 9 kilograms. Not eligible without a known answer.
    """
    if not observed.answerable or not observed.question.answer:
        return None
    text, accepted = folded(observed.text), (observed.question.answer, *observed.question.aliases)
    stated = any(folded(a) in text for a in accepted if folded(a).strip())
    return float(stated and observed.status == Status.COMPLETE)


def answered(observed: Observed) -> float | None:
    """On questions the library can answer: 1 when a whole answer came, neither declined nor cut short."""
    return float(observed.status == Status.COMPLETE) if observed.answerable else None


def grounded(observed: Observed) -> float | None:
    """On answers the service did not decline: 1 when every claim carried a citation, by the service's own rule."""
    if isinstance(observed.response, Failure):
        return 0.0
    return None if observed.abstained else float(observed.response["grounding"] == Grounding.GROUNDED)


def supported(observed: Observed) -> float | None:
    """On answers the service did not decline: 1 when every sentence says only what the passages it cites state.

    By the service's own rule for numbers, dates, identifiers and names. A reply that says nothing of it is not
    eligible: it comes from before the rule.
    """
    if isinstance(observed.response, Failure):
        return 0.0
    if observed.abstained or "unsupported" not in observed.response:
        return None
    return float(not observed.response["unsupported"])


def success(observed: Observed) -> float | None:
    """1 when the request gave an answer of any kind; always eligible."""
    return float(not observed.failed)


def within_slo(observed: Observed) -> float | None:
    """1 when the reply came within the limit; a failure never does."""
    if observed.failed:
        return 0.0
    if observed.latency_ms is None or observed.limits is None:
        return None
    return float(observed.latency_ms <= observed.limits.slo_ms)


def within_cost(observed: Observed) -> float | None:
    """1 when the tokens of the answer cost at most the cap; a failure buys nothing."""
    if observed.failed:
        return 0.0
    cost = cost_usd(observed)
    return None if cost is None or observed.limits is None else float(cost <= observed.limits.cost_cap_usd)


def cost_usd(observed: Observed) -> float | None:
    """Dollars that the tokens of the answer and of its rewrite cost, by class. Reported as it is: no metric in [0, 1].

    None for a failure, whose reply does not say what was spent, and without prices.
    """
    usage, limits = used(observed), observed.limits
    if usage is None or limits is None or isinstance(observed.response, Failure):
        return None
    told = observed.response["usage"].get("rewriting")
    rewriting = Usage() if told is None else _usage(told)  # a reply from before that was told: rules asked nobody
    return costs.answer_cost_usd(usage, limits.prices, rewriting, limits.rewriter_prices)


def used(observed: Observed) -> Usage | None:
    """The tokens of the generating model by class; None for a failure, whose reply does not say what was spent."""
    return None if isinstance(observed.response, Failure) else _usage(observed.response["usage"])


def _usage(told: Body) -> Usage:
    return Usage(
        input_tokens=told["input_tokens"],
        output_tokens=told["output_tokens"],
        cache_read_tokens=told["cache_read_tokens"],
        cache_write_tokens=told["cache_write_tokens"],
        measured=told.get("measured", True),  # a reply from before that was told has counts
    )


def folded(text: str) -> str:
    """Case and punctuation folded; a word is bounded by blanks, so that 12 is not found in 120."""
    return f" {' '.join(WORD.findall(unicodedata.normalize('NFKC', text).casefold()))} "


RANKED: dict[str, Callable[[Observed, int], float | None]] = {
    "recall": recall,
    "ndcg": ndcg,
    "mrr": mrr,
    "evidence_recall": evidence_recall,
    "full_chain_recall": full_chain_recall,
}
PLAIN: dict[str, Callable[[Observed], float | None]] = {
    "citation_precision": citation_precision,
    "citation_recall": citation_recall,
    "sentence_citation_precision": sentence_citation_precision,
    "sentence_citation_recall": sentence_citation_recall,
    "answer_correctness": answer_correctness,
    "abstention": abstention,
    "abstention_precision": abstention_precision,
    "no_over_refusal": no_over_refusal,
    "answered": answered,
    "grounded": grounded,
    "supported": supported,
    "success": success,
    "within_slo": within_slo,
    "within_cost": within_cost,
}


def metrics(names: Sequence[str]) -> dict[str, Callable[[Observed], float | None]]:
    """The metrics that names stand for: `citation_recall`, or a ranked one with its cutoff, `recall@6`.

    Raises ConfigError naming every unknown one, and those there are.
    """
    found = {name: _metric(name) for name in names}
    if unknown := [repr(name) for name, measure in found.items() if measure is None]:
        known = ", ".join([*(f"{ranked}@k" for ranked in RANKED), *PLAIN])
        raise ConfigError(f"There is no metric {' or '.join(unknown)}: there are {known}.")
    return {name: measure for name, measure in found.items() if measure is not None}


def _metric(name: str) -> Callable[[Observed], float | None] | None:
    base, at, cutoff = name.partition("@")
    if not at:
        return PLAIN.get(base)
    # One spelling per metric, or recall@6 and recall@06 would be two gates.
    if base in RANKED and re.fullmatch("[1-9][0-9]{0,3}", cutoff):
        return lambda observed: RANKED[base](observed, int(cutoff))
    return None
