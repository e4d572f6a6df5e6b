"""What live answers tell about a canary: one Observation per request, numbers only, written beside the answering.

Both versions are observed while a canary runs. A canaried question is also searched on stable (shadow.py), so that
retrieval is compared on the same question. Weighing the numbers is not done here.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace

from domain.errors import BadRequest, NotFound
from domain.ports import Observations, Stages
from domain.releases import Observation, Rollout
from domain.types import Answer, Ask, Done, Event, Failed, Grounding, Status
from serving.service import Service
from serving.shadow import FirstSearch, Searched, Shadow
from serving.telemetry import OBSERVATIONS, OBSERVATIONS_LOST

log = logging.getLogger("tidegate.serving")

WAITING = 1_000  # observations on their way to a disk; one that hangs must cost neither memory nor answers
NEITHER = ""  # the version of an observation that counts for neither side


class Observer:
    """Turns answers into observations and has them written, one at a time, on a thread of its own."""

    def __init__(self, service: Service) -> None:
        self._service, self._shadow = service, Shadow(service)
        self._thread = ThreadPoolExecutor(1, "observations")
        self._tasks: set[asyncio.Task[None]] = set()  # the loop holds tasks weakly
        self._missed: Counter[tuple[str, int]] = Counter()  # lost on the way; the log of that canary is told later
        self._told = False

    def watch(self, ask: Ask, rollout: Rollout, measuring: bool) -> "Watched | None":
        """The request under observation; None without a canary, and for a client that is `measuring`: what it asks,
        and which version it asks, is not what people do.

        `rollout` is the pointer by which the version was assigned: whatever moves meanwhile, the observation belongs
        to the canary that ran then.
        """
        if self._service.observations is None or rollout.canary is None or measuring:
            return None
        return Watched(self, self._service, ask, rollout)

    def keep(self, rollout: Rollout, observation: Observation, searched: Searched | None = None) -> None:
        """Has an observation written to the log of this rollout's canary, after the comparison with stable of what was
        `searched`. Returns at once; an observation that is lost is counted.
        """
        kept = self._service.observations
        if kept is None or rollout.canary is None:
            return
        if len(self._tasks) >= WAITING:
            self._missed[rollout.canary, rollout.began] += 1
            self._lost("too many are waiting to be written")
            return
        task = asyncio.create_task(self._keep(kept, rollout.canary, rollout, observation, searched))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(
        self,
        observations: Observations,
        canary: str,
        rollout: Rollout,
        observation: Observation,
        searched: Searched | None,
    ) -> None:
        if searched is not None and rollout.stable is not None:
            observation = replace(observation, paired=await self._shadow.compare(searched, rollout.stable))
        loop, why = asyncio.get_running_loop(), "they cannot be written"
        missed = self._missed.pop((canary, rollout.began), 0)
        try:
            written = await loop.run_in_executor(
                self._thread, _write, observations, canary, rollout.began, observation, missed
            )
        except Exception as error:  # told and counted: whatever the log is, answers do not depend on it
            self._missed[canary, rollout.began] += missed + 1
            written, why = False, f"{type(error).__name__}: {error}"
        if written:
            self._told = False
            self._service.telemetry.add(OBSERVATIONS, 1, observation.version or "neither")
        else:
            self._lost(why)

    def _lost(self, why: str) -> None:
        self._service.telemetry.add(OBSERVATIONS_LOST, 1)
        if not self._told:  # once per trouble, not once per request
            log.warning("Observations of the canary are lost (%s): without them it cannot be judged.", why)
        self._told = True


def _write(kept: Observations, canary: str, began: int, observation: Observation, missed: int) -> bool:
    """Whether the observation was written, after as many as were missed before it were told."""
    if missed:
        kept.lose(canary, began, missed)
    return kept.write(canary, began, observation)


class Watched:
    """One request under observation. However it ends, at most one observation comes of it."""

    def __init__(self, observer: Observer, service: Service, ask: Ask, rollout: Rollout) -> None:
        self._observer, self._service, self._ask, self._rollout = observer, service, ask, rollout
        self._started = service.clock()
        self._first = FirstSearch(service.stages, ask.k or service.rules.k)
        self._over = False

    def stages(self, stages: Stages) -> Stages:
        """The stages to answer with: a canaried request remembers what stable has to be searched for."""
        return self._first.within(stages) if self._ask.version == self._rollout.canary else stages

    async def events(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """The events of the answer. An answer that breaks with a bug of ours has failed, and is observed as such."""
        async with aclosing(events):
            try:
                async for event in events:
                    yield event
            except Exception:
                self._end(self._ask.version, _values(None, False), None)
                raise

    def ended(self, terminal: Done | Failed) -> None:
        """Keeps what came of the request. What the caller got wrong is not observed: it says nothing of a version."""
        if isinstance(terminal, Failed) and _callers_fault(terminal):
            return
        trace = terminal.answer.trace if isinstance(terminal, Done) else terminal.trace
        # A version that stood in counts for neither side: for the one that was meant it shows nothing, and for stable
        # it would be one more request, drawn from sessions that were not given to it.
        version = self._ask.version if trace is None or trace.version == self._ask.version else NEITHER
        within_slo = (self._service.clock() - self._started) * 1000 <= self._service.live_slo_ms
        compared = isinstance(terminal, Done) and version == self._rollout.canary
        answer = terminal.answer if isinstance(terminal, Done) else None
        self._end(version, _values(answer, within_slo), self._first.searched if compared else None)

    def _end(self, version: str, values: Mapping[str, float | None], searched: Searched | None) -> None:
        if self._over:
            return
        self._over = True
        observation = Observation(self._ask.trace_id, self._service.wall(), version, values)
        self._observer.keep(self._rollout, observation, searched)


def _callers_fault(failed: Failed) -> bool:
    """True for a question that could not be answered by anybody. A version that is not found is no caller's fault:
    callers do not name it here.
    """
    return isinstance(failed.error, BadRequest) and not isinstance(failed.error, NotFound)


def _values(answer: Answer | None, within_slo: bool) -> Mapping[str, float | None]:
    """The metrics of one answer; None is a request that failed.

    A failure is zero in all of them, so that failing more never looks like answering better. A question that was
    declined is not eligible where something had to be cited.
    """
    if answer is None:
        return dict.fromkeys(("success", "within_slo", "answered", "grounded", "citations_resolved"), 0.0)
    declined = answer.status is Status.NO_SOURCES
    return {
        "success": 1.0,
        "within_slo": float(within_slo),
        "answered": float(answer.status is Status.COMPLETE),
        "grounded": None if declined else float(answer.grounding is Grounding.GROUNDED),
        "citations_resolved": None if declined else float(_resolved(answer)),
    }


def _resolved(answer: Answer) -> bool:
    """True when the answer cites, every marker named a source, and every source was among the evidence."""
    cited = {citation.chunk_id for citation in answer.citations}
    return bool(cited) and not answer.trace.dropped and cited <= set(answer.trace.packed)
