"""Which dense arm a version gets, and the files that an arm wants beside the vectors.

`auto` is exact while that costs less than embedding the question, scans codes above, and walks a graph where a scan of
codes costs as much again; the measurement is in docs/benchmarks.md, the reasons in docs/adr. Lists and graph follow
from the vectors alone: they are written with a version when its settings ask for them, and made at opening otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retrieval import hnsw_arm, ivf_arm
from retrieval.arms import DenseArm
from retrieval.codes_arm import CodesArm
from retrieval.dense import ExactArm, Vectors
from retrieval.faiss_arm import FaissArm
from retrieval.gpu_arm import GpuArm
from retrieval.hnsw_arm import EF_SEARCH, HnswArm
from retrieval.ivf_arm import NPROBE, IvfArm, Lists
from retrieval.parts import Draft
from retrieval.stored import mapped

FLAT_BYTES = 64 << 20  # of vectors: about 44,000 of 384 dimensions, compared by one core in 2 to 3 ms
CODES_BYTES = 1 << 30  # of vectors: about 700,000 of 384 dimensions, whose codes take some 13 ms
LISTS, GRAPH = "ivf", "hnsw.faiss"  # a folder and a file of the version


@dataclass(frozen=True, slots=True)
class Opening:
    """What an arm is made of. `folder` is that of the version; it may lack the files of an arm."""

    vectors: Vectors
    folder: Path
    nprobe: int = NPROBE
    ef_search: int = EF_SEARCH


def open_dense(kind: str, opening: Opening) -> DenseArm:
    """The arm of this kind. Raises ConfigError for one that this machine does not have, StorageError for its files.

    `ivf` and `hnsw` without their files make them now, in memory: a minute per 100,000 rows for a graph.
    """
    return DENSE[kind](opening)


def write_dense(folder: Path, vectors: Vectors, kind: str) -> None:
    """Writes what an arm of this kind wants beside the vectors into a version folder, which may be nothing.

    One thread, fixed seeds: equal vectors give equal bytes on equal machines.
    """
    if kind == "ivf":
        ivf_arm.grouped(vectors).save(folder / LISTS)
    elif kind == "hnsw" or (kind == "auto" and chosen(vectors.nbytes, graph=True) == "hnsw"):
        hnsw_arm.save(hnsw_arm.linked(vectors), folder / GRAPH)


def part(kind: str) -> Callable[[Draft], None]:
    """The part of a version folder that an arm of this kind wants; see parts.py."""
    return lambda draft: write_dense(draft.folder, mapped(draft.folder / "vectors.npy"), kind)


def chosen(size: int, graph: bool) -> str:
    """The kind that `auto` is for `size` bytes of vectors; `graph` says whether the version has one.

    Without it a very large version scans codes: nobody waits at opening for what he did not ask for.
    """
    if size <= FLAT_BYTES:
        return "faiss"
    return "hnsw" if graph and size > CODES_BYTES else "codes"


def _auto(opening: Opening) -> DenseArm:
    return open_dense(chosen(opening.vectors.nbytes, (opening.folder / GRAPH).is_file()), opening)


def _ivf(opening: Opening) -> DenseArm:
    folder = opening.folder / LISTS
    lists = Lists.load(folder, opening.vectors.shape) if folder.is_dir() else None
    return IvfArm(opening.vectors, lists, opening.nprobe)


def _hnsw(opening: Opening) -> DenseArm:
    path = opening.folder / GRAPH
    graph = hnsw_arm.load(path, opening.vectors.shape) if path.is_file() else None
    return HnswArm(opening.vectors, graph, opening.ef_search)


DENSE: dict[str, Callable[[Opening], DenseArm]] = {
    "auto": _auto,
    "exact": lambda opening: ExactArm(opening.vectors),
    "faiss": lambda opening: FaissArm(opening.vectors),
    "codes": lambda opening: CodesArm(opening.vectors),
    "ivf": _ivf,
    "hnsw": _hnsw,
    "gpu": lambda opening: GpuArm(opening.vectors),
}
