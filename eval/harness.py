"""Runs a question set through the served configuration and scores every question.

The order of the results is the order of the questions whatever finished first, so two runs give identical numbers.
With a journal every reply is on disk as it arrives, and only what is not there yet is asked.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from domain.errors import StageFailed
from domain.releases import Scorecard
from eval.client import Client, Failure
from eval.journal import Journal, Reply
from eval.metrics import metrics
from eval.observed import Limits, Observed
from eval.questions import Question, fingerprint

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]  # (done, of how many)


async def ask(
    client: Client,
    questions: Sequence[Question],
    *,
    workers: int = 4,
    journal: Journal | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Reply]:
    """A reply for every question, by its id: out of the journal where it has one, asked now where it has none.

    A journal of nothing but failures measured nothing, so that everything is asked again.
    """
    if journal and all(isinstance(reply.response, Failure) for reply in journal.replies.values()):
        journal.start_over()
    replies = dict(journal.replies) if journal else {}
    missing = [question for question in questions if question.id not in replies]
    known = len(questions) - len(missing)

    async def one(question: Question) -> None:
        begun = time.perf_counter()
        response = await client.ask(question.query, question.scope, question.history)
        reply = replies[question.id] = Reply(response, (time.perf_counter() - begun) * 1000)
        if journal:
            journal.add(question.id, reply)

    await each(missing, one, workers, lambda done, _: progress(known + done, len(questions)))
    return replies


def observe(
    questions: Sequence[Question], replies: Mapping[str, Reply], limits: Limits | None = None
) -> tuple[Observed, ...]:
    """Every question with its reply, in the order of `questions`. Raises KeyError for one that has none."""
    return tuple(Observed(q, replies[q.id].response, replies[q.id].latency_ms, limits) for q in questions)


def score(observed: Sequence[Observed], names: Sequence[str]) -> Scorecard:
    """The named metrics of every question. The same replies give the same numbers.

    The scorecard names the version that answered; all of them, where a canary took a share. A failed request stays
    in: it scores zero where it is eligible. When all of them fail there is nothing to score, and StageFailed says
    what the first one said. Raises ConfigError for unknown metrics.
    """
    wanted = metrics(names)
    failures = [o.response for o in observed if isinstance(o.response, Failure)]
    if observed and len(failures) == len(observed):
        raise StageFailed(
            f"All {len(observed)} questions failed, the first with {failures[0].code}: {failures[0].message}"
        )
    versions = sorted({o.response["index_version"] for o in observed if not isinstance(o.response, Failure)})
    values = {name: {o.question.id: measure(o) for o in observed} for name, measure in wanted.items()}
    return Scorecard(", ".join(versions), fingerprint([o.question for o in observed]), values)


async def each(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    workers: int,
    progress: Progress = lambda done, total: None,
) -> list[Result]:
    """Results of `work` over `items`, in their order, at most `workers` at a time.

    The first exception ends the others and comes out as itself; nothing is running when this returns or raises.
    """
    slots, done = asyncio.Semaphore(workers), 0

    async def one(item: Item) -> Result:
        nonlocal done
        async with slots:
            result = await work(item)
        done += 1
        progress(done, len(items))
        return result

    # Not a TaskGroup: it would wrap one refused connection in an exception group, which no caller expects.
    tasks = [asyncio.create_task(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
