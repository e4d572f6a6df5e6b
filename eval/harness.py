"""Runs a question set through the served configuration and scores every question.

The order of the results is the order of the questions whatever finished first, so two runs give identical numbers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import fmean
from typing import TypeVar

from domain.errors import StageFailed
from domain.releases import Scorecard
from eval.client import Client, Failure
from eval.metrics import Observed, metrics
from eval.questions import Question, fingerprint

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]  # (done, of how many)


async def evaluate(
    client: Client,
    questions: Sequence[Question],
    names: Sequence[str],
    *,
    workers: int = 4,
    progress: Progress = lambda done, total: None,
) -> tuple[Scorecard, tuple[Observed, ...]]:
    """The named metrics for every question, and what was observed, in the order of `questions`.

    The scorecard names the version that answered; all of them, where a canary took a share. A failed request stays
    in: it scores zero where it is eligible. When all of them fail there is nothing to score, and StageFailed says
    what the first one said. Raises ConfigError for unknown metrics before anything is asked.
    """
    wanted = metrics(names)

    async def observe(question: Question) -> Observed:
        return Observed(question, await client.ask(question.query, question.scope, question.history))

    observed = tuple(await each(questions, observe, workers, progress))
    failures = [o.response for o in observed if isinstance(o.response, Failure)]
    if observed and len(failures) == len(observed):
        raise StageFailed(
            f"All {len(observed)} questions failed, the first with {failures[0].code}: {failures[0].message}"
        )
    versions = sorted({o.response["index_version"] for o in observed if not isinstance(o.response, Failure)})
    values = {name: {o.question.id: measure(o) for o in observed} for name, measure in wanted.items()}
    return Scorecard(", ".join(versions), fingerprint(questions), values), observed


def means(scorecard: Scorecard) -> dict[str, tuple[float, int]]:
    """Mean and number of eligible questions per metric; metrics without an eligible question are left out."""
    eligible = {name: [v for v in per.values() if v is not None] for name, per in scorecard.values.items()}
    return {name: (fmean(values), len(values)) for name, values in eligible.items() if values}


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
