"""Runs a question set through the served configuration and scores every question.

The order of the results is the order of the questions whatever finished first, so two runs give identical numbers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import fmean
from typing import TypeVar

from domain.errors import StageFailed
from domain.types import Scorecard
from eval.client import Client, Failure
from eval.metrics import Observed, metric
from eval.questions import Question, fingerprint

Item = TypeVar("Item")
Result = TypeVar("Result")


async def evaluate(
    client: Client,
    version: str,
    questions: Sequence[Question],
    metrics: Sequence[str],
    *,
    workers: int = 4,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Scorecard, tuple[Observed, ...]]:
    """The named metrics for every question, and what was observed, in the order of `questions`.

    A failed request stays in: it scores zero where it is eligible. When all of them fail there is nothing to score,
    and StageFailed says what the first one said.
    """

    async def observe(question: Question) -> Observed:
        return Observed(question, await client.ask(question.query, question.scope, question.history))

    observed = tuple(await each(questions, observe, workers, progress))
    failures = [o.response for o in observed if isinstance(o.response, Failure)]
    if observed and len(failures) == len(observed):
        raise StageFailed(
            f"All {len(observed)} questions failed, the first with {failures[0].code}: {failures[0].message}"
        )
    values = {name: {o.question.id: metric(name)(o) for o in observed} for name in metrics}
    return Scorecard(version, fingerprint(questions), values), observed


def means(scorecard: Scorecard) -> dict[str, tuple[float, int]]:
    """Mean and number of eligible questions per metric; metrics without an eligible question are left out."""
    eligible = {name: [v for v in per.values() if v is not None] for name, per in scorecard.values.items()}
    return {name: (fmean(values), len(values)) for name, values in eligible.items() if values}


async def each(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    workers: int,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Result]:
    """Results of `work` over `items`, in their order, at most `workers` at a time; `progress` gets the count done."""
    slots, done = asyncio.Semaphore(workers), 0

    async def one(item: Item) -> Result:
        nonlocal done
        async with slots:
            result = await work(item)
        done += 1
        progress(done)
        return result

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in items]
    return [task.result() for task in tasks]
