"""THE path from question to answer: an async generator of events over four ports.

The service, the evaluation and the command line all run this function; there is no second pipeline to drift.
What may degrade degrades here and is noted in the trace: a rewriter that fails leaves the question as typed, a
reranker that fails leaves the fused order. A failed search is a failure and never looks like an empty one.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter

from domain.costs import answer_cost_usd, total
from domain.covering import Cover, Coverage, decide
from domain.errors import StageFailed, TidegateError, UpstreamInterrupted
from domain.gathering import Gathering
from domain.grounding import check, ground
from domain.naming import Naming
from domain.packing import pack
from domain.policies import check_question, cite, join_pool, status
from domain.ports import Stages
from domain.prompt import PromptPlan, plan, recent
from domain.sessions import check_pool, next_session, told
from domain.streaming import AnswerStream
from domain.types import (
    Answer,
    Ask,
    Chunk,
    Delta,
    Done,
    Draft,
    Event,
    Evidence,
    Failed,
    OnUnsupported,
    PoolEntry,
    PoolTally,
    Query,
    Rewrite,
    RewriteStatus,
    Rules,
    Started,
    StopReason,
    Trace,
    Unsupported,
    Usage,
)

NOTHING_FOUND = Draft("The library has nothing on this question.", StopReason.NOT_COVERED)
NOTHING_ON = "The library has nothing on {}."


async def answer(
    ask: Ask, stages: Stages, rules: Rules, naming: Naming, clock: Callable[[], float] = perf_counter
) -> AsyncGenerator[Event, None]:
    """Events of one answer: Started, text and citations as they become safe to show, then exactly one Done or Failed.

    `clock` gives seconds and only times the stages. Closing the iterator cancels whatever stage is running.
    """
    run = _Run(ask, stages, rules, naming, clock, ask.version)
    try:
        async with aclosing(run.events()) as events:
            async for event in events:
                yield event
    except TidegateError as error:
        yield run.failure(error)


async def outcome(events: AsyncIterator[Event]) -> Done | Failed:
    """The terminal event of an answer, for callers who do not stream."""
    async for event in events:
        if isinstance(event, Done | Failed):
            return event
    raise RuntimeError("An answer ended without a terminal event: this is a bug in domain/answering.py.")


def lacking(covered: Coverage, draft: Draft) -> str:
    """What is to be added to a finished draft about a question that is covered in part; "" where it says so itself."""
    said = draft.text.casefold()
    gone = [thing for thing in covered.lacking if thing.casefold() not in said]
    return f"\n\n{NOTHING_ON.format(' or '.join(gone))}" if gone and draft.stop is StopReason.END else ""


@dataclass(slots=True)
class _Run(Gathering):
    """One answer in the making; below the fold is what its trace, or its failure, will say."""

    stream: AnswerStream | None = None
    packed: tuple[Evidence, ...] = ()
    coverage: Coverage | None = None
    tally: PoolTally = field(default_factory=PoolTally)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None  # nobody knows what a reply cost that did not end
    unsupported: tuple[Unsupported, ...] = ()

    async def events(self) -> AsyncGenerator[Event, None]:
        """The main path, top to bottom."""
        ask, rules, turn = self.ask, self.rules, self.ask.session.turn_number
        question = check_question(ask.question, rules)
        rewrite = await self.rewrite(question)
        hits = await self.retrieve(rewrite.query)
        pool, pool_chunks = await self.pool()
        asked = rewrite.query.text
        rewrite = replace(rewrite, query=self.visible(rewrite.query), reason=self.naming.scrub(rewrite.reason))
        yield Started(ask.trace_id, self.version, rewrite)

        started = self.clock()
        self.packed = pack(pool_chunks, hits, turn, rules.evidence_token_cap)
        joined = join_pool(pool, [hit.chunk.id for hit in hits], turn, rules.pool_cap)
        evicted = len(joined.evicted)
        self.tally = replace(self.tally, joined=len(joined.pool) + evicted - len(pool), evicted=evicted)
        if evicted:
            self.notes.append(f"pool full: {evicted} oldest left, the evidence prefix changes once")
        prompt = plan(self.packed, ask.session.turns, question, rules.history_turns)
        self.took("pack", started)
        started = self.clock()
        self.coverage = decide(asked, self.packed, hits, rules.covering)
        self.took("cover", started)

        withhold = rules.on_unsupported is OnUnsupported.DROP
        self.stream = stream = AnswerStream(self.packed, self.naming, withhold)
        draft = NOTHING_FOUND
        async with aclosing(self.generate(prompt)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Draft):
                    draft = piece
                else:
                    for event in stream.feed(piece.text):
                        yield event
        for event in stream.close():
            yield event
        yield Done(self.finish(question, rewrite, stream, draft, joined.pool))

    async def rewrite(self, question: str) -> Rewrite:
        """The effective query; a rewriter that fails leaves the question as typed."""
        started = self.clock()
        try:
            history = recent(self.ask.session.turns, self.rules.history_turns)
            rewrite = await self.stages.rewriter.rewrite(question, history)
        except StageFailed as error:
            rewrite = Rewrite(Query(question), RewriteStatus.FALLBACK, error.code, Usage(measured=False))
        self.rewriting = total(self.rewriting, rewrite.usage)
        if rewrite.status is RewriteStatus.FALLBACK:
            self.notes.append(f"rewriter failed ({rewrite.reason}): the question went through as typed")
        self.took("rewrite", started)
        return rewrite

    async def pool(self) -> tuple[tuple[PoolEntry, ...], list[tuple[Chunk, int]]]:
        """The client's pool after re-validation under the reader's scope, with its chunks.

        Looked up in the version that answered the search: the evidence of an answer is of one version.
        """
        claimed = self.ask.session.pool
        if not claimed:
            return (), []
        started = self.clock()
        ids = tuple(dict.fromkeys(entry.chunk_id for entry in claimed))
        chunks = {c.id: c for c in await self.stages.retriever.chunks(ids, self.ask.scope, self.version)}
        moved = self.ask.session.version not in ("", self.version)
        pool, self.tally = check_pool(claimed, chunks, self.rules.pool_cap, moved=moved)
        if self.tally.dropped:
            self.notes.append(f"pool: {self.tally.dropped} entries dropped ({told(self.tally)})")
        self.took("pool", started)
        return pool, [(chunks[entry.chunk_id], entry.joined_turn) for entry in pool]

    async def generate(self, prompt: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """The generator's pieces. Without evidence, or with some that does not cover the question, nobody is asked.

        What a partly covered question lacks is said at the end, unless the generator has said so itself.
        """
        covered = self.coverage or Coverage()
        if not prompt.evidence or covered.cover is Cover.NOT_COVERED:
            yield Delta(NOTHING_FOUND.text)
            yield NOTHING_FOUND
            return
        started, ended = self.clock(), False
        async with aclosing(self.stages.generator.generate(prompt)) as pieces:
            async for piece in pieces:
                if "first_token" not in self.stage_ms:
                    self.took("first_token", started)
                ended = isinstance(piece, Draft)
                if isinstance(piece, Draft) and (rest := lacking(covered, piece)):
                    yield Delta(rest)
                yield piece
        self.took("generate", started)
        if not ended:
            raise UpstreamInterrupted("The generator stopped without saying how it ended: ask again.", "generator")

    def finish(
        self, question: str, rewrite: Rewrite, stream: AnswerStream, draft: Draft, pool: tuple[PoolEntry, ...]
    ) -> Answer:
        """The answer with everything its policies decide."""
        self.usage, self.unsupported = draft.usage, check(stream.text, self.packed)
        rules = self.rules
        self.cost_usd = answer_cost_usd(draft.usage, rules.prices, self.rewriting, rules.rewriter_prices)
        if stream.dropped:
            self.notes.append(f"{stream.dropped} markers named no source and were dropped")
        if stream.withheld:
            self.notes.append(f"claims withheld, since what they cite does not state them: {stream.withheld}")
        if self.unsupported:
            self.notes.append(f"claims that the sources they cite do not state: {len(self.unsupported)}")
        stop = StopReason.NOT_COVERED if stream.emptied and draft.stop is StopReason.END else draft.stop
        if draft.stop is StopReason.UNKNOWN:
            self.notes.append(f"unknown stop reason {draft.detail!r}")
        session = self.ask.session
        return Answer(
            text=stream.text,
            citations=() if draft.stop is StopReason.FILTERED else stream.citations,
            consulted=tuple(cite(evidence, self.naming) for evidence in self.packed),
            grounding=ground(stream.text, stream.citations, self.packed, stop, self.unsupported),
            status=status(stop, stream.text),
            session=next_session(session, question, stream.text, pool, self.version, self.naming, self.rules),
            rewrite=rewrite,
            trace=self.trace(),
            unsupported=self.unsupported,
        )

    def failure(self, error: TidegateError) -> Failed:
        """The terminal event of an answer that could not be given, its message scrubbed like any visible string."""
        retry_after_s = error.retry_after_s if isinstance(error, StageFailed) else None
        message, shown = self.naming.scrub(str(error)), self.stream.text if self.stream else ""
        return Failed(error.code, message, error.retryable, shown, retry_after_s, self.trace(), error)

    def trace(self) -> Trace:
        """What is known of this answer so far."""
        return Trace(
            id=self.ask.trace_id,
            version=self.version,
            rounds=tuple(self.rounds),
            packed=tuple(self.naming.scrub(evidence.chunk.id) for evidence in self.packed),
            stage_ms=tuple((stage, round(ms, 3)) for stage, ms in self.stage_ms.items()),
            usage=self.usage,
            rewriting=self.rewriting,
            cost_usd=self.cost_usd,
            notes=tuple(self.naming.scrub(note) for note in dict.fromkeys(self.notes)),
            dropped=self.stream.dropped if self.stream else 0,
            unsupported=len(self.unsupported) + (self.stream.withheld if self.stream else 0),
            pool=self.tally,
            stopped=self.naming.scrub(self.stopped),
            coverage=self.shown_coverage(),
        )

    def shown_coverage(self) -> Coverage | None:
        """The decision as it may be seen; None before there was one."""
        if self.coverage is None:
            return None
        return replace(self.coverage, lacking=tuple(self.naming.scrub(thing) for thing in self.coverage.lacking))
