"""`tidegate bench build`: what a build costs in time and memory, and what it costs again after a hundredth changed.

Every build runs in a process of its own, whose largest memory is told; loading the encoder is in its time, importing
is not. The library is made up: many sample libraries, one after the other (bench_library.py).
"""

import multiprocessing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from domain.errors import TidegateError
from tidegate.bench_library import write_library
from tidegate.bench_lines import Figure, told
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from tidegate.build import OfRay
    from tidegate.settings import Settings

REBUILD_AIM = 0.05

Built = tuple[float, int, float | None, str]  # seconds, chunks, largest memory in MB, version


def build(
    ctx: typer.Context,
    documents: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Documents, about three passages each.")
    ] = 1000,
    encoder: Annotated[str, typer.Option(help="minilm or hashing; the aim for re-building is minilm's.")] = "minilm",
    ray: Annotated[bool, typer.Option(help="Build on a Ray of its own too; --no-ray leaves that out.")] = True,
    as_json: AsJson = False,
) -> Code:
    """Measure building: speed, memory, building again.

    Again after 1 % of the documents changed. A changed document has another title, so that all of its passages are
    embedded anew.
    """
    given = loaded(ctx).settings
    with progress() as report, TemporaryDirectory(prefix="tidegate-bench-") as place:
        found = figures(given, Path(place), documents, encoder, ray, report)
    return told(found, as_json)


def figures(given: "Settings", place: Path, documents: int, encoder: str, ray: bool, report: Report) -> list[Figure]:
    """All figures of a library of so many documents; files are made in `place`."""
    settings = _settings(given, place / "here", encoder)
    report("writing the library", 0, 0)
    corpus = write_library(place / "before.jsonl", documents)
    changed = write_library(place / "after.jsonl", documents, changed_every=100)
    report("building", 0, 0)
    full_s, chunks, peak_mb, version = in_a_process_of_its_own(settings, corpus)
    report("building again", 0, 0)
    again_s, _, again_mb, _ = in_a_process_of_its_own(settings, changed)
    share = again_s / full_s
    aimed = encoder == "minilm"
    found = [
        Figure("chunks_per_s", chunks / full_s, f"passages/s of {chunks}"),
        Figure("peak_mb", peak_mb, "MB", {"rebuild": again_mb}),
        Figure(
            "rebuild_share",
            share,
            "of a full build",
            {"rebuild_s": again_s, "full_s": full_s},
            aim=f"<= {REBUILD_AIM:g}" if aimed else "",
            met=share <= REBUILD_AIM if aimed else None,
        ),
    ]
    if ray:
        report("building on Ray", 0, 0)
        found.append(_on_ray(_settings(given, place / "ray", encoder), corpus, full_s, version))
    return found


def _on_ray(settings: "Settings", corpus: Path, here_s: float, version: str) -> Figure:
    import os

    from tidegate.build import OfRay

    try:
        seconds, _, _, same = in_a_process_of_its_own(settings, corpus, OfRay(os.cpu_count() or 1, None))
    except TidegateError as error:
        complain(f"nothing could be measured on Ray: {error}")
        return Figure("ray_s", None, "s", {"here": here_s})
    return shared_out(seconds, here_s, same, version)


def shared_out(seconds: float, here_s: float, same: str, version: str) -> Figure:
    """What building on Ray took; another version than that of one process is a missed aim, however quick it was."""
    if same != version:
        complain(f"the build on Ray gave {same}, the one in one process {version}: this is a bug, please report it")
    peers, ratio = {"here": here_s}, {"here": here_s / seconds}
    return Figure("ray_s", seconds, "s, Ray's start included", peers, ratio, "the same version", same == version)


def _settings(given: "Settings", data_dir: Path, encoder: str) -> "Settings":
    backend: Literal["minilm", "hashing"] = "hashing" if encoder == "hashing" else "minilm"
    return given.model_copy(
        update={"data_dir": data_dir, "embedding": given.embedding.model_copy(update={"backend": backend})}
    )


def in_a_process_of_its_own(settings: "Settings", corpus: Path, where: "OfRay | None" = None) -> Built:
    """What building took there. Raises what the build raised."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, (settings, corpus, where))


def measured(settings: "Settings", corpus: Path, where: "OfRay | None" = None) -> Built:
    """What building takes in this process, which did nothing before."""
    from retrieval.building import quiet
    from tidegate.build import build_version

    began = perf_counter()
    built = build_version(settings, corpus, quiet, where=where)
    return perf_counter() - began, built.version.chunks, status_mb("VmHWM"), built.version.id


def status_mb(field: str) -> float | None:
    """A line of /proc/self/status in MB: VmHWM is the largest resident memory so far, VmRSS the present one.

    None where there is no such file, as on other systems than Linux. `getrusage` would count the parent's memory too.
    """
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{field}:")), None)
