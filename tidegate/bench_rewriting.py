"""`tidegate bench rewriting`: what making follow-ups stand alone is worth, between the question as typed and a human's.

The rewriter without a model, over the lexical arm and whole documents: no encoder, so a difference is the words' doing.
First turns are asked too, as people ask them: a rewriter has to leave them alone.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import CorpusError
from tidegate.bench_lines import Figure, told
from tidegate.bench_quality import drawn
from tidegate.config import AsJson
from tidegate.console import Code
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from eval.questions import Question

CUTOFF = 10
HUMAN = "queries.rewrite.jsonl"
Search = Callable[[str], Sequence[str]]  # a query to document ids, best first


def rewriting(
    beir: Annotated[list[Path], typer.Option(help="Conversations in BEIR's layout with human rewrites; may repeat.")],
    questions: Annotated[int, typer.Option(min=0, help="Ask only so many, drawn by their ids; 0 is all.")] = 0,
    as_json: AsJson = False,
) -> Code:
    """Measure recall@10 of follow-ups, typed and rewritten.

    Differences are paired, with 95 % intervals; `reached` is the share of the way from typed to human.
    """
    with progress() as report:
        figures = [figure for folder in beir for figure in measured(folder, questions, report)]
    return told(figures, as_json)


def measured(folder: Path, count: int, report: Report) -> list[Figure]:
    """The figures of one collection. Raises CorpusError where it has no human rewrites or nothing to score."""
    from domain.types import Scope
    from eval.collection import load_beir, load_beir_questions

    human, _ = load_beir(folder, None, HUMAN)
    everybody = Scope("bench", frozenset({"everybody"}))
    scorable = {q.id: q for q in load_beir_questions(folder, everybody) if q.evidence and q.id in human}
    if not scorable:
        raise CorpusError(f"{folder} has no judged question with a rewrite in {HUMAN}: name another collection.")
    asked = [scorable[key] for key in drawn(list(scorable), count)]
    report("indexing", 0, 0)
    search = lexical(folder)
    ways = {
        "typed": {q.id: q.query for q in asked},
        "rules": asyncio.run(_rewritten(asked)),
        "human": {q.id: human[q.id] for q in asked},
    }
    recalls = {}
    for done, (way, texts) in enumerate(ways.items(), 1):
        recalls[way] = {q.id: recall(search(texts[q.id]), {anchor.doc_id for anchor in q.evidence}) for q in asked}
        report("searching", done, len(ways))
    changed = sum(ways["rules"][q.id] != q.query for q in asked)
    return _figures(folder.resolve().name, recalls, changed)


def recall(found: Sequence[str], relevant: set[str]) -> float:
    """Share of the relevant documents among the first ten."""
    return len(relevant.intersection(found[:CUTOFF])) / len(relevant)


def lexical(folder: Path) -> Search:
    """A search over the documents of a collection, whole, by words alone."""
    import numpy as np

    from retrieval.arms import Visible
    from retrieval.documents import Corpus
    from retrieval.lexical import Bm25Arm

    corpus = Corpus(folder, format="beir", default_groups=frozenset({"everybody"}))
    documents = sorted(corpus, key=lambda document: document.doc_id)
    arm = Bm25Arm.build(f"{document.title}\n{document.text}" for document in documents)
    everyone = Visible(np.ones(len(documents), np.bool_))
    return lambda text: [documents[row].doc_id for row in arm.search(text, CUTOFF, everyone).rows]


async def _rewritten(asked: "Sequence[Question]") -> dict[str, str]:
    from domain.prompt import recent
    from generation.rewriting import RulesRewriter
    from tidegate.settings import Answering

    rules, turns = RulesRewriter(), Answering().history_turns
    return {q.id: (await rules.rewrite(q.query, recent(q.history, turns))).query.text for q in asked}


def _figures(name: str, recalls: Mapping[str, Mapping[str, float]], changed: int) -> list[Figure]:
    from eval.ranking_gain import gain

    over_typed, to_human = gain(recalls["typed"], recalls["rules"]), gain(recalls["rules"], recalls["human"])
    typed, rules, human = over_typed.before, over_typed.after, to_human.after
    reached = None if human == typed else (rules - typed) / (human - typed)
    return [
        Figure(f"{name}.questions", over_typed.n, "questions"),
        Figure(f"{name}.rewritten", changed, "questions"),
        Figure(f"{name}.recall@{CUTOFF}", rules, "", {"typed": typed, "human": human}),
        Figure(f"{name}.gain", over_typed.difference, f"95 % interval {over_typed.low:+.3f} to {over_typed.high:+.3f}"),
        Figure(f"{name}.gap", to_human.difference, f"95 % interval {to_human.low:+.3f} to {to_human.high:+.3f}"),
        Figure(f"{name}.reached", reached, "of the way from typed to human"),
    ]
