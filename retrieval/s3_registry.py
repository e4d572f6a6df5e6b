"""Index versions, decisions, document records and the rollout pointer below a prefix of an S3 bucket.

    versions/<id>.json               what a version is and which files it has: the one object that decides all about it
    files/<id>/<upload>/<sha256>     the files that one upload brought
    decisions/<id>/<n>.json          decisions, only ever added
    rollout.json, ledger/            the pointer and its moves; see s3_pointer.py
    tombstones.json, access.json, documents/<n>.json    what is said of documents

There is no lock. What reads one object and writes another - a decision, a removal - turns the pointer in between, so
that a move which did not see it is refused. Why that suffices: docs/adr/0057. How versions come and go is
s3_versions.py.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from domain.amending import DocumentChange
from domain.errors import PointerMoved, StorageError
from domain.releases import Decision, IndexVersion, Leftover, Move, Rollout
from domain.rollout import arriving, moved_meanwhile, unrecorded
from retrieval import s3_leftovers
from retrieval.s3_cache import Cache
from retrieval.s3_objects import Objects
from retrieval.s3_pointer import Pointer, S3Ledger
from retrieval.s3_records import TURNS, Changing, Numbered
from retrieval.s3_transfer import PART, Transfer
from retrieval.s3_versions import S3Versions


class S3Registry:
    """The registry among `objects`. Versions are opened from folders below `cache_root`, which keeps `cache_bytes` of
    them; large files travel in parts of `part` bytes. An upload without a sign of life for `abandoned_s` is a leftover.
    """

    def __init__(
        self,
        objects: Objects,
        cache_root: Path,
        cache_bytes: int,
        part: int = PART,
        abandoned_s: float = 86_400.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.objects = objects
        self._cache, self._abandoned_s, self._clock = Cache(cache_root, cache_bytes), abandoned_s, clock
        self._ledger = S3Ledger(objects)
        self._versions = S3Versions(objects, self._ledger, Transfer(objects, part), self._cache)
        self._decisions: Numbered[Decision] = Numbered(objects, Decision)
        self._changes: Numbered[DocumentChange] = Numbered(objects, DocumentChange)
        self._tombstones: Changing[list[str]] = Changing(objects, "tombstones.json", list[str], [])
        self._access: Changing[dict[str, list[str]]] = Changing(objects, "access.json", dict[str, list[str]], {})

    # ------------------------------------------------------------------------------------------ versions

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, all or nothing; `staged` is moved. False when that version was there already.

        What a killed upload of it brought is not sent again. Raises StorageError when S3 does not take it.
        """
        return self._versions.publish(staged, version)

    def folder(self, version: str) -> Path:
        """The version's folder on this machine, fetched if need be. Raises NotFound, naming the versions there are."""
        return self._versions.folder(version)

    def versions(self) -> tuple[IndexVersion, ...]:
        """All versions, oldest first, built at the same time by id. Damaged ones are in `damaged`."""
        return self._versions.versions()

    def damaged(self) -> Mapping[str, str]:
        """Why a version cannot be used, by its id."""
        return self._versions.damaged()

    def remove(self, version: str) -> None:
        """Remove a version; its decisions stay. Raises BadRequest for stable, previous and canary."""
        self._versions.remove(version)

    def verify(self, version: str) -> None:
        """Raises StorageError naming the files that are not what was published, here or on S3."""
        self._versions.verify(version)

    def check(self, version: str) -> None:
        """As `verify`, but reads the manifest alone."""
        self._versions.check(version)

    def size(self, version: str) -> int:
        """Bytes of a version, in the bucket."""
        return self._versions.existing(version).bytes

    def leftovers(self) -> tuple[Leftover, ...]:
        """What killed uploads and removals left on S3, and killed downloads on this machine."""
        there = s3_leftovers.found(self.objects, self._versions, self._abandoned_s, self._clock())
        return (*s3_leftovers.in_cache(self._cache), *(leftover for leftover, _ in there))

    def clear_leftovers(self) -> tuple[Leftover, ...]:
        """Remove it; what was removed comes back."""
        return s3_leftovers.clear(self.objects, self._versions, self._cache, self._abandoned_s, self._clock)

    # ------------------------------------------------------------------------------------------ decisions

    def record(self, decision: Decision) -> None:
        """Remember a decision about a known version; a move that was thought of before it is refused from now on."""
        version = decision.binding.version
        self._versions.existing(version)
        self._settle(self._ledger.read())
        self._decisions.add(_about(version), decision)
        self._ledger.turn_surely()

    def decisions(self, version: str) -> tuple[Decision, ...]:
        """All decisions about a version, oldest first. Raises StorageError naming a damaged one."""
        self._versions.existing(version)
        return self._on_record(version, self._ledger.read())

    def _on_record(self, version: str, there: Pointer) -> tuple[Decision, ...]:
        """With the forced decision of the last move, which is on record by that move alone until somebody adds it."""
        found = self._decisions.read(_about(version))
        last = there.move.decision if there.move else None
        pending = last is not None and last.forced and last.binding.version == version and last not in found
        return (*found, last) if pending and last is not None else found

    # ------------------------------------------------------------------------------------------ the pointer

    def rollout(self) -> Rollout:
        """The pointer as it stands; an empty one before the first promotion."""
        return self._ledger.read().rollout

    def move(self, move: Move) -> None:
        """Move the pointer if it still is at `before`, with the ledger's line and a forced decision: one write, so all
        of it or nothing. Raises PointerMoved, NotFound and NotAdmitted as the folder's registry does.
        """
        before, after = move.before, move.after
        if after != before and after.revision != before.revision + 1:
            raise ValueError(f"a move from revision {before.revision} to {after.revision}: this is a bug")
        for _ in range(TURNS):
            there = self._ledger.read()
            if there.rollout != before:
                raise moved_meanwhile(before, there.rollout, there.move)
            for version in arriving(before, after):
                self._versions.existing(version, there.rollout)
            if after == before:
                return
            if move.decision is not None:
                unrecorded(move, self._on_record(move.decision.binding.version, there))
            self._settle(there)
            if self._ledger.write(move, there):
                with suppress(StorageError):  # the move is made and on record; whoever comes next adds what is missing
                    self._settle(self._ledger.read())
                return
        raise PointerMoved("The rollout pointer was turned by others every time: read it again and decide again.")

    def _settle(self, there: Pointer) -> None:
        """What only the pointer tells of is on record beside it too, before the pointer tells of something else."""
        if there.move is not None and there.move.decision is not None and there.move.decision.forced:
            self._decisions.add(_about(there.move.decision.binding.version), there.move.decision, once=True)
        self._ledger.settle(there)

    def ledger(self) -> tuple[Move, ...]:
        """Every move of the pointer, oldest first. Raises StorageError naming a damaged line."""
        return self._ledger.moves()

    # ------------------------------------------------------------------------------------------ documents

    def tombstones(self) -> frozenset[str]:
        """Document ids that no version may return any more."""
        return frozenset(self._tombstones.read())

    def tombstone(self, doc_ids: Iterable[str]) -> None:
        """Let no version return these documents any more, whether or not they exist. Doing it twice is the same."""
        added = frozenset(doc_ids)
        self._tombstones.change(lambda there: sorted(added.union(there)))

    def restore(self, doc_ids: Iterable[str]) -> None:
        """Let versions that hold these documents return them again."""
        removed = frozenset(doc_ids)
        self._tombstones.change(lambda there: sorted(frozenset(there) - removed))

    def access(self) -> Mapping[str, frozenset[str]]:
        """The groups of documents whose readers were changed after they were built."""
        return {doc_id: frozenset(groups) for doc_id, groups in self._access.read().items()}

    def set_access(self, doc_id: str, groups: frozenset[str] | None) -> None:
        """Let exactly these groups read a document in every version, nobody if empty; None: as it was built."""
        ours = {} if groups is None else {doc_id: sorted(groups)}
        self._access.change(lambda there: {k: v for k, v in there.items() if k != doc_id} | ours)

    def note_change(self, change: DocumentChange) -> None:
        """Put on record who changes documents and why."""
        self._changes.add("documents/", change)

    def changes(self) -> tuple[DocumentChange, ...]:
        """Every change of documents on record, oldest first. Raises StorageError naming a damaged one."""
        return self._changes.read("documents/")


def _about(version: str) -> str:
    return f"decisions/{version}/"
