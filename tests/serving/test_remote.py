"""Stages a process away: patience, one retry on a dead replica, our own errors; over handles that need no Ray."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from domain.errors import NotFound, Overloaded, StageFailed, StageTimeout, UpstreamInterrupted
from domain.prompt import PromptPlan
from domain.types import Delta, Draft, Encoded, Query, Reranking, Retrieval, StopReason, TextSide
from serving.remote import Patience, readiness, remote_encoder, remote_stages
from serving.telemetry import Prometheus
from tests.fakes import PUBLIC, hits
from tests.serving.service import TIDE

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")  # Ray's own models

QUICK = Patience(0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05)
PLAN = PromptPlan("Answer.", (), (), "Why?")
FOUND = Retrieval(hits(TIDE), "v1")
PIECES = (Delta("So [S1]."), Draft("So [S1].", StopReason.END))


def died() -> Exception:
    from ray.exceptions import ActorDiedError

    return ActorDiedError()


def raised_there(cause: Exception) -> Exception:
    """An exception as Ray hands it over: one that is both Ray's and the cause's class."""
    from ray.exceptions import RayTaskError

    return RayTaskError("retrieve", "traceback", cause).as_instanceof_cause()


@dataclass
class Response:
    """What a handle's call gives: awaited for one value, iterated for a stream."""

    outcome: Any
    cancelled: bool = False

    def __await__(self):
        return self._come().__await__()

    async def _come(self) -> Any:
        if self.outcome == "silence":
            await asyncio.sleep(3600)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def __aiter__(self) -> "Response":
        return self

    async def __anext__(self) -> Any:
        if not self.outcome:
            raise StopAsyncIteration
        piece, *self.outcome = self.outcome
        if piece == "silence":
            await asyncio.sleep(3600)
        if isinstance(piece, Exception):
            raise piece
        return piece

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Method:
    """One method of a handle; every call takes the next of `outcomes`."""

    outcomes: list[Any]
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    def remote(self, *arguments: Any) -> Response:
        self.calls.append(arguments)
        self.responses.append(Response(self.outcomes.pop(0)))
        return self.responses[-1]


class Handle:
    """A handle whose methods all are `method`."""

    def __init__(self, *outcomes: Any) -> None:
        self.method = Method(list(outcomes))

    def __getattr__(self, name: str) -> Method:
        return self.method

    def options(self, **_: Any) -> "Handle":
        return self


def stages(telemetry: Any = None, **handles: Handle) -> Any:
    """Remote stages over the given handles."""
    every = {"rewriter": Handle(), "retriever": Handle(), "generator": Handle(), "reranker": Handle(), **handles}
    return remote_stages(every, QUICK, telemetry or Prometheus())[0]


def search(handle: Handle, telemetry: Any = None) -> Any:
    return stages(telemetry, retriever=handle).retriever.retrieve(Query("gate"), PUBLIC, "v1", 3)


async def test_a_dead_replica_is_asked_once_more_and_the_retry_is_counted() -> None:
    handle, telemetry = Handle(died(), FOUND), Prometheus()
    assert await search(handle, telemetry) == FOUND
    assert handle.method.calls[0] == handle.method.calls[1]
    assert b'tidegate_retries_total{stage="retriever"} 1.0' in telemetry.exposition()


async def test_vectors_come_from_the_retriever_or_from_any_shard_and_a_dead_replica_is_asked_again() -> None:
    vectors = Encoded((b"\0\0\x80?",), 1, "e", "v1")
    for name in ("retriever", "retriever-0"):
        handle = Handle(died(), vectors)
        encoder = remote_encoder({name: handle, "generator": Handle()}, QUICK, Prometheus())
        assert await encoder.encode(["gate"], "v1", TextSide.QUERY) == vectors
        assert handle.method.calls[1] == (("gate",), "v1", TextSide.QUERY)


async def test_a_replica_lost_in_the_middle_of_a_grpc_call_counts_as_dead() -> None:
    import grpc

    lost = grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata())
    assert await search(Handle(lost, FOUND)) == FOUND


async def test_two_dead_replicas_in_a_row_are_a_failed_stage() -> None:
    handle = Handle(died(), died(), FOUND)
    with pytest.raises(StageFailed, match="retriever died twice") as caught:
        await search(handle)
    assert (caught.value.stage, caught.value.retryable) == ("retriever", True)
    assert len(handle.method.calls) == 2


async def test_what_a_stage_raises_arrives_as_the_class_it_raised_and_is_not_retried() -> None:
    handle = Handle(raised_there(NotFound("Version v9 is not here.", "version")), FOUND)
    with pytest.raises(NotFound) as caught:
        await search(handle)
    assert type(caught.value) is NotFound
    assert caught.value.field == "version"
    assert len(handle.method.calls) == 1


async def test_a_bug_in_a_stage_is_a_failed_stage_without_its_details() -> None:
    with pytest.raises(StageFailed) as caught:
        await search(Handle(raised_there(KeyError("secret detail"))))
    assert "KeyError" in str(caught.value)
    assert "secret detail" not in str(caught.value)


async def test_a_full_queue_is_overload_with_a_time_to_wait() -> None:
    from ray.serve.exceptions import BackPressureError

    with pytest.raises(Overloaded) as caught:
        await search(Handle(BackPressureError(5, 5)))
    assert caught.value.retry_after_s == 1.0


async def test_a_stage_that_does_not_answer_is_given_up_and_cancelled() -> None:
    handle = Handle("silence")
    with pytest.raises(StageTimeout, match=r"retriever did not answer within 0\.05 s"):
        await search(handle)
    assert handle.method.responses[0].cancelled


async def test_a_timeout_raised_inside_a_stage_is_not_taken_for_ours() -> None:
    with pytest.raises(StageFailed, match="TimeoutError") as caught:
        await search(Handle(raised_there(TimeoutError("inner"))))
    assert type(caught.value) is StageFailed


async def test_a_caller_that_goes_away_cancels_the_call() -> None:
    handle = Handle("silence")
    call = asyncio.create_task(search(handle))
    await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert handle.method.responses[0].cancelled


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda s: s.rewriter.rewrite("why?", ()), "a rewrite"),
        (lambda s: s.rewriter.paraphrase(Query("why?")), "a wider query"),
        (lambda s: s.retriever.chunks(["c"], PUBLIC, "v1"), (TIDE,)),
        (lambda s: s.reranker.rerank(Query("why?"), hits(TIDE), 0.2), Reranking(hits(TIDE))),
    ],
)
async def test_every_stage_is_retried_alike(call: Callable[[Any], Any], outcome: Any) -> None:
    handle = Handle(died(), outcome)
    assert await call(stages(rewriter=handle, retriever=handle, reranker=handle)) == outcome


async def test_without_a_reranker_handle_the_fused_order_stands() -> None:
    handles = {"rewriter": Handle(), "retriever": Handle(), "generator": Handle()}
    assert remote_stages(handles, QUICK, Prometheus())[0].reranker is None


async def written(handle: Handle) -> list[Any]:
    return [piece async for piece in stages(generator=handle).generator.generate(PLAN)]


async def test_a_stream_is_begun_again_when_the_replica_dies_before_its_first_piece() -> None:
    assert await written(Handle([died()], [PIECES])) == list(PIECES)


async def test_a_stream_that_dies_after_its_first_piece_is_interrupted_and_never_repeated() -> None:
    handle = Handle([PIECES[:1], died()], [PIECES])
    with pytest.raises(UpstreamInterrupted):
        await written(handle)
    assert len(handle.method.calls) == 1


async def test_a_stream_that_falls_silent_is_given_up_and_cancelled() -> None:
    for pieces in (["silence"], [PIECES[:1], "silence"]):
        handle = Handle(pieces)
        with pytest.raises(StageTimeout):
            await written(handle)
        assert handle.method.responses[0].cancelled


async def test_closing_a_stream_cancels_it_in_the_replica() -> None:
    handle = Handle([PIECES[:1], PIECES[1:]])
    pieces = stages(generator=handle).generator.generate(PLAN)
    await anext(pieces)
    await pieces.aclose()
    assert handle.method.responses[0].cancelled


async def written_whole(handle: Handle) -> list[Any]:
    every = {"rewriter": Handle(), "retriever": Handle(), "generator": handle}
    _, writer = remote_stages(every, QUICK, Prometheus())
    return [piece async for piece in writer.generate(PLAN)]


async def test_an_answer_that_is_not_streamed_is_asked_for_again_until_it_is_there() -> None:
    assert await written_whole(Handle(PIECES)) == list(PIECES)
    handle = Handle(died(), PIECES)
    assert await written_whole(handle) == list(PIECES)
    assert len(handle.method.calls) == 2


async def test_an_answer_that_is_not_streamed_has_a_limit_of_its_own() -> None:
    handle = Handle("silence")
    with pytest.raises(StageTimeout):
        await written_whole(handle)
    assert handle.method.responses[0].cancelled


async def test_readiness_asks_every_stage_and_waits_for_none_for_long() -> None:
    ready = readiness({"rewriter": Handle(True), "retriever": Handle("silence"), "generator": Handle(died())}, QUICK)
    assert await ready() == {"rewriter": True, "retriever": False, "generator": False}


# ---------------------------------------------------------------------------------------------- shards


def sharded(*handles: Handle) -> tuple[list[Any], list[float]]:
    """The shards that a merge is given, and the seconds."""
    given: list[Any] = []
    seconds: list[float] = []

    def merge(shards: Any, limit_s: float) -> Any:
        given.extend(shards)
        seconds.append(limit_s)
        return given

    every = {f"retriever-{i}": handle for i, handle in enumerate(handles)}
    remote_stages({"rewriter": Handle(), "generator": Handle(), **every}, QUICK, Prometheus(), merge)
    return given, seconds


async def test_shards_are_merged_in_the_order_of_their_numbers() -> None:
    given, seconds = sharded(*(Handle(number) for number in range(11)))
    assert [await shard.survey("asked") for shard in given] == list(range(11))
    assert [shard.name for shard in given][-2:] == ["retriever-9", "retriever-10"]
    assert seconds == [QUICK.retrieve_s]


@pytest.mark.parametrize("step", ["survey", "shortlist", "hits", "passages"])
async def test_a_shard_that_died_is_asked_once_more_and_then_named(step: str) -> None:
    given, _ = sharded(Handle(died(), "found"), Handle(died(), died()))
    assert await getattr(given[0], step)("asked") == "found"
    with pytest.raises(StageFailed, match="retriever-1 died twice") as caught:
        await getattr(given[1], step)("asked")
    assert caught.value.stage == "retriever-1"
