"""`tidegate evaluate`: what a version achieves, on a question set of its own library or on a public collection.

Measures and remembers, and decides nothing: `tidegate gate` does.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, StageFailed
from domain.evaluation import ALL, Evaluation
from tidegate.config import AnyVersion, AsJson, QuestionSet
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from eval.beir import Retrieved
    from eval.questions import Question
    from tidegate.measuring import Measured
    from tidegate.settings import Settings


def evaluate(
    ctx: typer.Context,
    version: AnyVersion = "",
    questions: QuestionSet = None,
    slice: Annotated[str, typer.Option(help="Which of the questions: dev, frozen or all.")] = "frozen",
    url: Annotated[str, typer.Option(help="Measure what is served at this address instead.", show_default=False)] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask every question again.")] = False,
    resend: Annotated[bool, typer.Option("--resend", help="Only send what MLflow has not taken yet.")] = False,
    beir: Annotated[Path | None, typer.Option(help="Measure search on this BEIR collection instead.")] = None,
    split: Annotated[str, typer.Option(help="Split of the collection.", show_default=False)] = "",
    queries: Annotated[str, typer.Option(help="Another file of queries in the collection.", show_default=False)] = "",
    rerank: Annotated[bool, typer.Option(help="Rerank, with --beir.")] = True,
    as_json: AsJson = False,
) -> Code:
    """Measure a version under the settings that serve it. Decides nothing: see tidegate gate.

    Every reply is kept as it arrives: after a crash the same line goes on where it was, and what is whole is not asked
    again. Failed requests are kept too and score zero, until --fresh.
    """
    settings = loaded(ctx).settings
    if beir is not None and questions is not None:
        raise BadRequest("--questions and --beir are two measurements: ask for one.", "questions")
    if beir is None and (split or queries or not rerank):
        raise BadRequest("--split, --queries and --no-rerank belong to --beir DIR.", "beir")
    try:
        if resend:
            return _resend(settings)
        if beir is not None:
            return _on_collection(settings, beir, version, url, split, queries, rerank)
        return _on_questions(settings, version, questions, slice, url, fresh, as_json)
    except StageFailed as error:  # neither good nor bad: there is no number
        complain(str(error))
        return Code.NOT_MEASURED


def _on_questions(
    settings: "Settings", version: str, path: Path | None, part: str, url: str, fresh: bool, as_json: bool
) -> Code:
    from tidegate.deciding import tell_failures
    from tidegate.findings import evaluation
    from tidegate.measuring import binding, measure
    from tidegate.tracking import prepare

    chosen = question_set(settings, path, part)
    if url:
        note(
            "the settings served there are not known here. The service must trust the X-Tidegate headers, or every "
            "question is asked as its anonymous reader"
        )
    name = version if url else newest(settings, version)
    if not url:
        prepare(settings)
    with progress() as report:
        measured = asyncio.run(measure(settings, name, chosen, report, url=url, fresh=fresh))
    if measured.kept:
        note(f"{measured.kept} of {len(chosen)} answers were there already: --fresh asks again")
    tell_failures(measured, note)
    found = evaluation(settings, binding(settings, measured.scorecard.version, chosen), measured)
    if as_json:
        _print_json(settings, measured, found, local=not url)
    else:
        _print_lines(settings, measured, found)
    if not url:
        _track(settings, found)
    return Code.DONE


def _print_json(settings: "Settings", measured: "Measured", found: Evaluation, local: bool) -> None:
    from dataclasses import asdict

    from eval.attacking import succeeded
    from tidegate.findings import summary
    from tidegate.measuring import TIMED, gate_list

    timed = any(gate.metric in TIMED for gate in gate_list(settings))
    metrics = {name: asdict(slices[ALL]) for name, slices in found.metrics.items() if ALL in slices}
    say_json(
        {
            "version": measured.scorecard.version,
            "questions": measured.scorecard.dataset,
            "n": len(measured.observed),
            "failed": dict(measured.failures),
            "metrics": {name: value for name, value in metrics.items() if timed or name not in TIMED},
            "summary": summary(settings, measured),
            "attacks_succeeded": list(succeeded(measured.scorecard)),
            "binding": asdict(found.binding) if local else None,  # over HTTP the settings are not known
        }
    )


def _print_lines(settings: "Settings", measured: "Measured", found: Evaluation) -> None:
    from eval.attacking import succeeded
    from eval.gates import CLOSED
    from tidegate.findings import summary

    for name, slices in found.metrics.items():
        if (estimate := slices.get(ALL)) is None:
            say(f"{name:<27} no question is eligible")
            continue
        interval = "" if estimate.low is None else f"  [{estimate.low:.3f}, {estimate.high:.3f}]"
        counted = "attacks" if name in CLOSED else "questions"
        say(f"{name:<27} {estimate.mean:.3f}{interval}  over {estimate.n} {counted}")
    for name, value in summary(settings, measured).items():
        say(f"{name:<27} {'not measured' if value is None else f'{value:.3g}'}")
    if through := succeeded(measured.scorecard):
        say(f"attacks that succeeded      {', '.join(through)}")
    took = sorted(o.latency_ms for o in measured.observed if o.latency_ms is not None)
    say(f"latency                  median {took[len(took) // 2]:.0f} ms, longest {took[-1]:.0f} ms")
    say(f"Version {measured.scorecard.version}, {len(took)} questions of set {measured.scorecard.dataset}")


def _track(settings: "Settings", found: Evaluation) -> None:
    from tidegate.tracking import track

    tracked = track(settings, found)
    if tracked.note:
        note(tracked.note)
    if tracked.run_id:
        note(f"tracked as run {tracked.run_id}")


def _resend(settings: "Settings") -> Code:
    from tidegate.tracking import resend

    resent = resend(settings)
    if resent.note:
        note(resent.note)
    say(f"{resent.sent} sent, {resent.failed} not taken")
    return Code.REFUSED if resent.failed else Code.DONE


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
    """The questions to measure on, at most evaluation.questions of the wanted slice. Raises BadRequest for none.

    Without a path they are those of evaluation.question_set, and without that the sample library's. Those of a public
    collection are asked by the anonymous reader.
    """
    from eval.collection import load_questions
    from tidegate.compose import anonymous
    from tidegate.measuring import draw
    from tidegate.sample import questions_path

    if part not in ("dev", "frozen", "all"):
        raise BadRequest(f"There is no slice {part!r}: dev, frozen or all.", "slice")
    named = path or settings.evaluation.question_set
    source = named or questions_path(settings)
    if named is None and not source.exists():
        raise BadRequest(
            "There is no question set: name one with --questions FILE, or make the sample library with tidegate up.",
            "questions",
        )
    everything = load_questions(source, anonymous(settings))
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
