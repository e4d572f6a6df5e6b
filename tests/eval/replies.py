"""A question, replies of the service as the metrics see them, and what a scorecard of them comes to."""

from statistics import fmean
from typing import Any

from domain.releases import Scorecard
from eval.questions import Anchor, Question

TIDE = Anchor("d1", "High water is at nine.")
BELL = Anchor("d2", "The bell rings twice.")
QUESTION = Question(
    id="q1",
    query="When is high water, and how often does the bell ring?",
    answer="9 kilograms",
    type="inference",
    evidence=(TIDE, BELL),
    hops=2,
    slice="dev",
    persona="visitor",
    tenant="harbour",
    groups=frozenset({"public"}),
    aliases=("9 kg",),
)


USAGE = {"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0}


def passage(doc_id: str, quote: str = "Something else.", marker: str = "S1", title: str = "") -> dict[str, str]:
    return {"marker": marker, "doc_id": doc_id, "title": title, "quote": quote}


def answer(*consulted: Any, cited: Any = (), text: str = "", status: str = "complete", **more: Any) -> dict[str, Any]:
    """A reply; passages named by document id alone quote nothing of the gold evidence."""
    passages = [passage(p) if isinstance(p, str) else p for p in consulted]
    fields = {"answer": text, "status": status, "grounding": "grounded", "index_version": "v1", "usage": USAGE}
    return {**fields, "consulted": passages, "citations": list(cited), **more}


def quoting(*cited: dict[str, str], **more: Any) -> dict[str, Any]:
    """A reply that quotes every passage in a sentence of its own, and cites it there."""
    passages = [{**found, "marker": f"S{number}"} for number, found in enumerate(cited, 1)]
    text = " ".join(f"{found['quote'].rstrip('.')} [{found['marker']}]." for found in passages)
    return answer(*passages, cited=passages, text=text, **more)


def means(scorecard: Scorecard) -> dict[str, tuple[float, int]]:
    """Mean and number of eligible questions per metric; metrics without an eligible question are left out."""
    eligible = {name: [v for v in per.values() if v is not None] for name, per in scorecard.values.items()}
    return {name: (fmean(values), len(values)) for name, values in eligible.items() if values}
