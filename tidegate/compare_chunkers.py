"""`tidegate compare-chunkers`: one library cut in every way, searched with the same questions, side by side.

Everything is built in a temporary place that is gone afterwards: no version is published, nothing is decided.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, CorpusError, StageFailed
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval.chunkings import Looked
    from eval.observed import Observed
    from eval.questions import Question
    from retrieval.building import BuildReport
    from tidegate.settings import Settings

DEPTH = 10  # of ndcg@10, and of the recall that is told beside that at the served number of passages


@dataclass(frozen=True, slots=True)
class Library:
    """What is cut: documents as `tidegate build` takes them, and questions that have gold evidence."""

    corpus: Path
    format: str
    groups: str
    questions: "tuple[Question, ...]"


def compare_chunkers(
    ctx: typer.Context,
    corpus: Annotated[
        Path | None, typer.Argument(help="Documents as for build; the sample library when left out.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Question set; a BEIR collection's own, or the sample's, when left out.")
    ] = None,
    strategies: Annotated[str, typer.Option(help="Which ways, comma separated; all when left out.")] = "",
    slice: Annotated[str, typer.Option(help="Which of the questions: dev, frozen or all.")] = "dev",
    format: Annotated[str, typer.Option(help="auto, folder or beir.")] = "auto",
    groups: Annotated[str, typer.Option(help="Groups, comma separated, of documents that name none.")] = "",
    as_json: AsJson = False,
) -> Code:
    """Cut a library in every way and measure each.

    What each way finds (recall, ndcg, with intervals, and paired with the configured way), what it takes (passages,
    bytes, seconds), and how many gold sentences no passage holds whole. Size and overlap are those of the settings, and
    so are search and reranking. Questions of the dev slice: what is chosen on the frozen one is measured on nothing.
    """
    from eval.chunkings import compared

    settings = loaded(ctx).settings
    names = chosen(settings, strategies)
    if settings.retrieval.knowledge_base is not None:
        raise BadRequest("retrieval.knowledge_base is searched: its passages are cut elsewhere.", "knowledge_base")
    with TemporaryDirectory(prefix="tidegate-chunkers-") as place, progress() as report:
        library = _library(settings, Path(place), corpus, questions, slice, format, groups)
        try:
            looked = [_looked(settings, Path(place), library, name, report, tell=name == names[0]) for name in names]
        except StageFailed as error:  # neither good nor bad: there is no number
            complain(str(error))
            return Code.NOT_MEASURED
    told = compared(looked, settings.chunking.strategy, settings.evaluation.alpha, settings.evaluation.seed)
    if as_json:
        from tidegate.chunking_lines import as_record

        say_json(as_record(settings, told, len(library.questions), slice))
    else:
        from tidegate.chunking_lines import lines

        for line in lines(settings, told, len(library.questions), slice):
            say(line)
    return Code.DONE


def chosen(settings: "Settings", strategies: str) -> list[str]:
    """The strategies asked for, the configured one first so that others can be compared with it. Raises BadRequest."""
    from retrieval.chunking import CHUNKERS

    named = [name.strip() for name in strategies.split(",") if name.strip()] or list(CHUNKERS)
    if unknown := [repr(name) for name in named if name not in CHUNKERS]:
        raise BadRequest(
            f"There is no chunking strategy {' or '.join(unknown)}: there are {', '.join(CHUNKERS)}.", "strategies"
        )
    return list(dict.fromkeys([settings.chunking.strategy, *named]))


# ---------------------------------------------------------------------------------------------- what is cut


def _library(
    settings: "Settings",
    place: Path,
    corpus: Path | None,
    questions: Path | None,
    part: str,
    format: str,
    groups: str,
) -> Library:
    """Documents and questions with gold. Raises BadRequest or CorpusError naming what is missing."""
    from tidegate.sample import corpus_path, make_sample, questions_path

    if corpus is None:
        own = settings.model_copy(update={"data_dir": place})
        make_sample(own)
        corpus, source = corpus_path(own), questions or questions_path(own)
    else:
        if not corpus.exists():
            raise CorpusError(f"Corpus {corpus} does not exist: name a folder of documents.")
        source = _questions_of(settings, corpus, questions)
    return Library(corpus, format, groups, _with_gold(settings, source, part))


def _questions_of(settings: "Settings", corpus: Path, named: Path | None) -> Path:
    if named is not None:
        return named
    if (corpus / "qrels").is_dir():
        return corpus
    if settings.evaluation.question_set is not None:
        return settings.evaluation.question_set
    raise BadRequest(
        f"No questions are known for {corpus}, so no way of cutting it can be measured: name a set whose evidence "
        "stands in it with --questions FILE, or in evaluation.question_set.",
        "questions",
    )


def _with_gold(settings: "Settings", source: Path, part: str) -> "tuple[Question, ...]":
    """At most evaluation.questions of the wanted slice that name evidence: without it nothing can be recalled."""
    from eval.collection import load_questions
    from tidegate.compose import anonymous
    from tidegate.measuring import draw

    if part not in ("dev", "frozen", "all"):
        raise BadRequest(f"There is no slice {part!r}: dev, frozen or all.", "slice")
    everything = load_questions(source, anonymous(settings))
    wanted = tuple(q for q in everything if part in ("all", q.slice))
    if not wanted:
        raise BadRequest(f"{source} has {len(everything)} questions and none in slice {part}: --slice all.", "slice")
    gold = tuple(q for q in wanted if q.evidence)
    if not gold:
        raise BadRequest(
            f"None of the {len(wanted)} questions of {source} names evidence: recall needs the sentences or documents "
            "that hold the answers.",
            "questions",
        )
    return draw(gold, settings.evaluation.questions, settings.evaluation.seed)


# ---------------------------------------------------------------------------------------------- one way of cutting


def _looked(settings: "Settings", place: Path, library: Library, name: str, report: Report, *, tell: bool) -> "Looked":
    """What one way of cutting comes to, built in a folder of its own so that it takes nothing from another."""
    from domain.packing import estimate_tokens
    from eval.chunkings import Looked, Taken, metric_names, tokens_at, unresolved
    from eval.harness import score
    from retrieval.stored import StoredVersion
    from tidegate.compose import make_registry

    own = _apart(settings, place / name, name)
    begun = perf_counter()
    built = _built(own, library, report, name, tell)
    build_s = perf_counter() - begun
    stored = StoredVersion(make_registry(own).folder(built.version.id))
    if tell:
        _check_gold(library, set(stored.documents))
    passages = [(passage.source.doc_id, passage.text) for passage in stored.passages()]
    cutoffs = sorted({DEPTH, settings.answering.k})
    observed = asyncio.run(_asked(own, built.version.id, library.questions, max(cutoffs), report, name))
    if not any(one.passages("consulted") for one in observed):
        asker = library.questions[0].scope
        raise BadRequest(
            f"No passage of {library.corpus} may be read by those who ask, of tenant '{asker.tenant}' in the groups "
            f"{', '.join(sorted(asker.groups)) or 'of nobody'}: name readers with --groups, or access.tenant.",
            "groups",
        )
    tokens = sum(estimate_tokens(text) for _, text in passages)
    size = sum(path.stat().st_size for path in stored.folder.rglob("*") if path.is_file())
    return Looked(
        name=name,
        taken=Taken(built.version.chunks, len(passages), tokens / len(passages), size, build_s),
        unresolved=unresolved(library.questions, passages),
        scorecard=score(observed, metric_names(library.questions, cutoffs)),
        tokens_at=tokens_at(observed, cutoffs),
    )


def _apart(settings: "Settings", place: Path, name: str) -> "Settings":
    from tidegate.settings import Settings

    return settings.model_copy(
        update={
            "data_dir": place,
            "registry": Settings.model_fields["registry"].default,  # a folder, wherever versions are kept otherwise
            "chunking": settings.chunking.model_copy(update={"strategy": name}),
        }
    )


def _built(settings: "Settings", library: Library, report: Report, name: str, tell: bool) -> "BuildReport":
    from tidegate import build

    def told(what: str, done: int, total: int) -> None:
        report(f"{name}: {what}", done, total)

    built = build.build_version(settings, library.corpus, told, format=library.format, groups=library.groups)
    if tell:  # of the files it is the same every time
        build.tell(built.outcomes)
    return built


def _check_gold(library: Library, documents: set[str]) -> None:
    """Raises BadRequest when the library has no document of the gold; notes when it lacks some."""
    wanted = {anchor.doc_id for question in library.questions for anchor in question.evidence}
    if not wanted & documents:
        raise BadRequest(
            f"None of the {len(wanted)} documents that the questions name as evidence is in {library.corpus}, such as "
            f"'{min(wanted)}': these questions are about another library.",
            "questions",
        )
    if missing := wanted - documents:
        note(f"{len(missing)} of {len(wanted)} documents of the gold evidence are not in {library.corpus}")


async def _asked(
    settings: "Settings", version: str, questions: "Sequence[Question]", k: int, report: Report, name: str
) -> "list[Observed]":
    """Every question with the passages that a search of this version gives, as it would be served."""
    from domain.packing import estimate_tokens
    from domain.ports import Stages
    from domain.searching import search
    from domain.types import Mode
    from eval.harness import each
    from eval.observed import Observed
    from generation.extractive import ExtractiveGenerator
    from tidegate.compose import make_library, make_reranker, make_rewriter

    library, rewriter = make_library(settings), make_rewriter(settings)
    reranker = None if settings.rerank.backend == "none" else make_reranker(settings, hurried=False)
    stages = Stages(rewriter, library, reranker, ExtractiveGenerator())  # nothing is answered here

    async def one(question: "Question") -> "Observed":
        query = (await rewriter.rewrite(question.query, question.history)).query
        found, _ = await search(query, question.scope, version, k, Mode.HYBRID, stages, settings.rerank.depth)
        consulted = [
            {
                "doc_id": hit.chunk.source.doc_id,
                "quote": hit.chunk.text,
                "tokens": estimate_tokens(hit.chunk.text),
            }
            for hit in found.hits
        ]
        return Observed(question, {"consulted": consulted, "index_version": found.version})

    try:
        await library.refresh()
        workers = settings.evaluation.workers
        return await each(questions, one, workers, lambda done, total: report(f"{name}: searching", done, total))
    finally:
        library.close()
