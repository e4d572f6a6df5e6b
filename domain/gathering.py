"""The evidence of one answer, step by step: what a planner asks for is searched, reordered or looked up, and noted.

Which step follows is seeking.py. What may degrade here is a reranker or a paraphrase that fails; a search that fails is
a failure. answering.py makes an answer of what was gathered.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from domain.calibration import relevance
from domain.costs import total
from domain.errors import StageFailed
from domain.naming import Naming
from domain.ports import Stages
from domain.seeking import Action, Step, Tool, planner
from domain.types import Ask, Hit, Query, RetrievalRound, Rules, Usage


@dataclass(slots=True)
class Gathering:
    """The gathering of one answer's evidence, and the account of it that its trace will bear.

    `version` is the one asked for until the first search says which one answered. `clock` gives seconds.
    """

    ask: Ask
    stages: Stages
    rules: Rules
    naming: Naming
    clock: Callable[[], float]

    version: str
    rounds: list[RetrievalRound] = field(default_factory=list)
    stopped: str = ""
    stage_ms: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rewriting: Usage = field(default_factory=Usage)

    async def retrieve(self, query: Query) -> tuple[Hit, ...]:
        """What the planner's steps found together; each of them is a round of the trace, with why another followed."""
        plans, steps = planner(query, self.ask, self.rules), list[Step]()
        while (follows := plans.next(steps)).action is not None:
            action = follows.action
            if steps:
                self.rounds[-1] = replace(self.rounds[-1], trigger=follows.why)
            if action.wider:
                action = replace(action, query=await self.paraphrase(action.query))
            found = await (self.look_up(action) if action.tool is Tool.LOOKUP else self.one_round(action))
            if found is None:
                break
            steps.append(Step(follows.action, found))
        else:
            self.stopped = follows.why
        return plans.evidence(steps)

    async def look_up(self, action: Action) -> tuple[Hit, ...]:
        """The passages that were named, as far as they are there and this reader may see them."""
        started = self.clock()
        chunks = await self.stages.retriever.chunks(action.ids, self.ask.scope, self.version)
        hits = tuple(Hit(chunk, 1.0, rank, "lookup") for rank, chunk in enumerate(chunks, 1))
        self.took("retrieve", started)
        self.note_round(action, hits, reranked=False)
        return hits

    async def one_round(self, action: Action) -> tuple[Hit, ...] | None:
        """Retrieve, rerank, cut at `k`. None when a later round was answered by another version than the first.

        The first search decides which version answers; replicas open a version at different moments, and hits of
        two versions never stand in one answer.
        """
        query, k, started = action.query, action.k, self.clock()
        reranker = self.stages.reranker
        dated = action.tool is Tool.DATED
        n = max(k, self.rules.rerank_depth) if reranker or dated else k
        found = await self.stages.retriever.retrieve(query, self.ask.scope, self.version, n)
        self.took("retrieve", started)
        if self.rounds and found.version != self.version:
            self.notes.append(f"second round answered by {found.version}, not by {self.version}: the first stands")
            return None
        self.version, hits = found.version, found.hits
        self.notes.extend(found.notes)
        if dated:
            hits = tuple(hit for hit in hits if hit.chunk.source.published in action.dates)

        reranked = False
        if reranker and hits:
            started = self.clock()
            try:
                ranked = await reranker.rerank(query, hits)
                hits, reranked = ranked.hits, True
                self.notes.extend(ranked.notes)
            except StageFailed as error:
                self.notes.append(f"reranker failed ({error.code}): fused order kept")
            self.took("rerank", started)
        chance, hits = relevance(hits, self.rules.calibration), hits[:k]
        self.note_round(action, hits, reranked, chance)
        return hits

    def note_round(self, action: Action, hits: tuple[Hit, ...], reranked: bool, chance: float | None = None) -> None:
        """Writes a step into the trace."""
        candidates = tuple((self.naming.scrub(hit.chunk.id), hit.score) for hit in hits)
        query = self.visible(action.query)
        self.rounds.append(RetrievalRound(query, action.k, candidates, reranked, "", chance, action.tool.value))

    async def paraphrase(self, query: Query) -> Query:
        """The query with a variant more; a rewriter that fails leaves it as it is."""
        started = self.clock()
        try:
            wider = await self.stages.rewriter.paraphrase(query)
            query, used = wider.query, wider.usage
        except StageFailed as error:
            used = Usage(measured=False)
            self.notes.append(f"paraphrase failed ({error.code}): the second round is wider only")
        self.rewriting = total(self.rewriting, used)
        self.took("rewrite", started)
        return query

    def visible(self, query: Query) -> Query:
        """The query as it may be shown and traced; the search itself used it unscrubbed."""
        return Query(self.naming.scrub(query.text), tuple(self.naming.scrub(variant) for variant in query.variants))

    def took(self, stage: str, started: float) -> None:
        """Adds the milliseconds since `started` to a stage; rounds add up."""
        self.stage_ms[stage] = self.stage_ms.get(stage, 0.0) + (self.clock() - started) * 1000
