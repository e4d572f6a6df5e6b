"""Sorted strings as two arrays, which may stay on disk: one is found by halving, and only where that looks is read.

No dictionary is made of them, so a million terms or ids cost nothing to open. Used for terms of the lexical index and
for ids of its segments.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class SortedStrings:
    """Distinct strings in the order of their code points, which is that of their UTF-8 bytes."""

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.text = text  # [n_bytes] UTF-8, nothing between the strings
        self.ends = ends  # [n_strings + 1]; string i: ends[i] to ends[i + 1]
        self._bytes = text.data
        self._ends = ends.data  # three times faster than the array, one number at a time

    @classmethod
    def of(cls, strings: Sequence[str]) -> "SortedStrings":
        """These strings, which are sorted and distinct already."""
        encoded = [string.encode() for string in strings]
        ends = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(each) for each in encoded], out=ends[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), ends)

    def __len__(self) -> int:
        return self.ends.size - 1

    def place(self, string: str) -> int | None:
        """Where `string` stands, None when it is not among them."""
        wanted = string.encode(errors="surrogatepass")  # half a character is in no UTF-8, and must not become a "?"
        content, ends = self._bytes, self._ends
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            here = bytes(content[ends[middle] : ends[middle + 1]])
            if here == wanted:
                return middle
            if here < wanted:
                low = middle + 1
            else:
                high = middle
        return None

    def at(self, places: Iterable[int]) -> list[str]:
        """The strings at `places`, in their order."""
        content, ends = self._bytes, self._ends
        return [str(content[ends[place] : ends[place + 1]], "utf-8") for place in places]

    def all(self) -> list[str]:
        """All of them. Raises ValueError when the bytes are no UTF-8."""
        return self.at(range(len(self)))
