"""`tidegate build` and `tidegate versions`: documents to an index version, and the versions there are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from collections import Counter

    from retrieval.building import BuildReport
    from retrieval.records import FileStatus
    from tidegate.settings import Settings


def build(
    ctx: typer.Context,
    corpus: Annotated[Path, typer.Argument(help="Folder of documents, or a BEIR collection.", show_default=False)],
    format: Annotated[str, typer.Option(help="auto, folder or beir.")] = "auto",
    groups: Annotated[str, typer.Option(help="Groups, comma separated, that may read documents which name none.")] = "",
    as_json: AsJson = False,
) -> Code:
    """Build an index version; unchanged text is not embedded again. Nobody is served from it before it is admitted."""
    settings = loaded(ctx).settings
    with progress() as report:
        built = build_version(settings, corpus, report, format=format, groups=groups)
    _print_report(built, as_json)
    return Code.PARTIAL if any(o.status == "failed" for o in built.outcomes) else Code.DONE


def versions(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the index versions, oldest first, with what the pointer says about each."""
    from dataclasses import asdict

    from tidegate.compose import make_registry

    registry = make_registry(loaded(ctx).settings)
    rollout, there = registry.rollout(), registry.versions()
    roles = {rollout.previous: "previous", rollout.canary: "canary", rollout.stable: "stable"}
    if as_json:
        say_json({"versions": [asdict(v) | {"role": roles.get(v.id, "")} for v in there], "rollout": asdict(rollout)})
        return
    if not there:
        note("no version has been built yet: tidegate build CORPUS")
    for v in there:
        counts = f"{v.documents:>7} documents  {v.chunks:>8} chunks"
        say(f"{v.id}  {v.built_at}  {counts}  {v.chunker}  {roles.get(v.id, '')}".rstrip())


def build_version(
    settings: "Settings", corpus: Path, report: Report, *, format: str = "auto", groups: str = ""
) -> "BuildReport":
    """The BuildReport of `corpus` under these settings, with the newest version as parent.

    A BEIR collection says nothing about access, so the anonymous reader may read it unless `groups` says otherwise.
    """
    from retrieval.building import build as build_index
    from retrieval.documents import Corpus
    from tidegate.compose import make_embedder, make_registry

    registry, chosen = make_registry(settings), settings.chunking
    named = frozenset(name.strip() for name in groups.split(",") if name.strip())
    default = named or frozenset(settings.access.groups if format == "beir" else settings.access.default_groups)
    known = registry.versions()
    return build_index(
        Corpus(corpus, format, default, settings.access.tenant),
        embedder=make_embedder(settings),
        registry=registry,
        staging=settings.data_dir / "staging",
        chunker=chosen.strategy,
        chunk_tokens=chosen.tokens,
        overlap=chosen.overlap,
        parent=known[-1].id if known else None,
        progress=report,
    )


def _print_report(built: "BuildReport", as_json: bool) -> None:
    from collections import Counter
    from dataclasses import asdict

    counts = Counter(outcome.status for outcome in built.outcomes)
    if as_json:
        facts = {"version": asdict(built.version), "new": built.new, "embedded": built.embedded}
        outcomes = [asdict(outcome) for outcome in built.outcomes if outcome.status != "indexed"]
        say_json({**facts, "reused_vectors": built.reused_vectors, "files": dict(counts), "outcomes": outcomes})
        return
    for outcome in built.outcomes:
        if outcome.status != "indexed":
            note(f"{outcome.path}: {outcome.status} ({outcome.code}): {outcome.reason}")
    v = built.version
    fresh = f"{built.embedded} embedded, {built.reused_vectors} re-used" if built.new else "was there already"
    say(f"{v.id}  {v.documents} documents, {v.chunks} chunks ({fresh}); files: {_listed(counts)}")


def _listed(counts: "Counter[FileStatus]") -> str:
    return ", ".join(f"{n} {status}" for status, n in sorted(counts.items())) or "none"
