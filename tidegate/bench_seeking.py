"""`tidegate bench seeking`: the two rounds and the agent on the sample library's questions that need several passages.

Only the gathering is run, with the configured encoder, fusion and reranker, and without a generator: what a question
needs is known by construction, so nothing has to be judged. Dev questions alone: the agent's rules may be changed after
looking at them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import CorpusError
from domain.types import Mode, Retrieval
from tidegate.bench_lines import Figure, told
from tidegate.bench_quality import drawn
from tidegate.config import AsJson
from tidegate.console import Code, loaded
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from domain.gathering import Gathering
    from domain.ports import Stages
    from domain.types import Chunk, Query, Rules, Scope
    from eval.questions import Question
    from eval.seeking_score import SeekingScore
    from retrieval.index import HybridIndex
    from tidegate.settings import Settings

AGENT_STEPS = 4  # where the settings ask for rounds


def seeking(
    ctx: typer.Context,
    questions: Annotated[int, typer.Option(min=0, help="Ask only so many, drawn by their ids; 0 is all.")] = 200,
    as_json: AsJson = False,
) -> Code:
    """Measure what an agent finds and when it stops.

    Beside the two rounds, on dev questions of the sample library that need two passages or more.
    """
    with progress() as report:
        figures = measured(loaded(ctx).settings, questions, report)
    return told(figures, as_json)


def measured(settings: "Settings", count: int, report: Report) -> list[Figure]:
    """The figures, after building the sample library where it is not built yet."""
    from domain.ports import Stages
    from eval.questions import load
    from eval.seeking_score import run_of, score
    from generation.extractive import ExtractiveGenerator
    from tidegate.build import build_version
    from tidegate.compose import make_embedder, make_reranker, make_rewriter, make_rules, open_index
    from tidegate.sample import corpus_path, make_sample, questions_path

    make_sample(settings)
    at_home = settings.model_copy(update={"data_dir": settings.data_dir / "bench" / "seeking"})
    version = build_version(at_home, corpus_path(settings), report).version.id
    found = _Opened(open_index(at_home, make_embedder(at_home), version), version)
    reranker = None if settings.rerank.backend == "none" else make_reranker(settings, hurried=False)
    stages = Stages(make_rewriter(settings), found, reranker, ExtractiveGenerator())
    every = {q.id: q for q in load(questions_path(settings)) if q.slice == "dev" and len(_needed(q)) > 1}
    if not every:
        raise CorpusError(
            "The sample library has no dev question that needs two documents: set sample.questions higher."
        )
    asked = [every[key] for key in drawn(list(every), count)]
    rules = make_rules(settings)
    agent = replace(rules, agent_steps=rules.agent_steps or AGENT_STEPS)
    scores = {}
    for name, chosen in (("rounds", replace(rules, agent_steps=0)), ("agent", agent)):
        gathered = asyncio.run(_gathered(asked, stages, chosen, version, name, report))
        scores[name] = score(
            [run_of(each.rounds, each.stopped, _needed(q)) for q, each in zip(asked, gathered, strict=True)]
        )
    return _figures(scores["rounds"], scores["agent"])


class _Opened:
    """The Retriever over one open version, without a registry around it."""

    def __init__(self, index: "HybridIndex", version: str) -> None:
        self._index, self._version = index, version

    async def retrieve(
        self,
        query: "Query",
        scope: "Scope",
        version: str,  # noqa: ARG002
        n: int,
        mode: Mode = Mode.HYBRID,
    ) -> Retrieval:
        """As Retriever.retrieve; whatever version is asked for, this one answers and says so."""
        return Retrieval(self._index.search(query, scope, n, mode), self._version)

    async def chunks(self, ids: Sequence[str], scope: "Scope", version: str) -> "tuple[Chunk, ...]":  # noqa: ARG002
        """As Retriever.chunks."""
        return self._index.chunks(ids, scope)


def _needed(question: "Question") -> frozenset[str]:
    return frozenset(anchor.doc_id for anchor in question.evidence)


async def _gathered(
    asked: "Sequence[Question]", stages: "Stages", rules: "Rules", version: str, name: str, report: Report
) -> "list[Gathering]":
    from time import perf_counter

    from domain.gathering import Gathering
    from domain.naming import Naming
    from domain.types import Ask, Query, Session

    done = []
    for number, question in enumerate(asked, 1):
        ask = Ask(question.query, Session("bench"), question.scope, version, question.id)
        gathering = Gathering(ask, stages, rules, Naming(()), perf_counter, version)
        await gathering.retrieve(Query(question.query))
        done.append(gathering)
        report(f"asking ({name})", number, len(asked))
    return done


def _figures(rounds: "SeekingScore", agent: "SeekingScore") -> list[Figure]:
    return [
        Figure("questions", agent.n, "questions"),
        Figure("full_chain", agent.full_chain, "of the questions", {"rounds": rounds.full_chain}),
        Figure("steps", agent.steps, "a question", {"rounds": rounds.steps}),
        Figure("stop_precision", agent.stop_precision, "of the stops as covered"),
        Figure("stop_recall", agent.stop_recall, "of the complete runs"),
        Figure("repeats", agent.repeats, "of the steps after a first", {"rounds": rounds.repeats}),
    ]
