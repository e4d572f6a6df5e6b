"""`tidegate build` and `tidegate versions`: documents to an index version, and the versions there are."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, CorpusError
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.ingestion import FileOutcome
    from domain.ports import Embedder
    from domain.releases import Decision, Move
    from retrieval.access_rules import Rule
    from retrieval.building import BuildReport
    from retrieval.documents import Corpus
    from retrieval.work import Workers
    from tidegate.settings import Settings

TOLD = 20  # files and records that are named one by one; a terminal is no place for thousands

# Cutting Chinese paragraphs of 300 to 650 tokens at 200 cost .007 nDCG@10 (cmrc2018-dev), English ones of 280 cost
# .010 (mtrag-human-subset). Encyclopedia articles of thousands of tokens still have to fit the evidence of a prompt.
PASSAGE_TOKENS = 700


def build(
    ctx: typer.Context,
    corpus: Annotated[Path, typer.Argument(help="Folder of documents, or a BEIR collection.", show_default=False)],
    format: Annotated[str, typer.Option(help="auto, folder or beir.")] = "auto",
    groups: Annotated[str, typer.Option(help="Groups, comma separated, that may read documents which name none.")] = "",
    on: Annotated[str, typer.Option(help="here, or ray: read, cut and embed by workers of a Ray cluster.")] = "here",
    workers: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Workers with --on ray; one a core when left out.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="HOST:PORT of a running Ray, or auto; one of its own when left out.")
    ] = None,
    as_json: AsJson = False,
) -> Code:
    """Build an index version; what did not change is kept.

    Unchanged text is not embedded again, and nobody is served from it before it is admitted. The version is the same,
    byte for byte, whoever does the work.
    """
    settings = loaded(ctx).settings
    where = place(on, workers, ray_address)
    with progress() as report:
        built = build_version(settings, corpus, report, format=format, groups=groups, where=where)
    if as_json:
        say_json(_as_json(built))
    else:
        tell(built.outcomes)
        say(_as_line(built))
    return Code.PARTIAL if any(o.status == "failed" for o in built.outcomes) else Code.DONE


def versions(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the index versions and where each stands.

    Oldest first. On its way to people a version is built, admitted, canary, stable and at last retired; told too is
    what admitted it.
    """
    from dataclasses import asdict

    from tidegate.compose_releases import make_releases

    releases = make_releases(loaded(ctx).settings)
    rollout, there, moves = releases.registry.rollout(), releases.registry.versions(), releases.registry.ledger()
    roles = {rollout.previous: "previous", rollout.canary: "canary", rollout.stable: "stable"}
    if not there:
        note("no version has been built yet: tidegate build CORPUS")
    rows: list[dict[str, object]] = []
    for v in there:
        state, decision = releases.state(v.id), admitting(v.id, moves, releases.registry.decisions(v.id))
        if as_json:
            by = decision and {"decided_at": decision.decided_at, "run_id": decision.run_id, "forced": decision.forced}
            rows.append(asdict(v) | {"role": roles.get(v.id, ""), "state": state, "admitted_by": by})
            continue
        counts = f"{v.documents:>7} documents  {v.chunks:>8} chunks"
        previous = ", previous" if v.id == rollout.previous else ""
        say(f"{v.id}  {v.built_at}  {counts}  {v.chunker}  {_admitted_by(decision)}  {state}{previous}")
    damaged = releases.registry.damaged()
    for version, why in sorted(damaged.items()):
        note(f"version {version} is damaged: {why}")
    if as_json:
        say_json({"versions": rows, "damaged": dict(damaged), "rollout": asdict(rollout)})


def admitting(version: str, ledger: "Sequence[Move]", decisions: "Sequence[Decision]") -> "Decision | None":
    """The decision on which a version last went to people; before that, the latest on which it could; or None."""
    used = [m.decision for m in ledger if m.decision is not None and m.decision.binding.version == version]
    known = used or [d for d in decisions if d.admits]
    return known[-1] if known else None


def _admitted_by(decision: "Decision | None") -> str:
    if decision is None:
        return "not admitted"
    how = f"forced ({decision.forced})" if decision.forced else "passed"
    return f"{how} {decision.decided_at[:19]}"


@dataclass(frozen=True, slots=True)
class OfRay:
    """Where a build is shared out: `workers` of the Ray at `address`, of one of its own when that is None."""

    workers: int
    address: str | None


def place(on: str, workers: int | None, address: str | None) -> OfRay | None:
    """Where to build; None means in this process. Raises BadRequest for options that contradict each other."""
    if on not in ("here", "ray"):
        raise BadRequest(f"--on {on} is not known: use here or ray.", "on")
    if on == "here" and (workers is not None or address is not None):
        raise BadRequest("--workers and --ray-address are for clusters: add --on ray.", "on")
    return OfRay(workers or os.cpu_count() or 1, address) if on == "ray" else None


def build_version(
    settings: "Settings",
    corpus: Path,
    report: Report,
    *,
    format: str = "auto",
    groups: str = "",
    where: OfRay | None = None,
) -> "BuildReport":
    """The BuildReport of `corpus` under these settings, with the newest version as parent.

    A BEIR collection says nothing about access, so the anonymous reader may read it unless `groups` says otherwise;
    its documents are passages already, so under the default size only those above PASSAGE_TOKENS are cut.
    Raises CorpusError when there is nothing to index, after having told why of every file, and StorageError when the
    data folder cannot be written; both before the encoder is loaded where that can be known.
    """
    from tidegate.compose import make_embedder, make_registry
    from tidegate.server import check_writable

    if where is not None:
        corpus = corpus.absolute()  # workers may have another working directory
    if not corpus.exists():
        raise CorpusError(f"Corpus {corpus} does not exist: name a folder of documents.")
    registry = make_registry(settings)
    documents = corpus_of(settings, corpus, format, groups)
    check_writable(settings)
    known = registry.versions()
    embedder = make_embedder(settings)
    parent = known[-1].id if known else None
    with ExitStack() as stack:
        if where is not None:
            work = _workers(settings, embedder, where, stack, report)
            return built_from(settings, documents, embedder, work, parent, report)
        from tidegate.syncing import whole_source

        source = whole_source(settings, documents, embedder, {"format": format, "groups": groups})
        built = built_from(settings, documents, embedder, source.work, parent, report)
        source.remember(built.version.id)
        return built


def corpus_of(settings: "Settings", corpus: Path, format: str, groups: str) -> "Corpus":
    """The documents at a path, with the readers of those that name none."""
    from retrieval.documents import Corpus, collection_file
    from tidegate.compose_ingestion import limits_of
    from tidegate.who import group_names

    named = group_names(groups)
    passages = collection_file(corpus, format) is not None
    default = named or frozenset(settings.access.groups if passages else settings.access.default_groups)
    return Corpus(corpus, format, default, settings.access.tenant, limits_of(settings), rules_of(settings))


def rules_of(settings: "Settings") -> "tuple[Rule, ...]":
    """Who may read documents by their path."""
    from retrieval.access_rules import Rule

    return tuple(Rule(rule.path, frozenset(rule.groups)) for rule in settings.access.rules)


def built_from(
    settings: "Settings",
    documents: "Corpus",
    embedder: "Embedder",
    workers: "Workers | None",
    parent: str | None,
    report: Report,
) -> "BuildReport":
    """The version of these documents under these settings. Raises as `build_version` does."""
    from retrieval.building import build as build_index
    from retrieval.dense_choice import part
    from retrieval.documents import collection_file
    from tidegate.compose import make_registry, make_tokenizer
    from tidegate.compose_ingestion import make_outcomes

    chosen = settings.chunking
    is_default_size = chosen.tokens == type(chosen).model_fields["tokens"].default
    passages = collection_file(documents.root, documents.format) is not None
    try:
        built = build_index(
            documents,
            embedder=embedder,
            registry=make_registry(settings),
            staging=settings.data_dir / "staging",
            chunker=chosen.strategy,
            chunk_tokens=PASSAGE_TOKENS if passages and is_default_size else chosen.tokens,
            overlap=chosen.overlap,
            parent=parent,
            tokenizer=make_tokenizer(settings),
            extra=(part(settings.retrieval.dense),),
            workers=workers,
            progress=report,
        )
    except CorpusError:
        tell(documents.outcomes)
        raise
    make_outcomes(settings).write(built.version.id, built.outcomes)
    return built


def _workers(settings: "Settings", embedder: "Embedder", where: OfRay, stack: ExitStack, report: Report) -> "Workers":
    """Whoever shares the work, as long as the stack is open."""
    from tidegate.build_on_ray import OnRay, cluster

    report("starting Ray" if where.address is None else "joining Ray", 0, 0)
    stack.enter_context(cluster(where.address, where.workers))
    return OnRay(settings, where.workers, (embedder.tag, embedder.runtime))


def tell(outcomes: "Sequence[FileOutcome]") -> None:
    """Say of every file or record that was left out or needs a look why that is; of many, the worst first."""
    from domain.ingestion import worst_first

    remarkable = worst_first(outcomes)
    for outcome in remarkable[:TOLD]:
        note(f"{outcome.path}: {outcome.status} ({outcome.code}): {outcome.reason}")
    if len(remarkable) > TOLD:
        note(f"and {len(remarkable) - TOLD} more; `tidegate build --json` lists them all")
    if any("nobody may read" in outcome.reason for outcome in remarkable):
        note("documents that nobody may read are never found: name their readers, for example with --groups public")


def _as_json(built: "BuildReport") -> dict[str, object]:
    from dataclasses import asdict

    from domain.ingestion import counted

    files = counted(built.outcomes)
    return {
        "version": asdict(built.version),
        "new": built.new,
        "embedded": built.embedded,
        "reused_vectors": built.reused_vectors,
        "files": asdict(files) | {"total": files.total},
        "outcomes": [asdict(outcome) for outcome in built.outcomes if outcome.status != "indexed"],
    }


def _as_line(built: "BuildReport") -> str:
    from domain.ingestion import counted

    v, counts = built.version, counted(built.outcomes)
    fresh = f"{built.embedded} embedded, {built.reused_vectors} re-used" if built.new else "was there already"
    kinds = (("indexed", counts.indexed), ("with a warning", counts.warning), ("skipped", counts.skipped))
    told = [f"{n} {kind}" for kind, n in (*kinds, ("failed", counts.failed)) if n]
    records = f", {counts.records} records left out" if counts.records else ""
    files = f"files: {', '.join(told)} ({counts.total} in all{records})"
    return f"{v.id}  {v.documents} documents, {v.chunks} chunks ({fresh}); {files}"
