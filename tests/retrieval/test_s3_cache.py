"""A machine's copies of versions on S3: which leave, which stay, and what a killed one leaves behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import StorageError
from retrieval.s3_cache import Cache
from tests.contracts.test_index_registry import V1


def filling(size: int) -> Callable[[Path], None]:
    return lambda into: (into / "x").write_bytes(b"x" * size) and None


def nobody() -> frozenset[str]:
    return frozenset()


def test_what_was_used_longest_ago_leaves_first_but_nothing_in_use_or_pointed_to(tmp_path: Path) -> None:
    def used(name: str, size: int = 100, pointed: frozenset[str] = frozenset()) -> list[str]:
        """What is there after a process had this one and ended."""
        cache = Cache(tmp_path, 350)
        cache.folder(name, V1, size, lambda: pointed, filling(size))
        cache.close()
        return sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".")

    for name in "abca":  # b is the one used longest ago
        used(name)
    assert used("d", pointed=frozenset({"b"})) == ["a", "b", "d"]
    holder = Cache(tmp_path, 350)
    holder.folder("b", V1, 100, nobody, filling(100))
    assert used("e", 300) == ["b", "e"]
    holder.close()
    assert used("f", 300) == ["f"]


def test_a_copy_that_broke_off_is_not_there_and_is_cleared(tmp_path: Path) -> None:
    def breaks(into: Path) -> None:
        (into / "half").write_bytes(b"x" * 10)
        raise KeyboardInterrupt

    cache = Cache(tmp_path, 1000)
    with pytest.raises(KeyboardInterrupt):
        cache.folder("a", V1, 100, nobody, breaks)
    (tmp_path / ".incoming-killed" / V1).mkdir(parents=True)  # as a killed process leaves it
    assert [path.name for path in cache.left()] == [".incoming-killed"]
    assert (cache.folder("a", V1, 100, nobody, filling(100)) / "x").stat().st_size == 100
    assert cache.left() == ()


def test_a_disk_without_room_for_a_version_is_told_before_it_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(
        StorageError, match=rf"No space for a version in {tmp_path}: 1\d+.0 MB are needed and .* are free"
    ):
        Cache(tmp_path, 10).folder("a", V1, 10**15, nobody, filling(1))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
