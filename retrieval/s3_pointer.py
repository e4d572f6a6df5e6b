"""The rollout pointer and its ledger on S3: one object that is swapped, and one object for every move before.

    rollout.json            where the pointer is, and the move that brought it there: one write, so both or neither
    ledger/<revision>.json  that move once more; written after it was made, by whoever moves or looks next

A move that only the pointer tells of is therefore on record too, and none is that was not made. `turn` changes the
pointer's object without moving it: whatever was read before it then no longer admits a move.
"""

from dataclasses import dataclass
from uuid import uuid4

from domain.errors import StorageError
from domain.releases import Move, Rollout
from retrieval.jsonrecords import damaged, decoded, encoded, plain
from retrieval.s3_objects import NOTHING, Objects
from retrieval.s3_records import TURNS, busy

POINTER, LEDGER = "rollout.json", "ledger/"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The pointer's object. `mark` tells the write that made the move from every other; `etag` names what was read."""

    rollout: Rollout
    move: Move | None
    mark: str
    etag: str


class S3Ledger:
    """Pointer and ledger among `objects`."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._recorded: dict[str, _Line] = {}  # lines never change

    def read(self) -> Pointer:
        """The pointer as it stands; an empty one before the first move. Raises StorageError for a damaged one."""
        stored, place = self._objects.get(POINTER), self._objects.place(POINTER)
        if stored is None:
            if next(self._objects.listed(LEDGER), None) is not None and self._objects.get(POINTER) is None:
                raise StorageError(
                    f"{place} is missing although {self._objects.place(LEDGER)} tells of moves: restore an earlier "
                    "version of that object."
                )
            return Pointer(Rollout(), None, "", NOTHING)
        content: _Content = decoded(_Content, place, stored.body)
        rollout, move = content.rollout, content.move
        if rollout.revision < 0 or (rollout.revision > 0) != (move is not None):
            raise damaged(place, f"revision: {rollout.revision} {'with' if move else 'without'} a move")
        if move is not None and move.after != rollout:
            raise damaged(place, "move: it ends elsewhere than where the pointer is")
        return Pointer(rollout, move, content.mark, stored.etag)

    def write(self, move: Move, there: Pointer) -> bool:
        """The pointer is at `move.after`, on record: both or neither. False when it is no longer `there`."""
        mark = uuid4().hex
        first = there.etag == NOTHING
        body = _body(move.after, move, mark)
        if not self._objects.swap(POINTER, body, there.etag) and not self._made(move, mark):
            return False
        if first:
            self._check_conditions(body)
        return True

    def turn(self, there: Pointer) -> bool:
        """The pointer's object is another, the pointer is where it was. False when it is no longer `there`."""
        body = _body(there.rollout, there.move, there.mark, uuid4().hex)
        if not self._objects.swap(POINTER, body, there.etag):
            return False
        if there.etag == NOTHING:
            self._check_conditions(body)
        return True

    def turn_surely(self) -> None:
        """As `turn`, from wherever the pointer is."""
        for _ in range(TURNS):
            if self.turn(self.read()):
                return
        raise busy(self._objects.place(POINTER))

    def settle(self, there: Pointer) -> None:
        """The ledger has the pointer's own move. A damaged line of it stays, because turning back must be possible."""
        if there.move is not None and _key(there.rollout.revision) not in self._recorded:
            line = _Line(there.move, there.mark)
            self._objects.swap(_key(there.rollout.revision), encoded(plain(line)), NOTHING)

    def moves(self) -> tuple[Move, ...]:
        """Every move, oldest first. Raises StorageError naming a line that is damaged or missing."""
        there = self.read()  # first: a line is written after the pointer, so none can be missed
        keys = [each.key for each in self._objects.listed(LEDGER)]
        new = [key for key in keys if key not in self._recorded]
        for key, stored in zip(new, self._objects.get_all(new), strict=True):
            if stored is not None:
                self._recorded[key] = decoded(_Line, self._objects.place(key), stored.body)
        found: list[Move] = []
        for key in keys:
            self._check_follows(found, self._recorded[key].move, self._objects.place(key))
            found.append(self._recorded[key].move)
        if there.move is not None and (not found or found[-1].after.revision < there.rollout.revision):
            self._check_follows(found, there.move, f"The last move in {self._objects.place(POINTER)}")
            found.append(there.move)
        return tuple(found)

    # ------------------------------------------------------------------------------------------ lost replies

    def _made(self, move: Move, mark: str) -> bool:
        """True when a move was made by us although the reply said otherwise, and perhaps others followed it: whoever
        moves on puts the move before on record.
        """
        there = self.read()
        if there.mark == mark:
            return True
        if there.rollout.revision <= move.after.revision:
            return False
        key = _key(move.after.revision)
        stored = self._objects.get(key)
        return stored is not None and decoded(_Line, self._objects.place(key), stored.body).mark == mark

    def _check_conditions(self, body: bytes) -> None:
        """Raises StorageError when this server writes whatever the condition: two people could move at once."""
        reply = self._objects.refuses(POINTER, body)
        if not reply:
            raise StorageError(
                f"{self._objects.place(POINTER)} was written although it was there already: this server ignores "
                "If-None-Match, so nothing here is safe; use one with conditional writes."
            )

    def _check_follows(self, found: list[Move], move: Move, place: str) -> None:
        before = found[-1].after if found else Rollout()
        if move.before != before:
            raise StorageError(
                f"{place} begins at revision {move.before.revision}, but the move before it ended at revision "
                f"{before.revision}: a line is missing or changed; restore an earlier version of that object."
            )


@dataclass(frozen=True, slots=True)
class _Content:
    """The pointer's object as it is written. `turned` means nothing, but differs after every turn."""

    rollout: Rollout
    move: Move | None
    mark: str
    turned: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the ledger as it is written."""

    move: Move
    mark: str


def _key(revision: int) -> str:
    return f"{LEDGER}{revision:010d}.json"


def _body(rollout: Rollout, move: Move | None, mark: str, turned: str = "") -> bytes:
    return encoded(plain(_Content(rollout, move, mark, turned)))
