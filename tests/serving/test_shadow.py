"""The same question on both versions: one search each, compared in numbers, and never in anybody's way."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from domain.errors import StageFailed
from domain.packing import pack
from domain.ports import Retriever
from domain.types import Chunk, Evidence, Hit, Mode, Query, Retrieval, Scope
from serving.shadow import AT_ONCE, FirstSearch, Searched, Shadow, pairs
from serving.telemetry import Prometheus
from tests.fakes import PUBLIC, RULES, FakeRetriever, ReversingReranker, chunk, hits
from tests.serving.service import BELL, TIDE, service

QUERY = Query("When does the gate open?")  # content words: gate, open
SECRET = chunk("vault#0", "The vault opens at nine.", groups=("finance",))


@dataclass
class Versions:
    """A retriever which finds something else in every version, and may keep everybody waiting."""

    found: Mapping[str, tuple[Hit, ...]]
    open: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[tuple[Query, Scope, str, int]] = field(default_factory=list)

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        self.asked.append((query, scope, version, n))
        await self.open.wait()
        visible = (hit for hit in self.found[version] if scope.may_read(hit.chunk.tenant, hit.chunk.groups))
        return Retrieval(tuple(visible)[:n], version)

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        return ()


def shadow(retriever: Retriever, **changes: object) -> tuple[Shadow, Prometheus]:
    telemetry = Prometheus()
    return Shadow(service(retriever=retriever, telemetry=telemetry, **changes)), telemetry


def counted(telemetry: Prometheus) -> dict[str, float]:
    lines = telemetry.exposition().decode().splitlines()
    rows = [line for line in lines if line.startswith("tidegate_shadow_searches_total{")]
    return {row.split('"')[1]: float(row.split()[-1]) for row in rows}


def searched(*chunks: Chunk) -> Searched:
    return Searched(QUERY, PUBLIC, 3, hits(*chunks))


def evidence(*chunks: Chunk) -> tuple[Evidence, ...]:
    return pack((), hits(*chunks), 1, 1000)


def test_a_pair_is_found_coverage_and_shared_documents() -> None:
    # canary: TIDE has "gate" (of gate, open), "opens" is another word; stable: BELL has none of both
    assert pairs(QUERY.text, evidence(TIDE), evidence(TIDE, BELL)) == {
        "found": (1.0, 1.0), "coverage": (0.5, 0.5), "overlap": (0.5, 1.0),
    }  # fmt: skip
    assert pairs(QUERY.text, evidence(BELL), evidence(TIDE)) == {
        "found": (1.0, 1.0), "coverage": (0.0, 0.5), "overlap": (0.0, 1.0),
    }  # fmt: skip


def test_nothing_found_is_zero_and_nothing_on_both_sides_is_the_same() -> None:
    assert pairs(QUERY.text, (), evidence(TIDE))["found"] == (0.0, 1.0)
    assert pairs(QUERY.text, (), ())["overlap"] == (1.0, 1.0)


def test_a_question_without_content_words_has_no_coverage_to_compare() -> None:
    assert set(pairs("What is it?", evidence(TIDE), evidence(TIDE))) == {"found", "overlap"}


def test_a_title_counts_as_text_wherever_a_chunker_cut() -> None:
    titled = chunk("a#0", "At high water.", title="When the gate may open")
    assert pairs(QUERY.text, evidence(titled), evidence(TIDE))["coverage"] == (1.0, 0.5)


async def test_stable_is_searched_for_the_same_query_scope_and_depth() -> None:
    retriever = FakeRetriever(hits(BELL))
    of, telemetry = shadow(retriever, reranker=ReversingReranker())
    told = await of.compare(searched(TIDE), "v1")
    assert retriever.asked == [(QUERY, PUBLIC, "v1", RULES.rerank_depth)]
    assert told["coverage"] == (0.5, 0.0)
    assert counted(telemetry) == {"compared": 1.0}


async def test_stable_is_reranked_and_cut_as_it_is_served() -> None:
    of, _ = shadow(FakeRetriever(hits(TIDE, BELL)), reranker=ReversingReranker())
    told = await of.compare(replace(searched(TIDE), k=1), "v1")
    assert told["coverage"] == (0.5, 0.0)  # the reranker turns the order around: BELL alone remains


async def test_a_reader_is_compared_on_what_that_reader_may_see() -> None:
    of, _ = shadow(FakeRetriever(hits(SECRET)))
    assert (await of.compare(searched(TIDE), "v1"))["found"] == (1.0, 0.0)


async def test_a_comparison_that_fails_or_is_answered_by_another_version_is_none_and_counted() -> None:
    for retriever, reason in (
        (FakeRetriever(error=StageFailed("It broke.", "retriever")), "failed"),
        (FakeRetriever(hits(TIDE), version="v0"), "elsewhere"),
    ):
        of, telemetry = shadow(retriever)
        assert await of.compare(searched(TIDE), "v1") == {}
        assert counted(telemetry) == {reason: 1.0}


async def test_a_bug_in_a_comparison_is_logged_and_counted() -> None:
    class Buggy(FakeRetriever):
        async def retrieve(self, *_: object) -> Retrieval:  # type: ignore[override]
            raise KeyError("x")

    of, telemetry = shadow(Buggy())
    assert await of.compare(searched(TIDE), "v1") == {}
    assert counted(telemetry) == {"failed": 1.0}


async def test_more_comparisons_than_fit_are_left_out_and_room_comes_back() -> None:
    retriever = Versions({"v1": hits(TIDE)})
    of, telemetry = shadow(retriever)
    first = [asyncio.create_task(of.compare(searched(TIDE), "v1")) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    assert await of.compare(searched(TIDE), "v1") == {}
    retriever.open.set()
    assert all(await asyncio.gather(*first))
    assert await of.compare(searched(TIDE), "v1") != {}
    assert counted(telemetry) == {"compared": AT_ONCE + 1.0, "crowded": 1.0}


async def test_the_first_search_is_remembered_as_it_was_served() -> None:
    stages = service(retriever=FakeRetriever(hits(TIDE, BELL)), reranker=ReversingReranker()).stages
    first = FirstSearch(stages, 1)
    wrapped = first.within(stages)
    assert wrapped.reranker is not None
    assert first.searched is None
    found = await wrapped.retriever.retrieve(QUERY, PUBLIC, "v2", 10)
    assert first.searched is None  # not reranked, so not as served
    ranked = await wrapped.reranker.rerank(QUERY, found.hits)
    assert first.searched == Searched(QUERY, PUBLIC, 1, ranked.hits[:1])
    wider = Query("gate", ("doors",))
    await wrapped.reranker.rerank(wider, (await wrapped.retriever.retrieve(wider, PUBLIC, "v2", 10)).hits)
    assert first.searched.query == QUERY


async def test_without_a_reranker_or_without_hits_the_search_alone_is_what_was_served() -> None:
    for found, reranker in ((hits(TIDE), None), ((), ReversingReranker())):
        stages = service(retriever=FakeRetriever(found), reranker=reranker).stages
        first = FirstSearch(stages, 3)
        await first.within(stages).retriever.retrieve(QUERY, PUBLIC, "v2", 3)
        assert first.searched == Searched(QUERY, PUBLIC, 3, found)
