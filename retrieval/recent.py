"""Arrays that were made lately, kept up to so many bytes. Which ones are kept changes no result, only its speed."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

from numpy.typing import NDArray

_OVERHEAD = 600  # bytes of an entry besides its arrays: two array objects, two tuples, a key and its place (measured)

Arrays = tuple[NDArray[Any], ...]


class RecentArrays:
    """Used from several threads. `room` is in bytes; an entry that alone is more than a quarter of it is not kept."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.used = 0
        self._entries: OrderedDict[Hashable, tuple[Arrays, int]] = OrderedDict()  # latest used last
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Arrays], *, views: bool = False) -> Arrays:
        """What is kept under `key`, or what `make` gives. `views` take no memory of their own."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry[0]
        made = make()  # two threads may make the same thing, which is better than one waiting for the other's disk
        size = _OVERHEAD + (0 if views else sum(each.nbytes for each in made))
        if size <= self.room // 4:
            with self._lock:
                self.used += size - self._entries.pop(key, ((), 0))[1]
                self._entries[key] = made, size
                while self.used > self.room:
                    self.used -= self._entries.popitem(last=False)[1][1]
        return made
