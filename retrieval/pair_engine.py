"""The pair-scoring engine: requests of many callers, one stream of batches. The model runs in threads of its own.

A batch is sized in padded tokens: the most urgent request's pairs, longest first, and those of others where there is
room. Each pair is padded by itself (batching.py), so its company costs nothing and changes no bit of its score. What a
request does not get in time it goes without; the caller is told. Texts to tokens is joining.py, what is made of the
logits is mixing.py, the model itself is behind pairs.py.
"""

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from math import inf
from time import monotonic

import numpy as np

from domain.errors import StageFailed
from domain.types import Hit, PassageTokens
from retrieval.batching import padded
from retrieval.joining import Joiner, KeyedPair
from retrieval.pair_requests import Ran, Reading, Request, WaitingPair
from retrieval.pairs import JoinedPair, PairModel

log = logging.getLogger("tidegate.retrieval")

PATIENCE_S = 10.0  # a request without a deadline takes the place in the queue that this deadline would give it
PACE = 0.3  # weight of the latest batch in the estimate of the speed


class PairEngine:
    """Scores pairs for many callers at once: each distinct pair once, the earliest deadline first, then first come.

    One worker thread per model of `models`, which must be alike. A pair's score does not depend on its batch beyond the
    number format's rounding. `within_s` is the time a request has unless it says otherwise (None: any); it is over at
    the latest with the batch that is running then. The last `remembered` scores are kept, so that a second, wider round
    does not read again what the first one read. A batch that fails, fails the requests in it and no other.
    """

    def __init__(
        self,
        models: Sequence[PairModel],
        *,
        batch_tokens: int,
        within_s: float | None = None,
        remembered: int = 65_536,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.tag, self.listwise = models[0].tag, False
        self.within_s = within_s
        self.ran = Ran()
        self._models, self._batch_tokens, self._clock = tuple(models), batch_tokens, clock
        self._join = Joiner(models[0])
        self._joining = ThreadPoolExecutor(1, "pairs-joining")  # the event loop has others to serve meanwhile
        self._scores: OrderedDict[bytes, float] = OrderedDict()
        self._remembered = remembered
        self._turn = threading.Condition()  # guards everything below
        self._requests: list[Request] = []  # by urgency
        self._waiting: dict[bytes, WaitingPair] = {}  # asked for and not scored yet, running ones included
        self._sequence = count()
        self._speed: float | None = None  # padded tokens a second of one worker
        self._workers: list[threading.Thread] = []
        self._closed = False

    async def read(self, question: str, hits: Sequence[Hit], within_s: float | None = None) -> Reading:
        """The logits of what could be read in time, the hits given first being read first when time is short.

        Cancelling the call drops what has not begun. Raises StageFailed when the model failed on one of these pairs.
        """
        if self._closed:
            raise _closing()
        deadline = self._clock() + self.limit_s(within_s)
        joining = asyncio.get_running_loop().run_in_executor(self._joining, self._join, question, tuple(hits))
        return await asyncio.wrap_future(self._submit(await joining, deadline))

    def score(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """As PairScorer.score: all logits, however long it takes."""
        reading = self._submit(self._join(query, hits), inf).result()
        return [logit for logit in reading.logits if logit is not None]

    def tokens_of(self, hit: Hit) -> PassageTokens:
        """The passage as the model's tokenizer cuts it: what a version keeps of it."""
        return self._join.tokens_of(hit)

    def check(self) -> None:
        """Raises RuntimeError when the engine is closed or one of its threads has ended: it must be replaced."""
        dead = [worker.name for worker in self._workers if not worker.is_alive()]
        if self._closed or dead:
            raise RuntimeError(f"The pair engine does not run ({', '.join(dead) or 'closed'}): it must be replaced.")

    def close(self) -> None:
        """Ends the threads after the batches that are running; who still waits gets StageFailed."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        for worker in self._workers:
            worker.join()
        self._joining.shutdown()  # who is still being joined is told the same; a cancelled join would say nothing
        with self._turn:
            self._abandon(_closing())

    def _cost(self, joined: JoinedPair) -> int:
        """Tokens that are computed for a pair, its own padding included."""
        return padded(len(joined.ids)) if self._models[0].pads else len(joined.ids)

    def limit_s(self, within_s: float | None) -> float:
        """The seconds that a request has which asks for `within_s`: the engine's own limit holds too."""
        return min((limit for limit in (within_s, self.within_s) if limit is not None), default=inf)

    # ------------------------------------------------------------------------------------------ callers' side

    def _submit(self, pairs: Sequence[KeyedPair], deadline: float) -> Future[Reading]:
        request = Request(deadline, (min(deadline, self._clock() + PATIENCE_S), next(self._sequence)), len(pairs))
        with self._turn:
            if self._closed:
                raise _closing()
            for place, pair in enumerate(pairs):
                request.truncated[place] = pair.joined.truncated
                if (known := self._scores.get(pair.key)) is not None:
                    request.logits[place] = known
                    continue
                request.places.setdefault(pair.key, []).append(place)
                if pair.key not in request.todo:
                    shared = self._waiting.setdefault(
                        pair.key, WaitingPair(pair.key, pair.joined, self._cost(pair.joined))
                    )
                    shared.askers.append(request)
                    request.todo[pair.key] = shared
            if not request.todo:
                request.settle()
                return request.future
            self._requests.append(request)
            self._requests.sort(key=lambda other: other.urgency)
            self._start()
            self._turn.notify_all()
        return request.future

    def _start(self) -> None:
        """The threads begin with the first request: a process that forks before has none to lose."""
        if not self._workers:
            self._workers = [
                threading.Thread(target=self._work, args=(model,), name=f"pairs-{i}", daemon=True)
                for i, model in enumerate(self._models)
            ]
            for worker in self._workers:
                worker.start()

    # ------------------------------------------------------------------------------------------ workers' side

    def _work(self, model: PairModel) -> None:
        try:
            while True:
                with self._turn:
                    while not self._closed and not (batch := self._next_batch()):
                        self._turn.wait()
                    if self._closed:
                        return
                self._run(model, batch)
        except BaseException:
            log.exception("A thread of the pair engine ended: this is a bug in pair_engine.py.")
            with self._turn:
                self._abandon(StageFailed("The reranker's engine broke: its log says why.", "reranker"))
            raise

    def _run(self, model: PairModel, batch: list[WaitingPair]) -> None:
        began = self._clock()
        try:
            logits = model.logits([pair.joined for pair in batch])
            if logits.shape != (len(batch),) or not np.isfinite(logits).all():
                raise ValueError(f"{logits.shape} logits, not all of them finite, for {len(batch)} pairs")
        except Exception as error:
            log.exception("A batch of %d pairs failed in %s.", len(batch), self.tag)
            failed = StageFailed(f"The reranker's model failed ({type(error).__name__}): its log says why.", "reranker")
            with self._turn:
                for pair in batch:
                    for request in list(pair.askers):
                        self._leave(request)
                        request.fail(failed)
                    self._waiting.pop(pair.key, None)
            return
        took_s = self._clock() - began
        cost = sum(pair.cost for pair in batch)
        computed = -(-cost // model.room) * model.room
        with self._turn:
            self.ran.add(len(batch), sum(len(pair.joined.ids) for pair in batch), computed)
            if took_s > 0:
                pace = cost / took_s
                self._speed = pace if self._speed is None else (1 - PACE) * self._speed + PACE * pace
            for pair, logit in zip(batch, logits.tolist(), strict=True):
                self._scored(pair, logit)
            self._turn.notify_all()

    def _scored(self, pair: "WaitingPair", logit: float) -> None:
        del self._waiting[pair.key]
        if self._remembered:
            self._scores[pair.key] = logit
            while len(self._scores) > self._remembered:
                self._scores.popitem(last=False)
        for request in pair.askers:
            del request.todo[pair.key]
            for place in request.places[pair.key]:
                request.logits[place] = logit
            if not request.todo:
                self._requests.remove(request)
                request.settle()

    # ------------------------------------------------------------------------------------------ what runs next

    def _next_batch(self) -> list[WaitingPair]:
        """The pairs to run now, marked as running; empty when there is nothing to do."""
        for request in list(self._requests):
            if request.future.cancelled():
                self._leave(request)
        for request in list(self._requests):
            if window := self._window(request):
                batch = self._filled(window, request)
                for pair in batch:
                    pair.running = True
                return batch
            if not any(pair.running for pair in request.todo.values()):  # its time is over
                self._leave(request)
                request.settle()
        return []

    def _window(self, request: Request) -> list[WaitingPair]:
        """Those of its pairs that are expected to be read in time, from the first stage's best on.

        One pair is tried in any case while there is time at all and none has been read.
        """
        idle = [pair for pair in request.todo.values() if not pair.running]
        left_s = request.deadline - self._clock()
        if left_s <= 0 or not idle:
            return []
        if self._speed is None or left_s == inf:
            return idle
        room, fitting = self._speed * left_s * len(self._models), []
        for pair in idle:
            room -= pair.cost
            if room < 0:
                break
            fitting.append(pair)
        return fitting or ([] if request.begun else idle[:1])

    def _filled(self, window: list[WaitingPair], urgent: Request) -> list[WaitingPair]:
        """A batch of the window's longest pairs, filled up with what others wait for."""
        tokens = self._batch_tokens
        if len(self._models) > 1 and len(self._requests) == 1:  # shared out, so that no worker idles at the end
            tokens = min(tokens, sum(pair.cost for pair in window) // len(self._models))
        if self._speed is not None and urgent.deadline < inf:
            tokens = min(tokens, int(self._speed * (urgent.deadline - self._clock())))
        urgent.begun = True
        ordered = sorted(window, key=lambda pair: -pair.cost)  # stable: equal inputs make equal batches
        batch, rest = ordered[:1], tokens - ordered[0].cost
        for pair in ordered[1:]:
            if pair.cost > rest:
                return batch
            batch.append(pair)
            rest -= pair.cost
        taken = {pair.key for pair in batch}
        for pair in self._idle():
            if pair.cost > rest:
                break
            if pair.key not in taken:
                batch.append(pair)
                taken.add(pair.key)
                rest -= pair.cost
        return batch

    def _idle(self) -> Iterator[WaitingPair]:
        now = self._clock()
        for request in self._requests:
            if request.deadline > now:
                yield from (pair for pair in request.todo.values() if not pair.running)

    def _leave(self, request: Request) -> None:
        """Takes a request out; what nobody else waits for is not run any more."""
        self._requests.remove(request)
        for pair in request.todo.values():
            pair.askers.remove(request)
            if not pair.askers and not pair.running:
                del self._waiting[pair.key]

    def _abandon(self, error: StageFailed) -> None:
        self._closed = True
        for request in list(self._requests):
            self._leave(request)
            request.fail(error)


def _closing() -> StageFailed:
    return StageFailed("The reranker is being closed: try again.", "reranker", 1.0)
