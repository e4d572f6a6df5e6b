"""A version, measured as it would be served: questions through the HTTP surface, floors, a recorded decision.

The decision is bound to what was measured, so that nothing else can be promoted on it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as installed
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from domain.types import Binding, Decision, Scope, Scorecard
from eval.gates import Floor, digest, floors, judge
from eval.questions import Question, fingerprint
from tidegate.effective import digest as settings_digest
from tidegate.progress import Report

if TYPE_CHECKING:
    from eval.client import Client
    from tidegate.settings import Settings

# Reported beside the floors' own metrics, because a person asks for them first.
ALWAYS = ("answer_correctness", "abstention", "answered", "success")
BEIR_CHUNKS = 300  # per query: leaves room for 100 documents of three chunks each


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation: per-question values, and the decision over them."""

    scorecard: Scorecard
    decision: Decision


def draw(questions: tuple[Question, ...], n: int, seed: int) -> tuple[Question, ...]:
    """At most `n` questions, drawn by seed and given in their own order; all of them when there are no more."""
    if len(questions) <= n:
        return questions
    chosen = set(Random(seed).sample(range(len(questions)), n))  # noqa: S311 - a reproducible draw, not a secret
    return tuple(question for position, question in enumerate(questions) if position in chosen)


def binding(settings: "Settings", version: str, questions: tuple[Question, ...]) -> Binding:
    """What a decision about `version` must speak of to be about what would be served."""
    gates = floors(settings.evaluation.floors)
    code = installed("tidegate")
    return Binding(version, fingerprint(questions), settings_digest(settings), digest(gates), code)


async def measure(
    settings: "Settings", version: str, questions: tuple[Question, ...], report: Report, client: "Client"
) -> tuple[Scorecard, tuple[Floor, ...]]:
    """The scorecard of `version` over `questions`, and the floors it will be held to."""
    from eval.harness import evaluate

    gates = floors(settings.evaluation.floors)
    metrics = tuple(dict.fromkeys([*(gate.metric for gate in gates), *ALWAYS]))
    async with client:
        scorecard, _ = await evaluate(
            client,
            version,
            questions,
            metrics,
            workers=settings.evaluation.workers,
            progress=lambda done: report("evaluating", done, len(questions)),
        )
    return scorecard, gates


async def decide(settings: "Settings", version: str, questions: tuple[Question, ...], report: Report) -> Measured:
    """The decision about `version`, measured in this process under the served settings, and recorded."""
    from tidegate.compose import make_registry

    scorecard, gates = await measure(settings, version, questions, report, await local_client(settings, version))
    decision = Decision(
        binding=binding(settings, version, questions),
        verdicts=judge(scorecard, gates),
        run_id="",
        decided_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    make_registry(settings).record(decision)
    return Measured(scorecard, decision)


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
) -> dict[str, float | int]:
    """ndcg@10, recall@10, recall@100 and n of a BEIR collection through `/v1/search`."""
    from eval.beir import measure as measure_collection
    from eval.questions import load_beir

    queries, qrels = load_beir(folder, split, queries_file)
    async with client:
        return await measure_collection(
            client,
            queries,
            qrels,
            Scope(settings.access.tenant, frozenset(settings.access.groups)),
            rerank=rerank,
            k=k,
            workers=settings.evaluation.workers,
            progress=lambda done: report("searching", done, len(queries)),
        )


async def local_client(settings: "Settings", version: str) -> "Client":
    """A client of the whole service in this process, pinned to `version`."""
    from eval.client import Client
    from serving.api import create_app
    from tidegate.compose import evaluation_service, make_library

    library = make_library(settings)
    await library.refresh()
    return Client.in_process(create_app(evaluation_service(settings, library)), version)
