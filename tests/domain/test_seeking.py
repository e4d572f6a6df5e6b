"""Which step follows and when it is enough, and the whole of it on the answering path with every step in the trace."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from domain.answering import answer
from domain.naming import Naming
from domain.packing import pack
from domain.policies import join_pool
from domain.ports import Stages
from domain.prompt import plan
from domain.seeking import ENOUGH, Action, Agent, Rounds, Step, Tool
from domain.types import Answer, Ask, Chunk, Done, Hit, Mode, PoolEntry, Query, Retrieval, Rules, Scope
from tests.fakes import RULES, Clock, FakeRetriever, FakeRewriter, ScriptedGenerator, ask, chunk, hits

AGENT = replace(RULES, agent_steps=4, agent_covered=0.6)
TERN = chunk("tern#0-aa", "The Tern was built in 1961.", title="Tern ferry")
GANNET = chunk("gannet#0-bb", "The Gannet was built in 1974.", title="Gannet ferry")
OTHER = chunk("other#0-cc", "Ferries need paint.")
SECRET = chunk("vault#0-dd", "The code is 1234.", groups=("finance",))


@dataclass
class ByWord(FakeRetriever):
    """Finds the chunks whose title has a word of the query in it, best k; the whole library is `found`."""

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        self.asked.append((query, scope, version, n))
        words = query.text.casefold().replace("?", "").split()
        there = [h for h in self.found if scope.may_read(h.chunk.tenant, h.chunk.groups)]
        best = [h for h in there if any(word in words for word in h.chunk.source.title.casefold().split()[:1])]
        return Retrieval(tuple(replace(h, rank=i) for i, h in enumerate(best[:n], 1)), version)


async def given(request: Ask, retriever: FakeRetriever, rules: Rules) -> Answer:
    stages = Stages(FakeRewriter(), retriever, None, ScriptedGenerator())
    end = [event async for event in answer(request, stages, rules, Naming(()), Clock())][-1]
    assert isinstance(end, Done), end
    return end.answer


def step(found: Sequence[Hit], text: str = "q", tool: Tool = Tool.SEARCH) -> Step:
    return Step(Action(tool, Query(text), 3), tuple(found))


def test_rounds_go_on_by_the_settings_of_the_trigger_and_twice_at_most() -> None:
    thin, good = hits(TERN, cosine=0.1), hits(TERN, GANNET, cosine=0.9)
    rounds = Rounds(Query("q"), 3, RULES, deeper=False)
    follows = rounds.next([step(thin)])
    assert follows.action == Action(Tool.SEARCH, Query("q"), RULES.wide_k, wider=True)
    assert "under 0.30" in follows.why
    assert rounds.next([step(good)]).action is None
    assert rounds.next([step(thin), step(thin)]).action is None
    lower = replace(RULES, trigger_cosine=0.05)
    assert Rounds(Query("q"), 3, lower, deeper=False).next([step(thin)]).action is None
    assert Rounds(Query("q"), 3, RULES, deeper=True).next([step(good)]).why == "asked to go deeper"


async def test_a_comparison_is_searched_side_by_side_until_both_are_covered() -> None:
    retriever = ByWord(hits(TERN, GANNET, OTHER))
    only_one = replace(AGENT, k=1, wide_k=2)
    reply = await given(ask("Which was built first, the Tern or the Gannet?"), retriever, only_one)
    assert [each.tool for each in reply.trace.rounds] == ["search", "search"]
    assert reply.trace.rounds[1].query.text == "Which was built first, the Gannet"
    assert reply.trace.rounds[0].trigger == "a part is not covered"
    assert set(reply.trace.packed) == {TERN.id, GANNET.id}
    assert reply.trace.stopped == ENOUGH


async def test_what_is_covered_at_once_takes_one_step() -> None:
    reply = await given(ask("When was the Tern built?"), ByWord(hits(TERN, GANNET)), AGENT)
    assert len(reply.trace.rounds) == 1
    assert reply.trace.stopped == ENOUGH


async def test_a_passage_that_is_named_is_looked_up_under_the_readers_scope() -> None:
    retriever = ByWord(hits(TERN, OTHER, SECRET))
    reply = await given(ask(f"Tern: what do {OTHER.id} and {SECRET.id} say?"), retriever, AGENT)
    looked_up = [each for each in reply.trace.rounds if each.tool == "lookup"]
    assert [[chunk_id for chunk_id, _ in each.candidates] for each in looked_up] == [[OTHER.id]]
    assert SECRET.id not in repr(reply.trace.rounds[-1].candidates) + repr(reply.trace.packed)


async def test_a_time_that_is_named_keeps_what_was_published_in_it() -> None:
    def dated(id: str, day: str) -> Chunk:
        one = chunk(id, f"The Tern sailed, says {day}.", title="Tern log")
        return replace(one, source=replace(one.source, published=day))

    old, new, undated = dated("a#0-aa", "2023-05-01"), dated("b#0-bb", "2025-05-01"), dated("c#0-cc", "")
    retriever = ByWord(hits(new, undated, old))
    reply = await given(ask("Where did the Tern sail before June 2024?"), retriever, AGENT)
    (kept,) = [each for each in reply.trace.rounds if each.tool == "dated"]
    assert [chunk_id for chunk_id, _ in kept.candidates] == [old.id]
    assert retriever.asked[1][3] == AGENT.rerank_depth  # kept from a deep list, or few would be left


async def test_an_agent_stops_when_its_steps_are_used_up_and_says_so() -> None:
    hopeless = ask("Which is older, the Auk or the Erne? And which is newer, the Crake or the Dipper?")
    reply = await given(hopeless, ByWord(hits(OTHER)), replace(AGENT, agent_steps=3))
    assert len(reply.trace.rounds) == 3
    assert reply.trace.stopped == "all 3 steps are used up"


async def test_an_agent_never_takes_a_step_twice_and_ends_when_nothing_is_left() -> None:
    for question in ("Auk?", "Which is older, the Auk or the Erne?", "Auk in May 2020 or Erne in May 2020?"):
        retriever = ByWord(hits(OTHER))
        reply = await given(ask(question), retriever, replace(AGENT, agent_steps=12))
        asked = [(each.tool, each.query, each.k) for each in reply.trace.rounds]
        assert len(set(asked)) == len(asked) < 12
        assert reply.trace.stopped == "nothing new is left to try"


async def test_without_an_agent_the_trace_names_no_stop_and_the_tool_is_search() -> None:
    reply = await given(ask("When was the Tern built?"), ByWord(hits(TERN, GANNET)), RULES)
    assert (reply.trace.stopped, reply.trace.rounds[0].tool) == ("", "search")


def test_evidence_of_an_agent_is_dealt_in_turn_from_its_steps_and_no_more_than_a_wide_round() -> None:
    agent = Agent(Query("q"), 2, replace(AGENT, wide_k=3), deeper=False)
    dealt = agent.evidence([step(hits(TERN, OTHER)), step(hits(GANNET, TERN))])
    assert [hit.chunk.id for hit in dealt] == [TERN.id, GANNET.id, OTHER.id]
    assert [hit.rank for hit in dealt] == [1, 2, 3]


@pytest.mark.parametrize("new", [1, 3, 5])
def test_evicting_from_the_pool_changes_the_cached_prefix_exactly_once(new: int) -> None:
    """A vendor that caches the longest unchanged beginning of the pool: it only grows while nothing leaves, so all of
    it is read again; however many chunks leave in one turn, the beginning changes once, and then is read again.
    """
    cap, pool, resets, evictions = 8, (), 0, 0
    before: tuple[str, ...] = ()
    systems = set()
    for turn in range(1, 26):
        fresh = [f"c{turn}-{i}#0-aa" for i in range(new)] if turn % 2 else []  # every other turn finds nothing new
        joined = join_pool(pool, fresh, turn, cap)
        pool: tuple[PoolEntry, ...] = joined.pool  # type: ignore[no-redef]
        ids = tuple(entry.chunk_id for entry in pool)
        resets += ids[: len(before)] != before
        evictions += bool(joined.evicted)
        before = ids
        packed = pack([(chunk(entry.chunk_id, "x"), entry.joined_turn) for entry in pool], (), turn, 1000)
        systems.add(plan(packed, (), "q", 10).prefix)
    assert resets == evictions > 0
    assert len(systems) == 1  # the block before the boundary is the same through all of it
