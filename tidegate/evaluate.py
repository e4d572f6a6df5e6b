"""`tidegate evaluate`: what a version achieves, on a question set of its own library or on a public collection."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, StageFailed
from domain.releases import Binding, Outcome
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from eval.beir import Retrieved
    from eval.questions import Question
    from tidegate.measuring import Measured
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
    if beir is not None and questions is not None:
        raise BadRequest("--questions and --beir are two measurements: ask for one.", "questions")
    if beir is None and (split or queries or not rerank):
        raise BadRequest("--split, --queries and --no-rerank belong to --beir DIR.", "beir")
    try:
        if beir is not None:
            return _on_collection(settings, beir, version, url, split, queries, rerank)
        return _on_questions(settings, version, questions, slice, url, as_json)
    except StageFailed as error:  # neither good nor bad: there is no number
        complain(str(error))
        return Code.NOT_MEASURED


def _on_questions(settings: "Settings", version: str, path: Path | None, part: str, url: str, as_json: bool) -> Code:
    from eval.client import Client
    from eval.gates import worst
    from tidegate.measuring import decide, measure

    chosen = question_set(settings, path, part)
    if url:
        note(
            "no decision is recorded: the settings served there are not known here. The service must trust the "
            "X-Tidegate headers, or every question is asked as its anonymous reader"
        )
        client = Client.to_url(url, version or None)
        with progress() as report:
            measured, bound = asyncio.run(measure(settings, chosen, report, client)), None
    else:
        name = newest(settings, version)
        with progress() as report:
            decided = asyncio.run(decide(settings, name, chosen, report))
        measured, bound = decided.measured, decided.decision.binding
    if measured.failures:
        counts = ", ".join(f"{n} {code}" for code, n in measured.failures.items())
        note(f"{sum(measured.failures.values())} of {len(chosen)} requests failed and score zero: {counts}")
    outcome = worst(measured.verdicts)
    if as_json:
        _print_json(measured, bound, len(chosen), outcome)
    else:
        _print_lines(measured, len(chosen), outcome)
    return OUTCOME_CODES[outcome]


def _print_json(measured: "Measured", bound: Binding | None, n: int, outcome: Outcome) -> None:
    from dataclasses import asdict

    from eval.harness import means

    say_json(
        {
            "version": measured.scorecard.version,
            "questions": measured.scorecard.dataset,
            "n": n,
            "failed": dict(measured.failures),
            "metrics": {name: {"mean": mean, "n": n} for name, (mean, n) in means(measured.scorecard).items()},
            "verdicts": [{"gate": v.gate, "outcome": v.outcome.name, "reason": v.reason} for v in measured.verdicts],
            "outcome": outcome.name,
            "binding": asdict(bound) if bound else None,  # of the recorded decision; over HTTP there is none
        }
    )


def _print_lines(measured: "Measured", n: int, outcome: Outcome) -> None:
    from eval.harness import means

    for name, (mean, eligible) in means(measured.scorecard).items():
        say(f"{name:<20} {mean:.3f}  over {eligible} questions")
    for verdict in measured.verdicts:
        say(f"{verdict.outcome.name:<12} {verdict.gate}: {verdict.reason}")
    say(f"{outcome.name}: version {measured.scorecard.version}, {n} questions of set {measured.scorecard.dataset}")


def _on_collection(
    settings: "Settings", folder: Path, version: str, url: str, split: str, queries: str, rerank: bool
) -> Code:
    from eval.client import Client
    from tidegate.measuring import BEIR_CHUNKS, local_client, measure_beir

    if not url and rerank and settings.rerank.backend == "none":
        raise BadRequest("rerank.backend is none: add --no-rerank, or choose a reranker.", "rerank")
    if not rerank:
        settings = settings.model_copy(update={"rerank": settings.rerank.model_copy(update={"backend": "none"})})
    k = settings.retrieval.max_k if url else BEIR_CHUNKS
    name = version if url else newest(settings, version)
    how = f"{k} chunks a query, {'reranked' if rerank else 'not reranked'}"
    note(f"searching {f'at {url}' if url else f'version {name}'}, {how}")

    async def work() -> "Retrieved":
        client = Client.to_url(url, name or None) if url else await local_client(settings, name)
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
        found = asyncio.run(work())
    if found.unscorable:
        note(f"{len(found.unscorable)} judged queries have no relevant document: not scorable, in no mean")
    if found.textless:
        note(f"{len(found.textless)} judged queries have no text in the file of queries: not asked, in no mean")
    if not found.means["recall@100"]:
        note(f"no query found any relevant document: was {name or 'that version'} built from {folder}?")
    say_json({**found.means, "n": found.n})
    return Code.DONE


def question_set(settings: "Settings", path: Path | None, part: str = "frozen") -> "tuple[Question, ...]":
    """The questions to measure on, at most evaluation.questions of the wanted slice. Raises BadRequest for none."""
    from eval.questions import load
    from tidegate.measuring import draw
    from tidegate.sample import questions_path

    if part not in ("dev", "frozen", "all"):
        raise BadRequest(f"There is no slice {part!r}: dev, frozen or all.", "slice")
    source = path or questions_path(settings)
    if path is None and not source.exists():
        raise BadRequest(
            "There is no question set: name one with --questions FILE, or make the sample library with tidegate up.",
            "questions",
        )
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
