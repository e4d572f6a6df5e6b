"""A version's lexical files from those of the version before: the same bytes, less analysis, no damage handed on."""

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import compress
from pathlib import Path

import numpy as np
import pytest

from retrieval.analysis import STAMP
from retrieval.lexical import Bm25Arm
from retrieval.lexical_deriving import derive
from retrieval.stored import FORMAT

OLD = ["pump valve", "seal", "", "rotor AR-7 rotor", "valve", "seal"]
NEW = ["valve", "brand new 冷却水", "rotor AR-7 rotor", "seal", "seal", "pump valve seal", ""]
KEPT = np.array([4, -1, 3, 1, 1, -1, 2])  # both seals from row 1


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    folder = tmp_path / "parent"
    Bm25Arm.build(OLD).save(folder / "bm25")
    describe(folder)
    return folder


def describe(folder: Path, analyser: str = STAMP, format_: int = FORMAT) -> None:
    files = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256(path.read_bytes()).hexdigest(),
        }
        for path in folder.glob("bm25/*")
    }
    (folder / "manifest.json").write_text(json.dumps({"format": format_, "analyser": analyser, "files": files}))


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(tmp_path: Path) -> dict[str, bytes]:
    Bm25Arm.build(NEW).save(tmp_path / "counted" / "bm25")
    return content(tmp_path / "counted")


def of(texts: Iterable[str]) -> Callable[[Iterable[bool]], Iterator[str]]:
    """The wanted ones of these texts."""
    return lambda wanted: compress(texts, wanted)


def fresh(tmp_path: Path) -> Path:
    folder = tmp_path / "fresh"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("characters", [1, 12, 1 << 20])
def test_what_is_derived_is_what_counting_all_texts_gives(characters: int, parent: Path, tmp_path: Path):
    folder = fresh(tmp_path)
    assert derive(folder, of(NEW), KEPT, parent, characters) == 2
    assert content(folder) == expected(tmp_path)


@pytest.mark.parametrize("characters", [1, 12, 1 << 20])
def test_without_a_parent_all_texts_are_counted(characters: int, tmp_path: Path):
    folder = fresh(tmp_path)
    assert derive(folder, of(NEW), np.full(len(NEW), -1), None, characters) == len(NEW)
    assert content(folder) == expected(tmp_path)


@pytest.mark.parametrize("name", ["counts.npy", "lengths.npy", "rows.npy", "starts.npy", "term_ends.npy", "terms.npy"])
def test_a_parent_with_a_damaged_file_is_left_alone(name: str, parent: Path, tmp_path: Path):
    whole = (parent / "bm25" / name).read_bytes()
    (parent / "bm25" / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    folder = fresh(tmp_path)
    assert derive(folder, of(NEW), KEPT, parent) == len(NEW)
    assert content(folder) == expected(tmp_path)


@pytest.mark.parametrize("other", [{"analyser": "another"}, {"format_": 1}])
def test_a_parent_of_another_analyser_or_format_is_left_alone(other: dict, parent: Path, tmp_path: Path):
    describe(parent, **other)
    folder = fresh(tmp_path)
    assert derive(folder, of(NEW), KEPT, parent) == len(NEW)
    assert content(folder) == expected(tmp_path)


def test_a_parent_that_is_gone_is_left_alone(tmp_path: Path):
    folder = fresh(tmp_path)
    assert derive(folder, of(NEW), KEPT, tmp_path / "gone") == len(NEW)
    assert content(folder) == expected(tmp_path)


def test_a_failure_leaves_no_pieces_behind(tmp_path: Path):
    def breaking_off() -> Iterator[str]:
        yield from NEW
        raise OSError("the disk went away")

    folder = fresh(tmp_path)
    with pytest.raises(OSError, match="went away"):
        derive(folder, of(breaking_off()), np.full(len(NEW) + 1, -1), None, 1)
    assert list(folder.iterdir()) == []


def test_a_library_without_texts_has_files_too(tmp_path: Path):
    folder = fresh(tmp_path)
    derive(folder, of([]), np.empty(0, np.int64))
    assert Bm25Arm.load(folder / "bm25").segment.lengths.size == 0
