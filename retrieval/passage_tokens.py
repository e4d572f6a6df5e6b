"""The passages of a version as tokens: cut once when it is built, so that a question comes with nothing else to cut.

Written when a cross-encoder is configured at build time, in the order of rows, as part of the folder. A version
without them, or with those of another tokenizer, is searched all the same: the reader then cuts texts itself.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import orjson

from domain.errors import StorageError
from domain.types import PassageTokens
from retrieval.pairs import PASSAGE_TOKENS
from retrieval.parts import Draft, Part
from retrieval.reranking import passage
from retrieval.stored import mapped
from retrieval.tokenizing import Tokenizer

FILES = {
    "tokens/stamp.json": "the tokenizer",
    "tokens/starts.npy": "int64 [n_chunks + 1]: where the tokens of each chunk begin",
    "tokens/ids.npy": "int32 [n_tokens]: title, heading and text of each chunk, special tokens left out",
}
BATCH = 256  # passages cut at a time


def part(tokenizer: Tokenizer) -> Part:
    """The part of a version folder that holds its passages as `tokenizer` cuts them."""
    return partial(write, tokenizer=tokenizer)


def write(draft: Draft, tokenizer: Tokenizer) -> None:
    """Writes the tokens of every passage in row order; in memory are those of BATCH passages and one number each."""
    folder = draft.folder / "tokens"
    folder.mkdir()
    starts, raw = array("q", [0]), folder / "ids.raw"
    texts = (passage(chunk) for chunk in draft.chunks())
    with raw.open("wb") as file:
        while batch := list(islice(texts, BATCH)):
            for ids in tokenizer.cut_all(batch):
                kept = ids[:PASSAGE_TOKENS]
                file.write(kept.astype("<i4").tobytes())
                starts.append(starts[-1] + len(kept))
    _write_ids(folder / "ids.npy", starts[-1], _blocks(raw))  # the shape is known only now
    raw.unlink()
    np.save(folder / "starts.npy", np.array(starts, np.int64), allow_pickle=False)
    (folder / "stamp.json").write_bytes(orjson.dumps({"tokenizer": tokenizer.stamp}))


def _write_ids(path: Path, count: int, blocks: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": (count,)})
        for block in blocks:
            file.write(block)


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def copy(version: Path, into: Path, rows: Sequence[int]) -> None:
    """Writes the tokens of these rows of a version into the folder of a shard, where the version has tokens at all."""
    tokens = StoredTokens.of(version)
    if tokens is None:
        return
    folder = into / "tokens"
    folder.mkdir()
    lengths = [len(tokens[row].ids) // 4 for row in rows]
    _write_ids(folder / "ids.npy", sum(lengths), (tokens[row].ids for row in rows))
    np.save(folder / "starts.npy", np.cumsum([0, *lengths], dtype=np.int64), allow_pickle=False)
    (folder / "stamp.json").write_bytes(orjson.dumps({"tokenizer": tokens.stamp}))


class StoredTokens:
    """The tokens in the folder of one version, on disk until they are touched."""

    def __init__(self, folder: Path) -> None:
        self._starts, self._ids = mapped(folder / "starts.npy"), mapped(folder / "ids.npy")
        try:
            self.stamp: str = orjson.loads((folder / "stamp.json").read_bytes())["tokenizer"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{folder / 'stamp.json'} does not name a tokenizer ({error!r}): build the version again with "
                "`tidegate build`, or restore it from a copy."
            ) from error
        if not len(self._starts) or int(self._starts[-1]) != len(self._ids):
            raise StorageError(
                f"{folder / 'ids.npy'} has {len(self._ids)} tokens, not those that starts.npy beside it counts: build "
                "the version again with `tidegate build`, or restore it from a copy."
            )

    @classmethod
    def of(cls, version: Path) -> "StoredTokens | None":
        """Those of the version in this folder; None where it was built without. Raises StorageError when damaged."""
        return cls(version / "tokens") if (version / "tokens").is_dir() else None

    def __getitem__(self, row: int) -> PassageTokens:
        """The tokens of a row."""
        ids = self._ids[self._starts[row] : self._starts[row + 1]]
        return PassageTokens(self.stamp, ids.astype("<i4", copy=False).tobytes())
