"""What is measured about one answer, per question first: every value is in [0, 1], higher is better.

None means the question is not eligible for the metric, which is not zero. A failed request scores zero wherever the
question is eligible, so that failing more never looks like answering better. Ranked metrics are written with their
cutoff, `recall@6`; RANKED and PLAIN at the foot are the tables, `metric` reads a name.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from statistics import fmean

from domain.errors import ConfigError
from eval.client import Body, Failure
from eval.questions import Question


@dataclass(frozen=True, slots=True)
class Observed:
    """One question with what the service gave back for it."""

    question: Question
    response: Body | Failure

    @property
    def answerable(self) -> bool:
        """True when the library holds the answer for this reader."""
        return self.question.type != "null"

    @property
    def abstained(self) -> bool:
        """True when the service itself said that the library does not cover the question. A failure says nothing."""
        return not isinstance(self.response, Failure) and self.response["status"] == "no_sources"

    def passages(self, kind: str) -> Sequence[Body]:
        """The `citations` or the `consulted` passages; none when the request failed."""
        return [] if isinstance(self.response, Failure) else self.response[kind]


def recall(observed: Observed, k: int) -> float | None:
    """Share of the gold documents among the documents of the first `k` consulted passages."""
    gold = _gold(observed)
    return len(gold & set(_consulted(observed, k))) / len(gold) if gold else None


def ndcg(observed: Observed, k: int) -> float | None:
    """Normalised discounted cumulative gain of the gold documents, binary gain, ideal over all gold documents.

    A document counts where it is first consulted. Source: Järvelin and Kekäläinen, TOIS 2002.
    """
    gold = _gold(observed)
    if not gold:
        return None
    order = list(dict.fromkeys(_consulted(observed, k)))
    gained = sum(1 / log2(rank + 1) for rank, doc_id in enumerate(order, 1) if doc_id in gold)
    return gained / sum(1 / log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))


def mrr(observed: Observed, k: int) -> float | None:
    """Reciprocal rank, by document, of the first gold document among the first `k` consulted passages."""
    gold = _gold(observed)
    if not gold:
        return None
    order = list(dict.fromkeys(_consulted(observed, k)))
    return next((1 / rank for rank, doc_id in enumerate(order, 1) if doc_id in gold), 0.0)


def evidence_recall(observed: Observed, k: int) -> float | None:
    """Share of the gold sentences that stand, whole, in one of the first `k` consulted passages."""
    return _anchors_within(observed, observed.passages("consulted")[:k])


def full_chain_recall(observed: Observed, k: int) -> float | None:
    """1 when every gold sentence was consulted, otherwise 0: an answer over several hops needs them all."""
    share = evidence_recall(observed, k)
    return None if share is None else float(share == 1.0)


def citation_recall(observed: Observed) -> float | None:
    """Share of the gold sentences that stand in a cited passage."""
    return _anchors_within(observed, observed.passages("citations"))


def citation_precision(observed: Observed) -> float | None:
    """Share of the citations that hold: the cited passage contains a gold sentence, or states the answer itself.

    Not eligible without a citation on a question that the library answers: missing citations are citation recall's
    business. On a null question every citation is wrong.
    """
    cited = observed.passages("citations")
    if not cited:
        return None
    return fmean(float(_supports(observed.question, passage)) for passage in cited)


def answer_correctness(observed: Observed) -> float | None:
    """1 when the answer, or an accepted spelling of it, stands in the text as whole words."""
    if not observed.answerable:
        return None
    if isinstance(observed.response, Failure):
        return 0.0
    text = _words(observed.response["answer"])
    accepted = (observed.question.answer, *observed.question.aliases)
    return float(any(_words(a) in text for a in accepted if a.strip()))


def abstention(observed: Observed) -> float | None:
    """On questions the library cannot answer: 1 when the service said so."""
    return None if observed.answerable else float(observed.abstained)


def answered(observed: Observed) -> float | None:
    """On questions the library can answer: 1 when the service did not decline. Its complement is over-refusal."""
    if not observed.answerable:
        return None
    return float(not isinstance(observed.response, Failure) and not observed.abstained)


def grounded(observed: Observed) -> float | None:
    """On answers the service gave: 1 when every claim carried a citation, by the service's own rule."""
    if isinstance(observed.response, Failure) or observed.abstained:
        return None
    return float(observed.response["grounding"] == "grounded")


def success(observed: Observed) -> float | None:
    """1 when the request gave an answer of any kind; always eligible."""
    return float(not isinstance(observed.response, Failure))


def _gold(observed: Observed) -> set[str]:
    return {anchor.doc_id for anchor in observed.question.evidence}


def _consulted(observed: Observed, k: int) -> list[str]:
    return [passage["doc_id"] for passage in observed.passages("consulted")[:k]]


def _anchors_within(observed: Observed, passages: Sequence[Body]) -> float | None:
    anchors = observed.question.evidence
    if not anchors:
        return None
    texts = [(passage["doc_id"], _spaces(passage["quote"])) for passage in passages]
    return fmean(float(any(a.doc_id == doc and _spaces(a.text) in text for doc, text in texts)) for a in anchors)


def _supports(question: Question, passage: Body) -> bool:
    text = _spaces(passage["quote"])
    if any(a.doc_id == passage["doc_id"] and _spaces(a.text) in text for a in question.evidence):
        return True
    gold = {a.doc_id for a in question.evidence}
    return (
        passage["doc_id"] in gold and bool(question.answer) and f" {_words(question.answer).strip()} " in _words(text)
    )


def _spaces(text: str) -> str:
    """White space folded, because chunking may join the lines of a paragraph."""
    return " ".join(text.split())


def _words(text: str) -> str:
    """Case and punctuation folded; a word is bounded by blanks, so that 12 is not found in 120."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} "


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
    "answer_correctness": answer_correctness,
    "abstention": abstention,
    "answered": answered,
    "grounded": grounded,
    "success": success,
}


def metric(name: str) -> Callable[[Observed], float | None]:
    """The metric a name stands for: `citation_recall`, or a ranked one with its cutoff, `recall@6`.

    Raises ConfigError naming the metrics there are.
    """
    base, at, cutoff = name.partition("@")
    if not at and base in PLAIN:
        return PLAIN[base]
    if at and base in RANKED and cutoff.isdecimal() and int(cutoff) > 0:
        return lambda observed: RANKED[base](observed, int(cutoff))
    known = ", ".join([*(f"{ranked}@k" for ranked in RANKED), *PLAIN])
    raise ConfigError(f"There is no metric {name!r}: there are {known}.")
