"""Vectors on disk: taken where a version has them, made once where none has, whatever the size of a block."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from domain.errors import StorageError
from retrieval.vectors import Digests, RowNumbers, Vectors, rows_of, write_vectors


def digests(*names: int) -> Digests:
    """A digest a name; zero bytes at the end are the ones that could be lost."""
    return np.array([[name, *[0] * 15] for name in names], np.uint8).reshape(-1, 16)


def version(folder: Path, *names: int, scale: float = 1) -> Path:
    """A version that holds these texts, each with its name, scaled, as its vector."""
    folder.mkdir()
    np.save(folder / "texts.npy", digests(*names))
    np.save(folder / "vectors.npy", np.array([[name * scale] * 2 for name in names], np.float32).reshape(-1, 2))
    return folder


class Making:
    """Gives each asked row its number plus 100, `piece` rows at a time, and remembers what was asked."""

    def __init__(self, piece: int = 2) -> None:
        self.piece = piece
        self.asked: list[int] = []

    def __call__(self, rows: RowNumbers) -> Iterator[Vectors]:
        self.asked = rows.tolist()
        for start in range(0, len(rows), self.piece):
            yield np.repeat(rows[start : start + self.piece, None] + 100, 2, axis=1).astype(np.float32)


def written(path: Path, names: Digests, folders: list[Path], making: Making, block: int = 4096) -> list[float]:
    write_vectors(path, names, 2, folders, making, block)
    return [float(row[0]) for row in np.load(path)]


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize("piece", [1, 2, 100])
def test_every_text_is_made_once_and_stands_in_each_of_its_rows(tmp_path: Path, block: int, piece: int) -> None:
    making = Making(piece)
    found = written(tmp_path / "v.npy", digests(7, 8, 7, 9, 8, 7), [], making, block)
    assert making.asked == [0, 1, 3]
    assert found == [100, 101, 100, 103, 101, 100]


@pytest.mark.parametrize("block", [1, 2, 100])
def test_a_known_text_is_taken_from_the_first_version_that_holds_it(tmp_path: Path, block: int) -> None:
    folders = [version(tmp_path / "a", 9, 7), version(tmp_path / "b", 7, 8, scale=10)]
    making = Making()
    found = written(tmp_path / "v.npy", digests(5, 7, 8, 9, 5, 8), folders, making, block)
    assert making.asked == [0]
    assert found == [100, 7, 80, 9, 100, 80]


def test_a_version_that_is_removed_while_others_are_embedded_gives_what_it_had(tmp_path: Path) -> None:
    folder = version(tmp_path / "a", 7, 9)

    def removing(rows: RowNumbers) -> Iterator[Vectors]:
        yield np.full((1, 2), 100, np.float32)
        shutil.rmtree(folder)
        yield np.full((1, 2), 101, np.float32)

    write_vectors(tmp_path / "v.npy", digests(5, 7, 6, 9), 2, [folder], removing, 2)
    assert np.load(tmp_path / "v.npy")[:, 0].tolist() == [100, 7, 101, 9]


@pytest.mark.parametrize("content", [None, b"no array"])
def test_a_version_without_readable_vectors_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = version(tmp_path / "a", 7) / "vectors.npy"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(
        StorageError, match=r"a/vectors.npy cannot be read .*restore the folder of its version, or remove it"
    ):
        write_vectors(tmp_path / "v.npy", digests(7), 2, [path.parent], Making())


def test_rows_without_a_known_vector_are_counted(tmp_path: Path) -> None:
    known = version(tmp_path / "a", 7)
    assert write_vectors(tmp_path / "v.npy", digests(7, 8, 8, 7), 2, [known], Making()) == 2


def test_nothing_is_made_when_everything_is_known(tmp_path: Path) -> None:
    making = Making()
    assert written(tmp_path / "v.npy", digests(7, 7), [version(tmp_path / "a", 7)], making) == [7, 7]
    assert making.asked == []


def test_the_rows_of_equal_texts_are_found(tmp_path: Path) -> None:
    assert rows_of(digests(9, 1, 7), version(tmp_path / "a", 7, 9)).tolist() == [1, -1, 0]
    assert rows_of(digests(9), version(tmp_path / "b")).tolist() == [-1]


def test_a_damaged_version_is_named(tmp_path: Path) -> None:
    folder = version(tmp_path / "a", 7)
    (folder / "texts.npy").write_bytes(b"no array")
    with pytest.raises(
        StorageError, match=r"a/texts.npy cannot be read .*restore the folder of its version, or remove it"
    ):
        write_vectors(tmp_path / "v.npy", digests(7), 2, [folder], Making())
