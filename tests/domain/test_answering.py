"""The main path, end to end over fakes: what every answer promises, and what degrades instead of failing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from domain.answering import NOTHING_FOUND, answer, outcome
from domain.errors import (
    CorpusError,
    NotReady,
    StageFailed,
    StageTimeout,
    Throttled,
    UpstreamInterrupted,
)
from domain.naming import Naming
from domain.ports import Generator, Reranker, Stages
from domain.streaming import ALL_WITHHELD
from domain.types import (
    Answer,
    Ask,
    Chunk,
    Cited,
    Done,
    Event,
    Failed,
    Grounding,
    Mode,
    OnUnsupported,
    PoolEntry,
    Query,
    Retrieval,
    Rewrite,
    RewriteStatus,
    Role,
    Rules,
    Scope,
    Session,
    Started,
    Status,
    StopReason,
    TextDelta,
    Turn,
    Unsupported,
    Usage,
)
from tests.fakes import (
    PUBLIC,
    RULES,
    Clock,
    FakeRetriever,
    FakeRewriter,
    ReversingReranker,
    ScriptedGenerator,
    ask,
    chunk,
    hits,
)

TIDE = chunk("tide#0-aa", "The tide turns at six.", title="Tide tables")
PUMP = chunk("pump#0-bb", "Pump P3 takes oil of grade 46.", title="Pump manual")
SECRET = chunk("secret#0-cc", "The vault code is 1234.", groups=("finance",))


def stages(
    *,
    retriever: FakeRetriever | None = None,
    rewriter: FakeRewriter | None = None,
    reranker: Reranker | None = None,
    generator: Generator | None = None,
) -> Stages:
    return Stages(
        rewriter or FakeRewriter(),
        retriever or FakeRetriever(hits(TIDE, PUMP)),
        reranker,
        generator or ScriptedGenerator(),
    )


async def events_of(request: Ask, over: Stages, rules: Rules = RULES, terms: Sequence[str] = ()) -> list[Event]:
    return [event async for event in answer(request, over, rules, Naming(terms), Clock())]


async def answered(request: Ask, over: Stages, rules: Rules = RULES, terms: Sequence[str] = ()) -> Answer:
    last = (await events_of(request, over, rules, terms))[-1]
    assert isinstance(last, Done), last
    return last.answer


async def failed(request: Ask, over: Stages, rules: Rules = RULES, terms: Sequence[str] = ()) -> Failed:
    last = (await events_of(request, over, rules, terms))[-1]
    assert isinstance(last, Failed), last
    return last


async def test_an_answer_starts_streams_cites_and_ends_once() -> None:
    generator = ScriptedGenerator(("The tide turns ", "at six [S", "1]."))
    events = await events_of(ask("When does the tide turn?"), stages(generator=generator))
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Done)
    assert sum(isinstance(event, Done | Failed) for event in events) == 1
    assert [e.citation.chunk_id for e in events if isinstance(e, Cited)] == [TIDE.id]


async def test_the_joined_stream_is_the_answer() -> None:
    generator = ScriptedGenerator(("At six [S1]", "[S2][S9]", ". Done."))
    events = await events_of(ask("When?"), stages(generator=generator))
    joined = "".join(e.text for e in events if isinstance(e, TextDelta))
    done = events[-1]
    assert isinstance(done, Done)
    assert done.answer.text == joined == "At six [S1][S2]. Done."


async def test_a_grounded_answer_is_complete_and_names_what_was_consulted() -> None:
    given = await answered(ask("When does the tide turn?"), stages())
    assert (given.grounding, given.status) == (Grounding.GROUNDED, Status.COMPLETE)
    assert [c.label for c in given.citations] == ["Tide tables"]
    assert [c.sid for c in given.consulted] == ["S1", "S2"]


async def test_a_claim_that_its_source_does_not_state_is_shown_and_named() -> None:
    generator = ScriptedGenerator(("At six [S1]. It costs 40 euros [S1].",))
    given = await answered(ask("When?"), stages(generator=generator))
    assert given.text == "At six [S1]. It costs 40 euros [S1]."
    assert given.unsupported == (Unsupported("It costs 40 euros.", ("S1",), ("40 euros",)),)
    assert (given.grounding, given.status, given.trace.unsupported) == (Grounding.PARTIAL, Status.COMPLETE, 1)
    assert "claims that the sources they cite do not state: 1" in given.trace.notes


async def test_where_rules_say_so_it_is_not_shown_and_counted() -> None:
    generator = ScriptedGenerator(("At six [S1]. It costs 40 euros [S2]. Do", "ne."))
    rules = replace(RULES, on_unsupported=OnUnsupported.DROP)
    given = await answered(ask("When?"), stages(generator=generator), rules)
    assert (given.text, given.unsupported, given.trace.unsupported) == ("At six [S1]. Done.", (), 1)
    assert [citation.sid for citation in given.citations] == ["S1"]
    assert given.session.turns[-1].text == given.text


async def test_an_answer_of_such_claims_alone_is_one_that_the_library_does_not_cover() -> None:
    rules = replace(RULES, on_unsupported=OnUnsupported.DROP)
    generator = ScriptedGenerator(("It costs 40 euros [S1].",))
    given = await answered(ask("When?"), stages(generator=generator), rules)
    assert (given.text, given.status, given.grounding) == (ALL_WITHHELD, Status.NO_SOURCES, Grounding.UNGROUNDED)


async def test_without_evidence_the_model_is_not_asked_and_the_answer_says_so() -> None:
    generator = ScriptedGenerator()
    given = await answered(ask("Anything?"), stages(retriever=FakeRetriever(()), generator=generator))
    assert given.text == NOTHING_FOUND.text
    assert (given.grounding, given.status) == (Grounding.UNGROUNDED, Status.NO_SOURCES)
    assert generator.plans == []


async def test_a_failed_search_is_a_failure_and_not_an_empty_result() -> None:
    retriever = FakeRetriever(error=StageFailed("The index is gone.", "retriever"))
    end = await failed(ask("Anything?"), stages(retriever=retriever))
    assert (end.code, end.retryable) == ("stage_failed", True)


async def test_a_failing_rewriter_leaves_the_question_as_typed_and_says_so() -> None:
    retriever = FakeRetriever(hits(TIDE))
    rewriter = FakeRewriter(error=StageTimeout("too slow", "rewriter"))
    given = await answered(ask("and then?"), stages(rewriter=rewriter, retriever=retriever))
    assert given.rewrite.status is RewriteStatus.FALLBACK
    assert given.rewrite.reason == "timeout"
    assert retriever.asked[0][0].text == "and then?"
    assert any("rewriter failed (timeout)" in note for note in given.trace.notes)


async def test_a_rewriter_that_fell_back_by_itself_is_noted_as_well() -> None:
    class Nonsense(FakeRewriter):
        async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
            return Rewrite(Query(question), RewriteStatus.FALLBACK, "the rewrite is empty")

    given = await answered(ask("and then?"), stages(rewriter=Nonsense()))
    assert given.trace.notes == ("rewriter failed (the rewrite is empty): the question went through as typed",)


async def test_a_failing_reranker_leaves_the_fused_order_and_says_so() -> None:
    reranker = ReversingReranker(error=StageFailed("dead", "reranker"))
    given = await answered(ask("When?"), stages(reranker=reranker))
    assert given.trace.packed == (TIDE.id, PUMP.id)
    assert any("fused order kept" in note for note in given.trace.notes)


async def test_what_the_reranker_could_not_read_stands_in_the_trace() -> None:
    given = await answered(ask("When?"), stages(reranker=ReversingReranker(notes=("1 of 2 hits was not read",))))
    assert "1 of 2 hits was not read" in given.trace.notes


async def test_reranking_decides_which_chunks_are_packed() -> None:
    given = await answered(ask("When?", k=1), stages(reranker=ReversingReranker()))
    assert given.trace.packed == (PUMP.id,)
    assert given.trace.rounds[0].reranked


async def test_with_a_reranker_the_search_reaches_as_deep_as_reranking_does() -> None:
    retriever = FakeRetriever(hits(TIDE))
    await answered(ask("When?"), stages(retriever=retriever, reranker=ReversingReranker()))
    assert retriever.asked[0][3] == RULES.rerank_depth


async def test_the_rewritten_query_searches_and_the_typed_question_is_answered() -> None:
    retriever, generator = FakeRetriever(hits(PUMP)), ScriptedGenerator()
    rewriter = FakeRewriter(to="oil of pump P3")
    given = await answered(ask("and its oil?"), stages(retriever=retriever, rewriter=rewriter, generator=generator))
    assert retriever.asked[0][0].text == "oil of pump P3"
    assert generator.plans[0].question == "and its oil?"
    assert given.rewrite.query.text == "oil of pump P3"


async def test_thin_scores_bring_one_wider_round_with_a_paraphrase() -> None:
    retriever = FakeRetriever(hits(TIDE, PUMP, cosine=0.1))
    given = await answered(ask("When?"), stages(retriever=retriever))
    assert [n for _, _, _, n in retriever.asked] == [RULES.k, RULES.wide_k]
    assert retriever.asked[1][0].variants == ("about When?",)
    assert len(given.trace.rounds) == 2
    assert "0.10" in given.trace.rounds[0].trigger


async def test_going_deeper_brings_a_second_round_and_never_a_third() -> None:
    retriever = FakeRetriever(hits(TIDE, cosine=0.1))
    await answered(ask("When?", deeper=True), stages(retriever=retriever))
    assert len(retriever.asked) == 2


async def test_the_next_session_carries_turns_and_pool_with_the_turn_each_chunk_joined() -> None:
    given = await answered(ask("When?"), stages())
    assert given.session.turns == (Turn(Role.USER, "When?"), Turn(Role.ASSISTANT, "It is so [S1]."))
    assert given.session.pool == (PoolEntry(TIDE.id, 1), PoolEntry(PUMP.id, 1))
    later = await answered(ask("And?", session=given.session), stages())
    assert [entry.joined_turn for entry in later.session.pool] == [1, 1]
    assert later.session.turn_number == 3


async def test_a_later_turn_answers_from_the_pool_when_the_search_finds_nothing_new() -> None:
    session = Session("s1", (Turn(Role.USER, "x"), Turn(Role.ASSISTANT, "y")), (PoolEntry(PUMP.id, 1),))

    class OnlyPool(FakeRetriever):
        async def retrieve(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def, override]
            from domain.types import Retrieval

            return Retrieval((), "v1")

    given = await answered(ask("Say that again", session=session), stages(retriever=OnlyPool(hits(PUMP))))
    assert [c.chunk_id for c in given.citations] == [PUMP.id]
    assert given.citations[0].joined_turn == 1


async def test_forged_foreign_and_double_pool_ids_are_dropped_and_counted() -> None:
    pool = tuple(PoolEntry(i, 1) for i in (TIDE.id, "forged#0-zz", SECRET.id, TIDE.id))
    session = Session("s1", (), pool)
    given = await answered(ask("When?", session=session), stages(retriever=FakeRetriever(hits(TIDE, SECRET))))
    assert SECRET.id not in {entry.chunk_id for entry in given.session.pool}
    assert any("3 entries dropped" in note for note in given.trace.notes)


async def test_nothing_out_of_scope_reaches_the_model() -> None:
    generator = ScriptedGenerator()
    retriever = FakeRetriever(hits(SECRET, TIDE))
    await answered(ask("code?"), stages(retriever=retriever, generator=generator))
    assert [e.chunk.id for e in generator.plans[0].evidence] == [TIDE.id]
    nobody = ask("code?", scope=Scope("harbour", frozenset()))
    assert (await answered(nobody, stages(retriever=retriever))).status is Status.NO_SOURCES


async def test_a_forbidden_term_crosses_nowhere() -> None:
    named = chunk("z#0-aa", "Zanzibrand sells it.", title="About Zanzibrand")
    generator = ScriptedGenerator(("We sell za", "nzib", "ra", "nd here [S1]."))
    request = ask("What does Zanzibrand sell?")
    events = await events_of(
        request, stages(retriever=FakeRetriever(hits(named)), generator=generator), terms=["zanzibrand"]
    )
    assert "zanzibrand" not in repr(events).casefold()
    assert "zanzibrand" in generator.plans[0].question.casefold()  # the model is asked what was asked


async def test_a_chunk_id_with_a_forbidden_term_is_neither_shown_nor_carried_on() -> None:
    named = chunk("zanzibrand.md#0-aa", "It is sold here.")
    request = ask("What is sold?")
    events = await events_of(request, stages(retriever=FakeRetriever(hits(named, TIDE))), terms=["zanzibrand"])
    assert "zanzibrand" not in repr(events)
    done = events[-1]
    assert isinstance(done, Done)
    assert [entry.chunk_id for entry in done.answer.session.pool] == [TIDE.id]


async def test_a_forbidden_term_in_a_note_or_an_earlier_turn_is_scrubbed() -> None:
    retriever = FakeRetriever(hits(TIDE), notes=("/srv/zanzibrand/v1 could not be opened here",))
    session = Session("s1", (Turn(Role.USER, "Who is Zanzibrand?"), Turn(Role.ASSISTANT, "A seller.")))
    events = await events_of(ask("What now?", session=session), stages(retriever=retriever), terms=["zanzibrand"])
    done = events[-1]
    assert isinstance(done, Done)
    assert "could not be opened here" in done.answer.trace.notes[0]
    assert [turn.text for turn in done.answer.session.turns][1:3] == ["A seller.", "What now?"]
    assert "zanzibrand" not in repr(events).casefold()


async def test_an_answer_that_was_filtered_cites_nothing() -> None:
    generator = ScriptedGenerator(("Sorry [S1].",), StopReason.FILTERED)
    given = await answered(ask("How?"), stages(generator=generator))
    assert given.citations == ()
    assert given.grounding is Grounding.UNGROUNDED


async def test_a_citation_says_kind_and_date_of_its_source() -> None:
    given = await answered(ask("When does the tide turn?"), stages())
    assert (given.citations[0].source, given.citations[0].published) == ("newswire", "2026-01-31")


async def test_a_forbidden_term_in_an_error_is_scrubbed() -> None:
    retriever = FakeRetriever(error=StageFailed("Index zanzibrand-1 is gone.", "retriever"))
    end = await failed(ask("Anything?"), stages(retriever=retriever), terms=["zanzibrand"])
    assert "zanzibrand" not in end.message


@pytest.mark.parametrize("question", ["", "   ", "\t\n", "\u200b\u200b"])
async def test_a_blank_question_is_refused_by_name(question: str) -> None:
    end = await failed(ask(question), stages())
    assert end.code == "bad_request"
    assert "question" in end.message


async def test_an_over_long_question_is_refused_with_the_limit() -> None:
    end = await failed(ask("x" * 501), stages())
    assert end.code == "too_long"
    assert "500" in end.message


async def test_a_stream_that_breaks_ends_with_an_error_and_what_was_shown() -> None:
    generator = ScriptedGenerator(("The tide turns at six [S1]. ",), error=UpstreamInterrupted("cut", "generator"))
    events = await events_of(ask("When?"), stages(generator=generator))
    end = events[-1]
    assert isinstance(end, Failed)
    assert end.code == "upstream_interrupted"
    assert end.partial.startswith("The tide turns at six [S1].")
    assert sum(isinstance(e, Cited) for e in events) == 1


async def test_throttling_before_the_first_token_says_when_to_come_back() -> None:
    generator = ScriptedGenerator((), error=Throttled("slow down", "generator", retry_after_s=3.0))
    end = await failed(ask("When?"), stages(generator=generator))
    assert (end.code, end.retryable, end.retry_after_s) == ("throttled", True, 3.0)


async def test_a_generator_that_never_says_how_it_ended_is_an_interruption() -> None:
    class Silent(ScriptedGenerator):
        async def generate(self, plan):  # type: ignore[no-untyped-def]
            async for piece in super().generate(plan):
                if not hasattr(piece, "stop"):
                    yield piece

    end = await failed(ask("When?"), stages(generator=Silent()))
    assert end.code == "upstream_interrupted"


@pytest.mark.parametrize(
    ("stop", "pieces", "status"),
    [
        (StopReason.LENGTH, ("The limit is 40 bar [S",), Status.TRUNCATED),
        (StopReason.CONTEXT_FULL, ("Partial",), Status.TRUNCATED),
        (StopReason.FILTERED, ("",), Status.BLOCKED),
        (StopReason.NOT_COVERED, ("The sources do not say.",), Status.NO_SOURCES),
        (StopReason.TOOL, ("",), Status.INTERRUPTED),
        (StopReason.UNKNOWN, ("Hm [S1].",), Status.INTERRUPTED),
    ],
)
async def test_only_a_normal_end_is_a_complete_answer(
    stop: StopReason, pieces: tuple[str, ...], status: Status
) -> None:
    given = await answered(ask("How much?"), stages(generator=ScriptedGenerator(pieces, stop, detail="odd")))
    assert given.status is status
    assert "[S" not in given.text.replace("[S1]", "")


async def test_an_unknown_stop_reason_is_noted_with_its_value() -> None:
    generator = ScriptedGenerator(("Hm.",), StopReason.UNKNOWN, detail="some_new_reason")
    given = await answered(ask("When?"), stages(generator=generator))
    assert any("some_new_reason" in note for note in given.trace.notes)


async def test_the_trace_times_every_stage_and_counts_every_token() -> None:
    generator = ScriptedGenerator(usage=Usage(7, 3, cache_read_tokens=900))
    given = await answered(ask("When?"), stages(reranker=ReversingReranker(), generator=generator))
    times = dict(given.trace.stage_ms)
    assert {"rewrite", "retrieve", "rerank", "pack", "first_token", "generate"} <= times.keys()
    assert all(ms > 0 for ms in times.values())
    assert given.trace.usage == generator.usage


async def test_the_version_that_really_answered_is_named() -> None:
    retriever = FakeRetriever(hits(TIDE), version="v0", notes=("v1 is not open yet: stable v0 answered",))
    events = await events_of(ask("When?"), stages(retriever=retriever))
    started, done = events[0], events[-1]
    assert isinstance(started, Started)
    assert isinstance(done, Done)
    assert started.version == done.answer.trace.version == "v0"
    assert "stable v0 answered" in done.answer.trace.notes[0]


@dataclass
class TwoReplicas(FakeRetriever):
    """Answers each search from the next of `versions`, as replicas do which have not opened the same ones yet."""

    versions: tuple[str, ...] = ()
    looked_up: list[str] = field(default_factory=list)

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        found = await super().retrieve(query, scope, version, n, mode)
        return replace(found, version=self.versions[len(self.asked) - 1])

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        self.looked_up.append(version)
        return await super().chunks(ids, scope, version)


async def test_pool_and_later_rounds_ask_the_version_that_answered_first() -> None:
    retriever = TwoReplicas(hits(TIDE, PUMP), versions=("v0", "v0"))
    session = Session("s1", (), (PoolEntry(TIDE.id, 1),))
    given = await answered(ask("When?", session=session, deeper=True), stages(retriever=retriever))
    assert [version for _, _, version, _ in retriever.asked] == ["v1", "v0"]
    assert retriever.looked_up == ["v0"]
    assert given.trace.version == "v0"


async def test_hits_of_two_versions_never_stand_in_one_answer() -> None:
    class Moving(TwoReplicas):
        async def retrieve(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def, override]
            self.found = hits(PUMP) if self.asked else hits(TIDE)
            return await super().retrieve(*args, **kwargs)  # type: ignore[arg-type]

    given = await answered(ask("When?", deeper=True), stages(retriever=Moving(versions=("v0", "v1"))))
    assert (given.trace.version, given.trace.packed) == ("v0", (TIDE.id,))
    assert len(given.trace.rounds) == 1
    assert "second round answered by v1, not by v0: the first stands" in given.trace.notes


async def test_the_trace_counts_the_markers_that_named_nothing() -> None:
    given = await answered(ask("When?"), stages(generator=ScriptedGenerator(("At six [S1][S7][S8].",))))
    assert given.trace.dropped == 2
    assert (await answered(ask("When?"), stages())).trace.dropped == 0


async def test_leaving_early_closes_the_generator() -> None:
    generator = ScriptedGenerator(tuple(f"word{i} " for i in range(100)))
    stream = answer(ask("When?"), stages(generator=generator), RULES, Naming(()), Clock())
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()  # type: ignore[attr-defined]  # it is an async generator
    assert generator.closed


async def test_cancelling_the_consumer_closes_the_generator() -> None:
    class Waiting(ScriptedGenerator):
        async def generate(self, plan):  # type: ignore[no-untyped-def]
            async for piece in super().generate(plan):
                yield piece
                await asyncio.sleep(60)

    generator = Waiting()
    task = asyncio.create_task(outcome(answer(ask("When?"), stages(generator=generator), RULES, Naming(()), Clock())))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert generator.closed


async def test_the_terminal_event_can_be_had_alone() -> None:
    end = await outcome(answer(ask("When?"), stages(), RULES, Naming(()), Clock()))
    assert isinstance(end, Done)


async def test_an_error_class_travels_with_the_failure_for_the_edge_to_map() -> None:
    retriever = FakeRetriever(error=NotReady("no version is open", "retriever"))
    assert isinstance((await failed(ask("Hm?"), stages(retriever=retriever))).error, NotReady)


async def test_an_error_that_is_not_ours_is_a_bug_and_is_not_swallowed() -> None:
    class Broken(FakeRetriever):
        async def retrieve(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def, override]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await events_of(ask("When?"), stages(retriever=Broken()))


async def test_two_runs_give_the_same_events() -> None:
    runs = [await events_of(ask("When?"), stages(reranker=ReversingReranker())) for _ in range(2)]
    assert runs[0] == runs[1]


def test_errors_of_the_operator_are_not_stage_failures() -> None:
    assert not issubclass(CorpusError, StageFailed)
    assert PUBLIC.may_read("harbour", frozenset({"public"}))
