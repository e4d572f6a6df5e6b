"""Case 18 on a real file system that is very small: a build that does not fit harms nothing and says what it needs."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import StorageError
from retrieval.building import build
from retrieval.disk import check_room
from retrieval.embedding import HashingEmbedder
from retrieval.registry import FolderRegistry
from tests.tidegate.tiny import admit, sets, write_corpus
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]
DISK = 2 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", f"size={DISK}", "none", str(place)]
    if mount is None or os.geteuid() or subprocess.run([mount, *options], check=False, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here: that takes the superuser")
    try:
        yield place
    finally:
        # Lazily: what was searched is still mapped by this process.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def harbour(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder on that disk, whose stable version answers."""
    monkeypatch.chdir(tmp_path)
    assert main(["build", str(write_corpus(tmp_path / "corpus")), *sets(disk / "data")]) == 0
    admit(disk / "data")
    return disk / "data"


def records(data_dir: Path) -> dict[str, str]:
    """Digests of everything in the registry: pointer, history, versions."""
    paths = [path for path in sorted((data_dir / "registry").rglob("*")) if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def answers(data_dir: Path, capsys: Capture) -> bool:
    capsys.readouterr()
    assert main(["search", "when was the blue crane built", *sets(data_dir)]) == 0
    return "crane.md" in capsys.readouterr().out


def fill(disk: Path, leave: int) -> None:
    """Takes up the disk but for so many bytes."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    ballast.write_bytes(b"x" * max(0, shutil.disk_usage(disk).free - leave))


def test_a_build_that_does_not_fit_names_path_and_need_and_harms_nothing(
    harbour: Path, disk: Path, tmp_path: Path, capsys: Capture
) -> None:
    before = records(harbour)
    big = {f"{i}.txt": f"Pump {i} needs oil of grade {i}. " * 8 for i in range(900)}  # vectors alone: 900 kB
    corpus = write_corpus(tmp_path / "big", big)
    fill(disk, 700_000)
    code = main(["build", str(corpus), *sets(harbour)])
    told = capsys.readouterr().err
    assert code == Code.REFUSED
    assert "No space for version v" in told
    assert f"in {harbour / 'staging'}" in told
    assert "about 1." in told
    assert "MB are needed and 0." in told
    assert records(harbour) == before
    assert answers(harbour, capsys)
    assert main(["gc", *sets(harbour)]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"  # the build took its own away
    (disk / "ballast").unlink()
    small = write_corpus(tmp_path / "small", {"lock.txt": "The canal lock opens at nine."})
    assert main(["build", str(small), *sets(harbour)]) == 0


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_point_of_a_build_leaves_what_was_there(
    harbour: Path, disk: Path, tmp_path: Path, capsys: Capture
) -> None:
    before = records(harbour)
    small = write_corpus(tmp_path / "small", {"lock.txt": "The canal lock opens at nine."})
    ended: set[str] = set()
    page = 4096
    for pages in range(64):
        fill(disk, pages * page)
        code = main(["build", str(small), *sets(harbour)])
        told = capsys.readouterr().err
        if code == 0:
            break
        assert code == Code.REFUSED
        assert "No space" in told
        assert str(harbour) in told
        assert records(harbour) == before
        assert list((harbour / "staging").iterdir()) == []
        ended.add(told.split("(")[0])
    assert pages > 5  # it was refused at several points
    assert len(ended) > 2
    assert len(FolderRegistry(harbour / "registry").versions()) == 2
    (disk / "ballast").unlink()
    assert answers(harbour, capsys)


def test_room_is_looked_for_on_the_disk_where_a_folder_will_be(tmp_path: Path) -> None:
    check_room(tmp_path / "not" / "yet", 1, "a version")
    with pytest.raises(StorageError, match=r"No space for a version in .*/not/yet: about 1000000000.0 MB are needed"):
        check_room(tmp_path / "not" / "yet", 10**15, "a version")


def test_a_corpus_that_is_larger_than_the_disk_is_refused_before_it_is_read(disk: Path, tmp_path: Path) -> None:
    from retrieval.documents import Corpus

    corpus = write_corpus(tmp_path / "large", {"a.txt": "Quay. " * 600_000})
    with pytest.raises(StorageError, match=f"No space for a version of {corpus} in {disk / 'staging'}: about 3.6 MB"):
        build(
            Corpus(corpus, "folder", frozenset({"staff"}), "harbour"),
            embedder=HashingEmbedder(8),
            registry=FolderRegistry(disk / "registry"),
            staging=disk / "staging",
        )
    assert list(disk.iterdir()) == []
