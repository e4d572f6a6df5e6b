"""A lexical index that changes, in a folder: an update writes its own texts and deletions, whatever the library holds.

    updates/<number>/      rows that were added, as a segment with their ids, and rows of earlier ones that are gone;
                           files.json has size and digest of each file
    index.json             the updates that count, with the digest of their files.json; replaced as a whole

A crash leaves the index before or after an update. `compact` makes one segment of all, which is the one that counting
every text gives. Versions that people are served from are no such index: those never change, see lexical_deriving.py.
"""

import fcntl
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from domain.errors import IncompatibleIndex, StorageError
from retrieval import lexical_files
from retrieval.analysis import STAMP
from retrieval.arms import Visible
from retrieval.fingerprint import sha256_of
from retrieval.jsonrecords import replace_file, sync_folder, sync_tree
from retrieval.lexical import K1, B, Bm25Arm
from retrieval.lexical_merging import Taken, merge_into
from retrieval.lexical_segment import Segment
from retrieval.lexical_snapshot import Held, Snapshot
from retrieval.sorted_strings import SortedStrings

_INDEX, _UPDATES, _FILES = "index.json", "updates", "files.json"
_Updates = dict[str, str]  # name -> sha256 of its files.json


def opened(folder: Path, k1: float = K1, b: float = B) -> Snapshot:
    """The index in `folder` as it stands, for searching; an empty one when there is none.

    Raises StorageError naming a damaged file, IncompatibleIndex when another analyser made it.
    """
    while True:
        updates = _recorded(folder)
        try:
            return _snapshot(folder, updates, k1, b)
        except StorageError:
            if _recorded(folder) == updates:  # otherwise it was compacted while it was being opened
                raise


class LexicalUpdates:
    """The one writer of the index in `folder`; a second one is refused. Searching goes on in `snapshot`s meanwhile.

    Until `compact`, each update is one more segment to search and eight more files to map, of which Linux lets a
    process have some 65,000 (vm.max_map_count): compact after some hundred updates.
    """

    def __init__(self, folder: Path, k1: float = K1, b: float = B) -> None:
        self.folder, self.k1, self.b = folder, k1, b
        (folder / _UPDATES).mkdir(parents=True, exist_ok=True)
        self._lock = (folder / ".lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise StorageError(
                f"Lexical index {folder} is being written by another process: wait until that ends, or end it."
            ) from error
        try:
            self._updates = _recorded(folder)
            self.snapshot = _snapshot(folder, self._updates, k1, b)
        except BaseException:
            self._lock.close()  # or whoever mends the folder and tries again is told that somebody writes it
            raise
        self._clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process write, and write no more. Snapshots go on."""
        self._lock.close()

    def add(self, texts: Mapping[str, str]) -> Snapshot:
        """The index with `texts` by id; an id that is there already gets its new text."""
        return self.update(texts, ())

    def delete(self, ids: Iterable[str]) -> Snapshot:
        """The index without `ids`; one that is not there changes nothing."""
        return self.update({}, ids)

    def update(self, texts: Mapping[str, str], gone: Iterable[str]) -> Snapshot:
        """The index without `gone` and then with `texts`, on disk when this returns; both happen or neither.

        Takes time for these texts and ids, whatever else the index holds, and a copy of one byte a row of segments that
        lose one. Raises OSError.
        """
        doomed = self._rows({*gone, *texts})
        ids = sorted(texts)
        if not ids and not any(rows.size for rows in doomed.values()):
            return self.snapshot
        segment = Segment.of(texts[each] for each in ids)
        name, folder = self._next()
        lexical_files.write(segment, folder)
        digest = _complete(folder, ids, doomed)
        kept = [each.without(doomed[each.name]) for each in self.snapshot.held]
        added = [_held(folder, self.k1, self.b)] if ids else []  # before it counts: it may be one file too many to map
        self._commit(self._updates | {name: digest})
        self.snapshot = Snapshot([*kept, *added])
        return self.snapshot

    def compact(self) -> Snapshot:
        """The same index as one segment without what was deleted: no text is analysed again, all arrays are moved.

        Raises StorageError naming a damaged file: a copy of damage would get digests of its own.
        """
        verify(self.folder)
        alive = [(each, each.alive.rows, each.ids.at(each.alive.rows.tolist())) for each in self.snapshot.held]
        ids = sorted(doc_id for _, _, some in alive for doc_id in some)
        place = {doc_id: i for i, doc_id in enumerate(ids)}
        parts = [
            Taken(each.arm.segment, rows, np.fromiter(map(place.__getitem__, some), np.int64, len(some)))
            for each, rows, some in alive
        ]
        name, folder = self._next()
        merge_into(folder, parts, len(ids))
        digest = _complete(folder, ids, {})
        whole = [_held(folder, self.k1, self.b)] if ids else []
        self._commit({name: digest})
        self.snapshot = Snapshot(whole)
        self._clear()
        return self.snapshot

    def _rows(self, ids: Iterable[str]) -> dict[str, NDArray[np.int64]]:
        """The rows of these ids that are not deleted yet, by segment."""
        found: dict[str, list[int]] = {each.name: [] for each in self.snapshot.held}
        for doc_id in sorted(ids):
            for each in self.snapshot.held:
                row = each.ids.place(doc_id)
                if row is not None and each.alive.mask[row]:
                    found[each.name].append(row)
        return {name: np.array(rows, np.int64) for name, rows in found.items()}

    def _next(self) -> tuple[str, Path]:
        if self._lock.closed:
            raise ValueError(f"the writer of {self.folder} is closed, another one may be writing: this is a bug")
        name = f"{max(map(int, self._updates), default=0) + 1:08d}"
        folder = self.folder / _UPDATES / name
        shutil.rmtree(folder, ignore_errors=True)  # of an update that never came to be
        return name, folder

    def _commit(self, updates: _Updates) -> None:
        """Make these updates, which are on disk, the ones that count."""
        replace_file(self.folder / _INDEX, json.dumps({"analyser": STAMP, "updates": updates}, indent=1).encode())
        self._updates = updates

    def _clear(self) -> None:
        """Remove what does not count any more; whoever has it open keeps it."""
        for path in (self.folder / _UPDATES).iterdir():
            if path.name not in self._updates:
                shutil.rmtree(path, ignore_errors=True)


def _complete(folder: Path, ids: list[str], gone: Mapping[str, NDArray[np.int64]]) -> str:
    """Put beside the segment in `folder` what makes it an update, all on disk; the digest of its files.json."""
    arrays: dict[str, NDArray[Any]] = {f"gone-{each}": rows for each, rows in gone.items() if rows.size}
    strings = SortedStrings.of(ids)
    for file, values in (arrays | {"ids": strings.text, "id_ends": strings.ends}).items():
        np.save(folder / f"{file}.npy", values, allow_pickle=False)
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in sorted(folder.iterdir())}
    (folder / _FILES).write_text(json.dumps(files, indent=1))
    sync_tree(folder)
    sync_folder(folder.parent)
    return sha256_of(folder / _FILES)


def verify(folder: Path) -> None:
    """Raises StorageError naming a file that is not what was written. Reads all of them."""
    for name, digest in _recorded(folder).items():
        here = folder / _UPDATES / name
        described = {file: each["sha256"] for file, each in _files(here).items()}
        for file, wanted in {_FILES: digest, **described}.items():
            if sha256_of(here / file) != wanted:
                raise lexical_files.damaged(here / file, "its content is another")


# ---------------------------------------------------------------------------------------------- reading


def _recorded(folder: Path) -> _Updates:
    """The updates that count, oldest first."""
    path = folder / _INDEX
    try:
        record = json.loads(path.read_bytes())
        analyser, updates = record["analyser"], dict(record["updates"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise lexical_files.damaged(path, str(error)) from error
    if analyser != STAMP:
        raise IncompatibleIndex(
            f"Lexical index {folder} was made by analyser '{analyser}', this program has '{STAMP}': make it again."
        )
    return updates


def _files(update: Path) -> dict[str, dict[str, Any]]:
    """The files of an update with size and digest; all of them are there with that size."""
    path = update / _FILES
    try:
        files: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
        wrong = [name for name, each in files.items() if (update / name).stat().st_size != each["bytes"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise lexical_files.damaged(path, str(error)) from error
    if wrong:
        raise lexical_files.damaged(update / wrong[0], f"it has not the {files[wrong[0]]['bytes']} bytes it had")
    return files


def _snapshot(folder: Path, updates: _Updates, k1: float, b: float) -> Snapshot:
    held: dict[str, Held] = {}
    for name in updates:
        here = folder / _UPDATES / name
        files = _files(here)
        for earlier, each in list(held.items()):
            if (gone := here / f"gone-{earlier}.npy").name in files:
                held[earlier] = each.without(_deleted(gone, len(each.ids)))
        added = _held(here, k1, b)
        if len(added.ids):
            held[name] = added
    return Snapshot(list(held.values()))


def _deleted(file: Path, n_rows: int) -> NDArray[np.int64]:
    rows = lexical_files.array(file, np.int64)
    if rows.size and not 0 <= rows.min() <= rows.max() < n_rows:
        raise lexical_files.damaged(file, f"it does not fit {n_rows} rows")
    return rows


def _held(folder: Path, k1: float, b: float) -> Held:
    ids = SortedStrings(
        lexical_files.array(folder / "ids.npy", np.uint8), lexical_files.array(folder / "id_ends.npy", np.int64)
    )
    return Held(folder.name, Bm25Arm.load(folder, k1, b), ids, Visible(np.ones(len(ids), np.bool_)))
