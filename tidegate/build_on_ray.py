"""The work of a build mapped over a Ray cluster with Ray Data; what comes of it is the same, byte for byte.

Workers read, cut and embed; this process puts in order and writes. Every node sees corpus and data folder under the
same paths and has the same Tidegate installed. One file of lines is shared out by ranges of bytes, others file by
file. What is done with the results is retrieval/building.py.
"""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import ConfigError, StageFailed, TidegateError
from domain.types import Document
from retrieval.chunking import BY_MEANING
from retrieval.documents import Corpus
from retrieval.reading import Reading, Source, ranges, read
from retrieval.vectors import Vectors
from retrieval.work import CutDocument, Cutting, Spans, batches, cut, embedded

if TYPE_CHECKING:
    from domain.ports import Embedder
    from tidegate.settings import Settings

BLOCKS_PER_WORKER = 8  # so that a slow block delays little, and few small files share a task


@dataclass(frozen=True)
class OnRay:
    """Workers of the Ray that this process is connected to."""

    settings: "Settings"
    workers: int
    encoder: tuple[str, str]  # tag and runtime of the encoder that names the version

    def cut(self, documents: Iterable[Document], how: Cutting) -> Iterator[CutDocument]:
        """The documents of a Corpus, read and cut by workers, in their order, with the account of its files."""
        if not isinstance(documents, Corpus):
            raise TypeError("only a Corpus can be read by others; this is a bug, please report it")
        entries = list(documents.entries())
        sources = [entry for entry in entries if isinstance(entry, Source)]
        parts = [(number, part) for number, source in enumerate(sources) for part in ranges(source)]
        task = _CutTask(how, documents.default_groups, documents.tenant)
        made = (
            _mapped(parts, _EncodedCutTask, self.workers, task, self.settings, self.encoder)
            if how.chunker in BY_MEANING
            else _mapped(parts, task, self.workers)
        )
        readings = groupby(made, key=lambda one: one[0])

        def reading(_: Source) -> Iterator[Reading[CutDocument]]:
            return (one for _, one in next(readings)[1])  # what is left of a file that was given up is passed over

        return documents.read(reading, entries)

    def embed(self, chunks: Path, spans: Spans) -> Iterator[Vectors]:
        """The vectors of the lines at `spans`, in their order, each worker with an encoder of its own."""
        parts = [(chunks.absolute(), batch) for batch in batches(spans)]
        return _mapped(parts, _EmbedTask, self.workers, self.settings, self.encoder) if parts else iter(())


@dataclass(frozen=True)
class _CutTask:
    """Reads and cuts one source. A file that fails costs only itself: its outcome travels with the reading."""

    how: Cutting
    default_groups: frozenset[str]
    tenant: str
    embedder: "Embedder | None" = None

    def __call__(self, row: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
        number, source = pickle.loads(row["part"])  # noqa: S301 - pickled by the process that started this
        for reading in read(source, self.default_groups, self.tenant):
            found = tuple(
                (doc_id, place, cut(document, self.how, self.embedder)) for doc_id, place, document in reading.found
            )
            made = Reading(found, reading.left_out, reading.records, reading.remarks, reading.trouble)
            yield {"made": pickle.dumps((number, made))}


class _EncodedCutTask:
    """As _CutTask, for chunkers that compare meanings; the encoder is loaded once a worker."""

    def __init__(self, task: _CutTask, settings: "Settings", encoder: tuple[str, str]) -> None:
        self._task = replace(task, embedder=_encoder(settings, encoder))

    def __call__(self, row: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
        return self._task(row)


class _EmbedTask:
    """Embeds one batch; the encoder is loaded once a worker."""

    def __init__(self, settings: "Settings", encoder: tuple[str, str]) -> None:
        self._embedder = _encoder(settings, encoder)

    def __call__(self, row: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
        chunks, spans = pickle.loads(row["part"])  # noqa: S301 - as above
        yield {"made": pickle.dumps(embedded(self._embedder, chunks, spans))}


def _encoder(settings: "Settings", wanted: tuple[str, str]) -> "Embedder":
    """The encoder of a worker. Raises ConfigError where it is another than the build's."""
    from tidegate.compose import make_embedder

    embedder = make_embedder(settings)
    if (found := (embedder.tag, embedder.runtime)) != wanted:
        raise ConfigError(
            f"A worker has the encoder {' on '.join(filter(None, found))}, the build wants "
            f"{' on '.join(filter(None, wanted))}: give every node the same model and the same kind of processor."
        )
    return embedder


def _mapped(parts: list[Any], task: Any, workers: int, *arguments: Any) -> Iterator[Any]:  # Any: what tasks take
    """What `task`, a function or a class that is made with `arguments`, makes of each part, in their order."""
    import ray

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.raise_original_map_exception = True  # otherwise our own error would be lost on its way
    rows = [{"part": pickle.dumps(part)} for part in parts]
    source = ray.data.from_items(rows, override_num_blocks=min(len(rows), BLOCKS_PER_WORKER * workers))
    more = {"fn_constructor_args": arguments, "concurrency": workers} if isinstance(task, type) else {}
    made = source.flat_map(task, num_cpus=1, **more)
    try:
        for row in made.iter_rows():
            yield pickle.loads(row["made"])  # noqa: S301 - pickled by workers that this process started
    except ray.exceptions.RayError as error:
        raise _told(error) from error


def _told(error: BaseException) -> TidegateError:
    """What went wrong on a worker: our own error where there is one, otherwise that a worker failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TidegateError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    said = str(error).strip().splitlines()
    return StageFailed(
        f"A worker of the cluster failed ({said[-1] if said else type(error).__name__}): look at Ray's logs, or build "
        "without --on ray.",
        "build",
    )


@contextmanager
def cluster(address: str | None, workers: int) -> Iterator[None]:
    """This process connected to the Ray at `address`, or to one of its own that ends with the block."""
    if address is None:
        from serving.ray_home import RayHome

        home = RayHome.for_work(workers)
        try:
            yield
        finally:
            home.close()
        return
    import ray

    if address.startswith("ray://"):
        raise ConfigError(
            f"{address} is a Ray Client address: run on a node of the cluster and name HOST:PORT or auto."
        )
    try:
        ray.init(address=address, log_to_driver=False, logging_level="WARNING")
    except Exception as error:
        raise ConfigError(
            f"No Ray cluster answers at {address} ({error}): check the address, or leave --ray-address out."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()  # ends the connection, not the cluster
