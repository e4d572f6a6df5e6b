"""The four stages a process away: the ports over Ray Serve handles, with patience, one retry and our own errors.

A stage that dies with a request in it is asked once more, because another replica answers; a stream only until its
first piece, because nothing shown is ever repeated. An answer that nobody watches being written comes in one piece,
which costs less and may be asked for again until it is there. What a stage raises arrives as the class it raised.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.errors import Overloaded, StageFailed, StageTimeout, TidegateError, UpstreamInterrupted
from domain.ports import Generator, Retriever, Stages, TextEncoder
from domain.prompt import PromptPlan
from domain.types import (
    Chunk,
    Delta,
    Draft,
    Encoded,
    Hit,
    Mode,
    Query,
    Reranking,
    Retrieval,
    Rewrite,
    Scope,
    TextSide,
    Turn,
)
from serving.telemetry import RETRIES, Telemetry
from serving.travel import travel_light

Handle = Any  # Ray's DeploymentHandle
Bunch = tuple[Delta | Draft, ...]
Merge = Callable[[Sequence["RemoteShard"], float], Retriever]  # all shards, and the seconds for one search
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds each stage has for one attempt, waiting for a free replica included."""

    rewrite_s: float = 5.0
    retrieve_s: float = 10.0
    rerank_s: float = 10.0
    first_token_s: float = 60.0
    idle_s: float = 30.0
    write_s: float = 120.0  # a whole answer, where nobody watches it being written
    ready_s: float = 2.0


def remote_stages(
    handles: Mapping[str, Handle], patience: Patience, telemetry: Telemetry, merge: Merge | None = None
) -> tuple[Stages, Generator]:
    """The stages behind `handles` (by stage name), and the same generator for answers that are not streamed.

    Without a "reranker" the fused order stands. With `merge` there is no "retriever": every "retriever-0" to the last
    is a shard, and `merge` makes one retriever of them.
    """
    travel_light()
    calls = _Calls(telemetry)
    # What we send are plain values; cloudpickle, Ray's default, looks at each of them for code it might have to carry.
    plain = {
        name: handle.options(request_serialization="pickle", response_serialization="pickle")
        for name, handle in handles.items()
    }
    stages = Stages(
        RemoteRewriter(plain["rewriter"], patience, calls),
        _retriever(plain, patience, calls, merge),
        RemoteReranker(plain["reranker"], patience, calls) if "reranker" in plain else None,
        RemoteGenerator(plain["generator"], patience, calls),
    )
    return stages, RemoteWriter(plain["generator"], patience, calls)


def remote_encoder(handles: Mapping[str, Handle], patience: Patience, telemetry: Telemetry) -> TextEncoder:
    """The encoder behind the same handles."""
    handle = handles["retriever"] if "retriever" in handles else handles[shard_name(0)]
    plain = handle.options(request_serialization="pickle", response_serialization="pickle")
    return RemoteEncoder(plain, patience, _Calls(telemetry))


def shard_name(number: int) -> str:
    """How the stage of one shard is called."""
    return f"retriever-{number}"


def _retriever(plain: Mapping[str, Handle], patience: Patience, calls: "_Calls", merge: Merge | None) -> Retriever:
    if merge is None:
        return RemoteRetriever(plain["retriever"], patience, calls)
    names = [shard_name(number) for number in range(len(plain)) if shard_name(number) in plain]
    return merge([RemoteShard(name, plain[name], patience, calls) for name in names], patience.retrieve_s)


def readiness(handles: Mapping[str, Handle], patience: Patience) -> Callable[[], Awaitable[Mapping[str, bool]]]:
    """A question to all stages at once: does a replica of yours answer?"""

    async def one(handle: Handle) -> bool:
        response = handle.ready.remote()
        try:
            async with asyncio.timeout(patience.ready_s):
                return bool(await response)
        except TimeoutError:
            response.cancel()
            return False
        except _lost():
            return False

    async def ready() -> Mapping[str, bool]:
        answers = await asyncio.gather(*(one(handle) for handle in handles.values()))
        return dict(zip(handles, answers, strict=True))

    return ready


class RemoteRewriter:
    """Rewriter over a handle."""

    def __init__(self, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        # A handle makes a new object at every look at one of its methods, so they are looked at once.
        self._rewrite, self._paraphrase = handle.rewrite, handle.paraphrase
        self._limit_s, self._calls = patience.rewrite_s, calls

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """As Rewriter.rewrite, or StageFailed."""
        rewrite: Rewrite = await self._calls.one("rewriter", self._limit_s, self._rewrite, question, tuple(history))
        return rewrite

    async def paraphrase(self, query: Query) -> Rewrite:
        """As Rewriter.paraphrase, or StageFailed."""
        wider: Rewrite = await self._calls.one("rewriter", self._limit_s, self._paraphrase, query)
        return wider


class RemoteRetriever:
    """Retriever over a handle."""

    def __init__(self, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        self._retrieve, self._chunks = handle.retrieve, handle.chunks
        self._limit_s, self._calls = patience.retrieve_s, calls

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """As Retriever.retrieve, or StageFailed."""
        method = self._retrieve
        found: Retrieval = await self._calls.one("retriever", self._limit_s, method, query, scope, version, n, mode)
        return found

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """As Retriever.chunks, or StageFailed."""
        method = self._chunks
        chunks: tuple[Chunk, ...] = await self._calls.one(
            "retriever", self._limit_s, method, tuple(ids), scope, version
        )
        return chunks


class RemoteEncoder:
    """TextEncoder over the handle of a retriever or of any shard of one: all have the same encoder."""

    def __init__(self, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        self._encode, self._limit_s, self._calls = handle.encode, patience.retrieve_s, calls

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:
        """As TextEncoder.encode, or StageFailed."""
        method = self._encode
        found: Encoded = await self._calls.one("retriever", self._limit_s, method, tuple(texts), version, side)
        return found


class RemoteShard:
    """One shard over a handle. What it is asked, and what it says, is known only to who makes one retriever of all."""

    def __init__(self, name: str, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        self.name = name
        self._survey, self._shortlist = handle.survey, handle.shortlist
        self._hits, self._passages = handle.hits, handle.passages
        self._limit_s, self._calls = patience.retrieve_s, calls

    async def survey(self, *question: object) -> Any:  # Any: a type of who merges
        """What the shard knows before a search, or StageFailed."""
        return await self._calls.one(self.name, self._limit_s, self._survey, *question)

    async def shortlist(self, *question: object) -> Any:  # Any: a type of who merges
        """What the shard finds, or StageFailed."""
        return await self._calls.one(self.name, self._limit_s, self._shortlist, *question)

    async def hits(self, *question: object) -> Any:  # Any: a type of who merges
        """Hits of the shard with their text, or StageFailed."""
        return await self._calls.one(self.name, self._limit_s, self._hits, *question)

    async def passages(self, *question: object) -> Any:  # Any: a type of who merges
        """Chunks of the shard by id, or StageFailed."""
        return await self._calls.one(self.name, self._limit_s, self._passages, *question)


class RemoteReranker:
    """Reranker over a handle."""

    def __init__(self, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        self._rerank, self._limit_s, self._calls = handle.rerank, patience.rerank_s, calls

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        """As Reranker.rerank, or StageFailed."""
        method = self._rerank
        ranked: Reranking = await self._calls.one("reranker", self._limit_s, method, query, tuple(hits), within_s)
        return ranked


class RemoteGenerator:
    """Generator over a handle, which sends pieces in bunches. Closing the stream cancels it in the replica."""

    def __init__(self, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        self._stream = handle.options(stream=True).generate
        self._patience, self._calls = patience, calls

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """As Generator.generate, or StageFailed; UpstreamInterrupted when the replica dies after the first piece."""
        bunches, bunch = await self._begin(plan)
        try:
            while bunch:
                for piece in bunch:
                    yield piece
                bunch = await self._next(bunches, self._patience.idle_s)
        except _lost() as error:
            text = "The generator died while it was writing: what was shown is not a whole answer, ask again."
            raise UpstreamInterrupted(text, "generator") from error
        finally:
            bunches.cancel()

    async def _begin(self, plan: PromptPlan) -> tuple[Any, Bunch]:  # Any: DeploymentResponseGenerator
        for attempt in range(1, ATTEMPTS + 1):
            bunches = self._stream.remote(plan)
            try:
                return bunches, await self._next(bunches, self._patience.first_token_s)
            except _lost() as error:
                self._calls.died("generator", attempt, error)
            except BaseException:
                bunches.cancel()
                raise
        raise RuntimeError("A retry ended without an outcome: this is a bug in serving/remote.py.")

    async def _next(self, bunches: Any, limit_s: float) -> Bunch:  # Any: DeploymentResponseGenerator
        """The next bunch, or an empty one at the end."""
        try:
            async with asyncio.timeout(limit_s) as limit:
                bunch: Bunch = await anext(bunches)
                return bunch
        except StopAsyncIteration:
            return ()
        except TimeoutError as error:
            raise _timeout("generator", limit_s, error, limit.expired()) from error
        except _lost():
            raise
        except Exception as error:
            raise _ours(error, "generator") from error


class RemoteWriter:
    """Generator over a handle which has the whole answer written before it says the first piece."""

    def __init__(self, handle: Handle, patience: Patience, calls: "_Calls") -> None:
        self._write, self._limit_s, self._calls = handle.write, patience.write_s, calls

    async def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """As Generator.generate, or StageFailed before the first piece."""
        pieces: Bunch = await self._calls.one("generator", self._limit_s, self._write, plan)
        for piece in pieces:
            yield piece


class _Calls:
    """One unary call with patience and a retry; the only place that decides about either."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    async def one(self, stage: str, limit_s: float, method: Any, *arguments: object) -> Any:  # Any: Ray's handle method
        """What `method` returns in a replica."""
        for attempt in range(1, ATTEMPTS + 1):
            response = method.remote(*arguments)
            try:
                async with asyncio.timeout(limit_s) as limit:
                    return await response
            except TimeoutError as error:
                response.cancel()
                raise _timeout(stage, limit_s, error, limit.expired()) from error
            except asyncio.CancelledError:
                response.cancel()
                raise
            except _lost() as error:
                self.died(stage, attempt, error)
            except Exception as error:
                raise _ours(error, stage) from error
        raise RuntimeError("A retry ended without an outcome: this is a bug in serving/remote.py.")

    def died(self, stage: str, attempt: int, error: Exception) -> None:
        """Returns when the call may be made again; raises StageFailed otherwise."""
        if attempt == ATTEMPTS:
            raise StageFailed(f"The {stage} died twice on this request: try again.", stage, 1.0) from error
        self._telemetry.add(RETRIES, 1, stage)


def _timeout(stage: str, limit_s: float, error: Exception, ours: bool) -> TidegateError:
    """Our own limit, or a TimeoutError that the stage itself raised."""
    if not ours:
        return _ours(error, stage)
    return StageTimeout(f"The {stage} did not answer within {limit_s:g} s: try again.", stage, 1.0)


def _ours(error: Exception, stage: str) -> TidegateError:
    """The error as one of our classes: the one raised in the replica, or a failed stage."""
    from ray.exceptions import RayTaskError
    from ray.serve.exceptions import BackPressureError

    cause = error.cause if isinstance(error, RayTaskError) else error
    if isinstance(cause, TidegateError):
        return cause
    if isinstance(cause, BackPressureError):
        return Overloaded(f"The {stage} has more requests waiting than it may: try again.", stage, 1.0)
    return StageFailed(f"The {stage} failed ({type(cause).__name__}): its log says why.", stage)


def _lost() -> tuple[type[Exception], ...]:
    """What Ray raises when the replica, not the work, is gone. In throughput mode calls travel by gRPC, which has its
    own word for a connection that broke under a call.
    """
    import grpc  # type: ignore[import-untyped]  # comes with Ray, without types
    from ray.exceptions import NodeDiedError, ObjectLostError, RayActorError, WorkerCrashedError
    from ray.serve.exceptions import RequestCancelledError

    return (
        RayActorError,
        NodeDiedError,
        ObjectLostError,
        WorkerCrashedError,
        grpc.aio.AioRpcError,
        RequestCancelledError,
    )
