"""`tidegate bench sync`: what keeping a library fresh costs beside building it anew, in the same run.

A library of many files is built; a hundredth of them is edited, some are deleted and some moved; one sync takes that
in, and another data folder is built from nothing out of the same files. Both must be the same, byte for byte, and give
the same hits. Then one fact is added, and the time is taken from the start of the sync until a search of the new
version finds it. The encoder is loaded before anything is timed: it costs the same either way.
"""

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code, loaded
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from retrieval.building import BuildReport
    from tidegate.settings import Settings
    from tidegate.syncing import Synced

TIME_AIM, EMBEDDED_AIM = 0.06, 0.02
SHARES = {"edited": 0.01, "deleted": 0.005, "moved": 0.005}  # of the documents
QUERIES = 20

Found = tuple[tuple[str, str, float], ...]  # document, chunk and score of every hit


def sync(
    ctx: typer.Context,
    documents: Annotated[int, typer.Option(min=200, max=100_000, help="Files, about three passages each.")] = 10_000,
    encoder: Annotated[str, typer.Option(help="hashing or minilm.")] = "hashing",
    seed: Annotated[int, typer.Option(min=0, help="Which files change.")] = 7,
    as_json: AsJson = False,
) -> Code:
    """Measure a sync after 2 % of the files changed.

    1 % edited, .5 % deleted, .5 % moved: time and embedded passages as shares of a full build in the same run, and
    whether both come to the same.
    """
    given = loaded(ctx).settings
    with progress() as report, TemporaryDirectory(prefix="tidegate-bench-") as place:
        found = figures(given, Path(place), documents, encoder, seed, report)
    return told(found, as_json)


def figures(given: "Settings", place: Path, documents: int, encoder: str, seed: int, report: Report) -> list[Figure]:
    """All figures of a library of so many files; everything is made in `place`."""
    from tidegate.compose import make_embedder

    ours, anew = _settings(given, place / "ours", encoder), _settings(given, place / "anew", encoder)
    report("writing the library", 0, 0)
    folder = write_files(place / "library", documents)
    make_embedder(ours).embed_documents(["the encoder is loaded before anything is timed"])
    report("building", 0, 0)
    _synced(ours, folder)
    counts = change(folder, Random(seed))  # noqa: S311 - which files, nothing secret
    report("syncing", 0, 0)
    began, cpu = perf_counter(), process_time()
    synced = _synced(ours, folder)
    sync_s, sync_cpu_s = perf_counter() - began, process_time() - cpu
    report("building anew", 0, 0)
    began, cpu = perf_counter(), process_time()
    built = _build(anew, folder)
    full_s, full_cpu_s = perf_counter() - began, process_time() - cpu
    embedded = synced.built.embedded if synced.built else 0
    same = synced.version.id == built.version.id and _same_files(ours, anew, built.version.id)
    hits = _hits(ours, built.version.id, folder, seed) == _hits(anew, built.version.id, folder, seed)
    report("reading what was written", 0, 0)
    return [
        _share("time_ratio", sync_s / full_s, TIME_AIM, {"sync_s": sync_s, "full_s": full_s}),
        Figure("cpu_ratio", sync_cpu_s / full_cpu_s, "of a full build", {"sync_s": sync_cpu_s, "full_s": full_cpu_s}),
        _share(
            "embedded_ratio",
            embedded / built.embedded,
            EMBEDDED_AIM,
            {"sync_passages": float(embedded), "full_passages": float(built.embedded)},
        ),
        Figure("identical_files", float(same), "1 for the same, byte for byte", counts, aim="1", met=same),
        Figure("identical_hits", float(hits), f"1 for the same, {QUERIES} searches", aim="1", met=hits),
        Figure("read_your_write_s", read_your_write(ours, folder), f"s, of {documents} documents; no gate in between"),
    ]


def _share(name: str, value: float, aim: float, peers: dict[str, float]) -> Figure:
    return Figure(name, value, "of a full build", peers, aim=f"<= {aim:g}", met=value <= aim)


def _settings(given: "Settings", data_dir: Path, encoder: str) -> "Settings":
    backend: Literal["minilm", "hashing"] = "minilm" if encoder == "minilm" else "hashing"
    embedding = given.embedding.model_copy(update={"backend": backend})
    return given.model_copy(update={"data_dir": data_dir, "embedding": embedding})


def _synced(settings: "Settings", folder: Path) -> "Synced":
    from tidegate.keeping_fresh import Wanted, synced_from
    from tidegate.syncing import alone

    with alone(settings, lambda _: None):
        return synced_from(settings, Wanted(str(folder), groups="public"), lambda *_: None)


def _build(settings: "Settings", folder: Path) -> "BuildReport":
    from tidegate.build import build_version

    return build_version(settings, folder, lambda *_: None, groups="public")


# ---------------------------------------------------------------------------------------------- the library


def write_files(folder: Path, documents: int) -> Path:
    """A folder with so many Markdown files, a hundred in each of its folders."""
    from tidegate.bench_library import write_library

    lines = write_library(folder.with_suffix(".jsonl"), documents)
    with lines.open(encoding="utf-8") as records:
        for number, line in enumerate(records):
            record = json.loads(line)
            path = folder / f"{number // 100:04}" / f"{number:06}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {record['title']}\n\n{record['text']}\n", "utf-8")
    lines.unlink()
    return folder


def change(folder: Path, random: Random) -> dict[str, float | None]:
    """Edits, deletes and moves files of the folder; how many of each."""
    files = sorted(folder.rglob("*.md"))
    counts = {name: max(1, round(share * len(files))) for name, share in SHARES.items()}
    chosen = random.sample(files, sum(counts.values()))
    for path in chosen[: counts["edited"]]:
        text = path.read_text("utf-8")
        path.write_text(f"{text.rstrip()} Checked again on day {random.randint(1, 365)}.\n", "utf-8")
    for path in chosen[counts["edited"] : counts["edited"] + counts["deleted"]]:
        path.unlink()
    for path in chosen[counts["edited"] + counts["deleted"] :]:
        target = folder / "moved" / path.name
        target.parent.mkdir(exist_ok=True)
        path.rename(target)
    return {name: float(count) for name, count in counts.items()}


# ---------------------------------------------------------------------------------------------- what must be the same


def _same_files(ours: "Settings", anew: "Settings", version: str) -> bool:
    """True when both data folders hold the version in the same bytes; when it was built is not part of it."""
    from tidegate.compose import make_registry

    one, other = (make_registry(each).folder(version) for each in (ours, anew))
    names = [sorted(p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file()) for f in (one, other)]
    return names[0] == names[1] and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in names[0] if name != "version.json"
    )


def _hits(settings: "Settings", version: str, folder: Path, seed: int) -> list[Found]:
    """Ids and scores of searches for the first lines of files."""
    files = Random(seed).sample(sorted(folder.rglob("*.md")), QUERIES)  # noqa: S311 - as above
    return _found(settings, version, [path.read_text("utf-8").partition("\n")[0][2:] for path in files])


def _found(settings: "Settings", version: str, queries: list[str]) -> list[Found]:
    from domain.types import Query, Scope
    from tidegate.compose import make_embedder, open_index

    index = open_index(settings, make_embedder(settings), version)
    scope = Scope(settings.access.tenant, frozenset({"public"}))
    return [
        tuple((hit.chunk.source.doc_id, hit.chunk.id, hit.score) for hit in index.search(Query(query), scope, 10))
        for query in queries
    ]


def read_your_write(settings: "Settings", folder: Path) -> float | None:
    """Seconds from the beginning of a sync until a search in the new version finds what was written before it; None
    when it finds something else.
    """
    path = sorted(folder.rglob("*.md"))[0]
    path.write_text(f"{path.read_text('utf-8').rstrip()}\n\nThe quagga lantern of pier 9 burns whale oil.\n", "utf-8")
    began = perf_counter()
    version = _synced(settings, folder).version.id
    (found,) = _found(settings, version, ["What does the quagga lantern burn?"])
    took = perf_counter() - began
    return took if path.relative_to(folder).as_posix() in {doc_id for doc_id, _, _ in found} else None
