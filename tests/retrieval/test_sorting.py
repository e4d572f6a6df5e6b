"""Sorting on disk: the same lines as sorting in memory, and nothing left behind."""

import random
from pathlib import Path

import pytest

from retrieval.sorting import KeyedLine, SortedLines


def lines(n: int, seed: int) -> list[KeyedLine]:
    rng = random.Random(seed)
    keys = rng.sample(range(10 * n), n)
    return [KeyedLine(str(key).encode(), bytes([key % 256]), b"x" * rng.randrange(9)) for key in keys]


@pytest.mark.parametrize("room", [1, 700, 1 << 20])  # every line a run, a few lines a run, no run
def test_lines_come_back_by_key_however_little_fits_in_memory(tmp_path: Path, room: int) -> None:
    added = lines(40, seed=room)
    by_key = SortedLines(tmp_path, room)
    for line in added:
        by_key.add(line)
    assert len(by_key) == 40
    assert list(by_key) == sorted(added)
    by_key.close()


@pytest.mark.parametrize("runs", [2, 3, 8])
def test_open_files_grow_with_the_logarithm_of_the_lines_alone(tmp_path: Path, runs: int) -> None:
    added = lines(200, seed=runs)
    by_key = SortedLines(tmp_path, room=1, runs=runs)  # 200 runs: 2^7.6, 3^4.8, 8^2.5
    for line in added:
        by_key.add(line)
        assert open_files(tmp_path) <= (runs - 1) * {2: 8, 3: 5, 8: 3}[runs]
    assert open_files(tmp_path) > 0
    assert list(by_key) == sorted(added)
    by_key.close()
    assert open_files(tmp_path) == 0


def open_files(folder: Path) -> int:
    """Files in `folder` that this process holds open, unnamed ones too; others come and go as rubbish is collected."""
    held = [str(link.readlink()) for link in Path("/dev/fd").iterdir() if link.is_symlink()]
    return sum(place.startswith(str(folder)) for place in held)


def test_lines_can_be_read_twice(tmp_path: Path) -> None:
    by_key = SortedLines(tmp_path, room=300)
    for line in lines(9, seed=1):
        by_key.add(line)
    assert list(by_key) == list(by_key)
    by_key.close()


def test_an_empty_line_is_a_line(tmp_path: Path) -> None:
    by_key = SortedLines(tmp_path, room=1)
    by_key.add(KeyedLine(b"a", b"", b""))
    assert list(by_key) == [KeyedLine(b"a", b"", b"")]
    by_key.close()


def test_runs_on_disk_have_no_name(tmp_path: Path) -> None:
    by_key = SortedLines(tmp_path, room=1)
    for line in lines(3, seed=1):
        by_key.add(line)
    assert list(tmp_path.iterdir()) == []
    by_key.close()
