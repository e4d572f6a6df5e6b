"""`tidegate evaluate`: what a version achieves, on a question set of its own library or on a public collection."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from domain.types import Outcome
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from tidegate.settings import Settings

OUTCOME_CODES = {
    Outcome.PASS: Code.DONE,
    Outcome.INCONCLUSIVE: Code.INCONCLUSIVE,
    Outcome.ERROR: Code.NOT_MEASURED,
    Outcome.FAIL: Code.REFUSED,
}


def evaluate(
    ctx: typer.Context,
    version: Annotated[str, typer.Argument(help="Index version; the newest when left out.", show_default=False)] = "",
    questions: Annotated[
        Path | None, typer.Option(help="Question set (JSON lines); the sample library's when left out.")
    ] = None,
    slice: Annotated[str, typer.Option(help="dev, frozen or all.")] = "frozen",
    url: Annotated[
        str, typer.Option(help="Measure what is served there, without a decision.", show_default=False)
    ] = "",
    beir: Annotated[Path | None, typer.Option(help="Measure search on this BEIR collection instead.")] = None,
    split: Annotated[str, typer.Option(help="Split of the collection.", show_default=False)] = "",
    queries: Annotated[str, typer.Option(help="Other file of queries in the collection.", show_default=False)] = "",
    rerank: Annotated[bool, typer.Option(help="Rerank, with --beir.")] = True,
    as_json: AsJson = False,
) -> Code:
    """Measure a version under the settings that would serve it. Records a decision that promotion asks for."""
    settings = loaded(ctx).settings
    if beir is not None:
        return _on_collection(settings, beir, version, url, split, queries, rerank)
    if split or queries:
        raise BadRequest("--split and --queries belong to --beir DIR.", "beir")
    return _on_questions(settings, version, questions, slice, url, as_json)


def _on_questions(settings: "Settings", version: str, path: Path | None, part: str, url: str, as_json: bool) -> Code:
    from eval.client import Client
    from eval.gates import judge
    from eval.harness import means
    from tidegate.measuring import decide, measure

    chosen = question_set(settings, path, part)
    with progress() as report:
        if url:
            client = Client.to_url(url)
            scorecard, gates = asyncio.run(measure(settings, version or "served", chosen, report, client))
            verdicts, outcome = judge(scorecard, gates), None
            note("measured over HTTP: no decision is recorded, because the served settings are not known here")
        else:
            name = newest(settings, version)
            measured = asyncio.run(decide(settings, name, chosen, report))
            scorecard, verdicts, outcome = measured.scorecard, measured.decision.verdicts, measured.decision.outcome
    worst = outcome if outcome is not None else max(verdict.outcome for verdict in verdicts)
    if as_json:
        say_json(
            {
                "version": scorecard.version,
                "questions": scorecard.dataset,
                "n": len(chosen),
                "metrics": {name: {"mean": mean, "n": n} for name, (mean, n) in means(scorecard).items()},
                "verdicts": [{"gate": v.gate, "outcome": v.outcome.name, "reason": v.reason} for v in verdicts],
                "outcome": worst.name,
            }
        )
        return OUTCOME_CODES[worst]
    for name, (mean, n) in means(scorecard).items():
        say(f"{name:<20} {mean:.3f}  over {n} questions")
    for verdict in verdicts:
        say(f"{verdict.outcome.name:<12} {verdict.gate}: {verdict.reason}")
    say(f"{worst.name}: version {scorecard.version}, question set {scorecard.dataset}")
    return OUTCOME_CODES[worst]


def _on_collection(
    settings: "Settings", folder: Path, version: str, url: str, split: str, queries: str, rerank: bool
) -> Code:
    from eval.client import Client
    from tidegate.measuring import BEIR_CHUNKS, local_client, measure_beir

    if rerank and settings.rerank.backend == "none":
        raise BadRequest("rerank.backend is none: add --no-rerank, or choose a reranker.", "rerank")
    if not rerank:
        settings = settings.model_copy(update={"rerank": settings.rerank.model_copy(update={"backend": "none"})})
    k = settings.retrieval.max_k if url else BEIR_CHUNKS
    name = version if url else newest(settings, version)
    note(f"searching {'at ' + url if url else 'version ' + name}, {'reranked' if rerank else 'not reranked'}")

    async def work() -> dict[str, float | int]:
        client = Client.to_url(url) if url else await local_client(settings, name)
        return await measure_beir(
            settings,
            folder,
            client=client,
            split=split or None,
            queries_file=queries or None,
            rerank=rerank,
            k=k,
            report=report,
        )

    with progress() as report:
        result = asyncio.run(work())
    say_json(result)
    return Code.DONE


def question_set(settings: "Settings", path: Path | None, part: str = "frozen"):  # type: ignore[no-untyped-def]
    """The questions to measure on: a tuple of Question, at most evaluation.questions of the wanted slice."""
    from eval.questions import load
    from tidegate.measuring import draw
    from tidegate.sample import questions_path

    if part not in ("dev", "frozen", "all"):
        raise BadRequest(f"There is no slice {part!r}: dev, frozen or all.", "slice")
    source = path or questions_path(settings)
    if path is None and not source.exists():
        raise BadRequest("There is no question set: name one with --questions FILE.", "questions")
    everything = load(source)
    wanted = tuple(q for q in everything if part in ("all", q.slice))
    if not wanted:
        raise BadRequest(f"{source} has {len(everything)} questions and none in slice {part}: --slice all.", "slice")
    return draw(wanted, settings.evaluation.questions, settings.evaluation.seed)


def newest(settings: "Settings", version: str) -> str:
    """The version named, or the one built last. Raises NotFound, or BadRequest when nothing was built."""
    from tidegate.compose import make_registry

    registry = make_registry(settings)
    if version:
        registry.folder(version)
        return version
    there = registry.versions()
    if not there:
        raise BadRequest("No version has been built yet: tidegate build CORPUS.", "version")
    return there[-1].id
