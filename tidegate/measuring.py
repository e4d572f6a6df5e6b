"""A version, measured as it would be served: questions through the HTTP surface, floors, a recorded decision.

The decision is bound to what was measured, so that nothing else can be promoted on it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from domain.releases import Binding, Decision, Scorecard, Verdict
from eval.gates import digest, floors, judge
from eval.questions import Question, fingerprint
from tidegate import code
from tidegate.effective import digest as settings_digest
from tidegate.progress import Report

if TYPE_CHECKING:
    from eval.beir import Retrieved
    from eval.client import Client
    from tidegate.settings import Settings

# Reported beside the floors' own metrics, because a person asks for them first.
ALWAYS = ("answer_correctness", "abstention", "answered", "success")
BEIR_CHUNKS = 300  # per query: leaves room for 100 documents of three chunks each


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation: values per question, a verdict per floor, and how many requests failed with which code."""

    scorecard: Scorecard
    verdicts: tuple[Verdict, ...]
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Decided:
    """An evaluation with the decision that was recorded about it."""

    measured: Measured
    decision: Decision


def draw(questions: tuple[Question, ...], n: int, seed: int) -> tuple[Question, ...]:
    """At most `n` questions, drawn by seed and given in their own order; all of them when there are no more."""
    if len(questions) <= n:
        return questions
    chosen = set(Random(seed).sample(range(len(questions)), n))  # noqa: S311 - a reproducible draw, not a secret
    return tuple(question for position, question in enumerate(questions) if position in chosen)


def binding(
    settings: "Settings", version: str, questions: tuple[Question, ...], baseline: str | None = None
) -> Binding:
    """What a decision about `version` must speak of to be about what would be served instead of `baseline`."""
    return Binding(
        version=version,
        dataset=fingerprint(questions),
        settings=settings_digest(settings),
        gates=digest(floors(settings.evaluation.floors)),
        code=code.measuring(),
        baseline=baseline,
    )


async def measure(settings: "Settings", questions: tuple[Question, ...], report: Report, client: "Client") -> Measured:
    """What `client` gets for `questions`, held to the floors of the settings. Closes the client.

    Raises StageFailed when every question fails.
    """
    from eval.client import Failure
    from eval.harness import evaluate

    gates = floors(settings.evaluation.floors)
    names = tuple(dict.fromkeys([*(gate.metric for gate in gates), *ALWAYS]))
    async with client:
        scorecard, observed = await evaluate(
            client,
            questions,
            names,
            workers=settings.evaluation.workers,
            progress=lambda done, total: report("evaluating", done, total),
        )
    failures = Counter(o.response.code for o in observed if isinstance(o.response, Failure))
    return Measured(scorecard, judge(scorecard, gates), dict(sorted(failures.items())))


async def decide(settings: "Settings", version: str, questions: tuple[Question, ...], report: Report) -> Decided:
    """The decision about `version`, measured in this process under the served settings, and recorded."""
    from tidegate.compose import make_registry

    measured = await measure(settings, questions, report, await local_client(settings, version))
    decision = Decision(
        binding=binding(settings, version, questions),
        verdicts=measured.verdicts,
        run_id="",
        decided_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    make_registry(settings).record(decision)
    return Decided(measured, decision)


async def measure_beir(
    settings: "Settings",
    folder: Path,
    *,
    client: "Client",
    split: str | None,
    queries_file: str | None,
    rerank: bool,
    k: int,
    report: Report,
) -> "Retrieved":
    """ndcg@10, recall@10 and recall@100 of a BEIR collection through `/v1/search`. Closes the client."""
    from eval.beir import measure as measure_collection
    from eval.questions import load_beir
    from tidegate.compose import anonymous

    async with client:
        queries, qrels = load_beir(folder, split, queries_file)
        return await measure_collection(
            client,
            queries,
            qrels,
            anonymous(settings),
            rerank=rerank,
            k=k,
            workers=settings.evaluation.workers,
            progress=lambda done, total: report("searching", done, total),
        )


async def local_client(settings: "Settings", version: str) -> "Client":
    """A client of the whole service in this process, pinned to `version`."""
    from eval.client import Client
    from serving.api import create_app
    from tidegate.compose import evaluation_service, make_library

    library = make_library(settings)
    await library.refresh()
    return Client.in_process(create_app(evaluation_service(settings, library)), version)
