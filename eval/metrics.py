"""What is measured about one answer, per question first: every value is in [0, 1], higher is better.

None means that the question is not eligible for the metric, which is not zero: nothing was relevant to it, or the
metric is about another kind of question. A failed request scores zero wherever the question is eligible, and where
eligibility depends on what came back it counts as eligible, so that failing more never looks like answering better.

Ranked metrics are written with their cutoff, `recall@6`. The cutoff counts passages in the order they were consulted,
the ranks count documents: a document has the rank where it first came, and comes once. The order given is the
ranking, so there are no ties, and relevance is binary: a document of the gold evidence is worth 1, any other 0.
RANKED and PLAIN at the foot are the tables, `metrics` reads their names.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from statistics import fmean

from domain.errors import ConfigError
from domain.types import Grounding, Status
from eval.client import Body, Failure
from eval.questions import Anchor, Question


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
    def failed(self) -> bool:
        """True when the request gave no answer of any kind."""
        return isinstance(self.response, Failure)

    @property
    def status(self) -> str:
        """How the answer ended, in the service's words; empty when the request failed."""
        return "" if isinstance(self.response, Failure) else self.response["status"]

    @property
    def abstained(self) -> bool:
        """True when the service itself said that the library does not cover the question. A failure says nothing."""
        return self.status == Status.NO_SOURCES

    @property
    def text(self) -> str:
        """The text of the answer; empty when the request failed."""
        return "" if isinstance(self.response, Failure) else self.response["answer"]

    def passages(self, kind: str) -> Sequence[Body]:
        """The `citations` or the `consulted` passages; none when the request failed."""
        return [] if isinstance(self.response, Failure) else self.response[kind]


def recall(observed: Observed, k: int) -> float | None:
    """Share of the gold documents among the documents of the first `k` consulted passages."""
    gold = _gold(observed)
    return len(gold & set(_consulted(observed, k))) / len(gold) if gold else None


def ndcg(observed: Observed, k: int) -> float | None:
    """Normalised discounted cumulative gain of the gold documents; the ideal ranking has all of them, found or not.

    Source: Järvelin and Kekäläinen, TOIS 2002, with the discount 1 / log2(rank + 1) of trec_eval.
    """
    gold = _gold(observed)
    if not gold:
        return None
    order = _consulted(observed, k)
    gained = sum(1 / log2(rank + 1) for rank, doc_id in enumerate(order, 1) if doc_id in gold)
    return gained / sum(1 / log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))


def mrr(observed: Observed, k: int) -> float | None:
    """Reciprocal rank of the first gold document among the documents of the first `k` consulted passages."""
    gold = _gold(observed)
    if not gold:
        return None
    return next((1 / rank for rank, doc_id in enumerate(_consulted(observed, k), 1) if doc_id in gold), 0.0)


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
    """Share of the citations that hold: the cited passage contains a gold sentence, whole, of its own document.

    Every fact on the way to an answer has its gold sentence, so citing an intermediate hop holds too. A passage that
    says the same in other words counts as wrong: a lower bound, which no lucky word can raise. Not eligible without a
    citation: missing ones are citation recall's business. On a null question every citation is wrong.
    """
    if observed.failed:
        return 0.0
    cited = observed.passages("citations")
    return fmean(float(_holds(observed.question, passage)) for passage in cited) if cited else None


def answer_correctness(observed: Observed) -> float | None:
    """1 when the answer, or an accepted spelling of it, stands in a completed text as whole words.

    Containment, not understanding: "not 9 kilograms" contains 9 kilograms.
    """
    if not observed.answerable:
        return None
    text, accepted = _words(observed.text), (observed.question.answer, *observed.question.aliases)
    stated = any(_words(a) in text for a in accepted if _words(a).strip())
    return float(stated and observed.status == Status.COMPLETE)


def abstention(observed: Observed) -> float | None:
    """On questions the library cannot answer: 1 when the service said so."""
    return None if observed.answerable else float(observed.abstained)


def answered(observed: Observed) -> float | None:
    """On questions the library can answer: 1 when a whole answer came, neither declined nor cut short."""
    return float(observed.status == Status.COMPLETE) if observed.answerable else None


def grounded(observed: Observed) -> float | None:
    """On answers the service did not decline: 1 when every claim carried a citation, by the service's own rule."""
    if isinstance(observed.response, Failure):
        return 0.0
    return None if observed.abstained else float(observed.response["grounding"] == Grounding.GROUNDED)


def success(observed: Observed) -> float | None:
    """1 when the request gave an answer of any kind; always eligible."""
    return float(not observed.failed)


def _gold(observed: Observed) -> set[str]:
    return {anchor.doc_id for anchor in observed.question.evidence}


def _consulted(observed: Observed, k: int) -> list[str]:
    """The documents of the first `k` consulted passages, each once, in the order they first came."""
    return list(dict.fromkeys(passage["doc_id"] for passage in observed.passages("consulted")[:k]))


def _anchors_within(observed: Observed, passages: Sequence[Body]) -> float | None:
    anchors = observed.question.evidence
    return fmean(float(any(_contains(p, anchor) for p in passages)) for anchor in anchors) if anchors else None


def _holds(question: Question, passage: Body) -> bool:
    return any(_contains(passage, anchor) for anchor in question.evidence)


def _contains(passage: Body, anchor: Anchor) -> bool:
    return passage["doc_id"] == anchor.doc_id and _spaces(anchor.text) in _spaces(passage["quote"])


def _spaces(text: str) -> str:
    """White space folded, because chunking may join the lines of a paragraph."""
    return " ".join(text.split())


def _words(text: str) -> str:
    """Case and punctuation folded; a word is bounded by blanks, so that 12 is not found in 120."""
    return f" {' '.join(_WORD.findall(unicodedata.normalize('NFKC', text).casefold()))} "


# Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean: words stand without blanks between them, or take endings,
# so every character is a word of its own.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")

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
