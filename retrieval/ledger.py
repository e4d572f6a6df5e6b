"""The rollout pointer together with the move that brought it there, and all moves before that one.

    rollout.json   the pointer, and under `move` its last move: one file, so that both change by one rename
    ledger.jsonl   every move, one a line, only ever added to

The move in the pointer's file is on record the moment the pointer stands; its line in the ledger follows, and where a
crash or a full disk came between, the next writer makes up for it. Locks are the caller's; see registry.py.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from domain.errors import StorageError
from domain.releases import Move, Rollout
from retrieval.jsonrecords import append_line, damaged, decoded, encoded, plain, read, read_lines, replace_file


class Ledger:
    """Pointer and ledger in the folder `root`."""

    def __init__(self, root: Path) -> None:
        self._pointer = root / "rollout.json"
        self._lines = root / "ledger.jsonl"

    def rollout(self) -> Rollout:
        """The pointer as it stands; an empty one before the first move. Depends on nothing but itself."""
        content = self._content()
        return self._rollout_in(content) if content is not None else Rollout()

    def last(self) -> Move | None:
        """The move that brought the pointer where it is; None before the first, or when an older program made it.

        Raises StorageError when that move is not the pointer's.
        """
        content = self._content()
        if content is None:
            return None
        rollout = self._rollout_in(content)
        move: Move | None = decoded(_WithMove, self._pointer, content).move
        if move is not None and move.after != rollout:
            raise damaged(self._pointer, "move: it ends elsewhere than where the pointer is")
        return move

    def moves(self) -> tuple[Move, ...]:
        """Every move, oldest first. Raises StorageError naming a line that is damaged or does not follow the one
        before it. Times may go backwards, as clocks do; revisions never.
        """
        last = self.last()  # first: a line is written after the pointer, so none can be missed
        found: list[Move] = []
        for i, line in enumerate(read_lines(self._lines), 1):
            move: Move = decoded(Move, f"{self._lines}, line {i}", line)
            if found and move == found[-1]:
                continue  # it was put on record again while this line could not be read
            self._check_follows(found, move, f"{self._lines}, line {i},")
            found.append(move)
        if last is not None and (not found or found[-1].after.revision < last.after.revision):
            self._check_follows(found, last, f"The last move in {self._pointer}")
            found.append(last)
        return tuple(found)

    def write(self, move: Move) -> None:
        """The pointer is at `move.after`, on record: both or neither. Raises OSError when the disk does not take it.

        A damaged record does not stand in the way, because turning back must always be possible.
        """
        missed = self._unrecorded()
        if missed is not None:
            append_line(self._lines, encoded(plain(missed)))
        replace_file(self._pointer, encoded({**plain(move.after), "move": plain(move)}))
        with suppress(OSError):  # the move is made and on record; the next writer adds what is missing here
            append_line(self._lines, encoded(plain(move)))

    def _content(self) -> bytes | None:
        """What the pointer's file holds; None before the first move."""
        content = read(self._pointer)
        if content is None and read_lines(self._lines):
            content = read(self._pointer)  # the first move may have been made between the two looks
            if content is None:
                raise StorageError(
                    f"{self._pointer} is missing although {self._lines.name} tells of moves: restore it from a backup, "
                    "or write into it what the last line there has under `after`."
                )
        return content

    def _rollout_in(self, content: bytes) -> Rollout:
        rollout: Rollout = decoded(Rollout, self._pointer, content)
        if rollout.revision < 1:
            raise damaged(self._pointer, "revision: 1 or more is wanted of a pointer that was moved")
        return rollout

    def _unrecorded(self) -> Move | None:
        """The pointer's own move, if the ledger does not end with it."""
        with suppress(StorageError):  # `moves` names what is damaged; here nothing can be made up for
            move = self.last()
            return move if move is not None and self._recorded() != move.after.revision else None
        return None

    def _recorded(self) -> int | None:
        """The revision of the ledger's last line, None when there is none or it cannot be read."""
        lines = read_lines(self._lines)
        with suppress(StorageError):
            return int(decoded(Move, self._lines, lines[-1]).after.revision) if lines else None
        return None

    def _check_follows(self, found: list[Move], move: Move, place: str) -> None:
        if found and move.before != found[-1].after:
            raise StorageError(
                f"{place} begins at revision {move.before.revision}, but the move before it ended at revision "
                f"{found[-1].after.revision}: lines are missing or changed, or pointer and ledger are of different "
                f"times; restore both from one backup, or move {self._lines.name} away to begin a new one."
            )


@dataclass(frozen=True, slots=True)
class _WithMove:
    """The pointer's file once more, for its move; a program from before the ledger wrote none."""

    move: Move | None = None
