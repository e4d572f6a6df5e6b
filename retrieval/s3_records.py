"""Records on S3: one object changed whole by whoever finds it unchanged, or numbered objects only ever added.

Every object is written once under its condition, so nothing here takes a lock and no crash leaves half a record.
What the records mean is s3_registry.py.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import uuid4

from domain.errors import StorageError
from retrieval.jsonrecords import decoded, encoded, plain
from retrieval.s3_objects import NOTHING, Objects

T = TypeVar("T")
TURNS = 50  # times that others may be faster before it is a fault; each time somebody else got on


class Changing(Generic[T]):
    """The record of `kind` in one object, `empty` before the first change."""

    def __init__(self, objects: Objects, key: str, kind: Any, empty: T) -> None:
        self._objects, self._key, self._kind, self._empty = objects, key, kind, empty

    def read(self) -> T:
        """The record as it stands. Raises StorageError naming a damaged one."""
        return self._read()[0]

    def change(self, changed: Callable[[T], Any]) -> None:
        """Writes what `changed` makes of the record, as JSON, again and again until nobody came in between.

        Doing a change twice must be the same as once: a reply may have been lost.
        """
        for _ in range(TURNS):
            there, etag = self._read()
            if self._objects.swap(self._key, encoded(changed(there)), etag):
                return
        raise busy(self._objects.place(self._key))

    def _read(self) -> tuple[T, str]:
        stored = self._objects.get(self._key)
        if stored is None:
            return self._empty, NOTHING
        record: T = decoded(self._kind, self._objects.place(self._key), stored.body)
        return record, stored.etag


class Numbered(Generic[T]):
    """Records of `kind` in objects below `under`, numbered from 1 in the order in which they were added."""

    def __init__(self, objects: Objects, kind: Any) -> None:
        self._objects, self._kind = objects, kind
        self._known: dict[str, T] = {}  # they never change

    def read(self, under: str) -> tuple[T, ...]:
        """All records below `under`, the first first. Raises StorageError naming a damaged one."""
        return tuple(record for _, record in self._there(under))

    def add(self, under: str, record: T, once: bool = False) -> None:
        """One more record below `under`; `once` adds nothing when an equal one is there."""
        body = encoded({"record": plain(record), "mark": uuid4().hex})
        for _ in range(TURNS):
            there = self._there(under)
            if once and any(known == record for _, known in there):
                return
            number = 1 + max((number for number, _ in there), default=0)
            key = f"{under}{number:08d}.json"
            if self._objects.swap(key, body, NOTHING):
                self._known[key] = record
                return
        raise busy(self._objects.place(under))

    def _there(self, under: str) -> list[tuple[int, T]]:
        keys = [each.key for each in self._objects.listed(under) if each.key.endswith(".json")]
        new = [key for key in keys if key not in self._known]
        for key, stored in zip(new, self._objects.get_all(new), strict=True):
            if stored is not None:
                self._known[key] = self._record(key, stored.body)
        return [(int(key.removeprefix(under).removesuffix(".json")), self._known[key]) for key in keys]

    def _record(self, key: str, body: bytes) -> T:
        place = self._objects.place(key)
        whole: dict[str, Any] = decoded(dict[str, Any], place, body)
        record: T = decoded(self._kind, place, encoded(whole.get("record")))
        return record


def busy(place: str) -> StorageError:
    """What to say when others were faster every time."""
    return StorageError(f"{place} was changed by others {TURNS} times while it was to be changed here: try again.")
