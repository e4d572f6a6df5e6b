"""The folder of observations: several processes, torn lines, damage, a full disk, a cap."""

import subprocess
import sys
from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.releases import Observation
from retrieval.observations import FolderObservations

V1, V2 = (f"v{i:012x}" for i in (1, 2))
ROOT = Path(__file__).parents[2]


def seen(trace_id: str, at: float = 1.0) -> Observation:
    return Observation(trace_id, at, V2, {"success": 1.0})


def traces(log: FolderObservations) -> list[str]:
    return [one.trace_id for one in log.read(V2, 1)]


@pytest.fixture
def log(tmp_path: Path) -> FolderObservations:
    """A log with one observation in it, and so with one file."""
    log = FolderObservations(tmp_path / "observations")
    log.write(V2, 1, seen("a"))
    return log


def the_file(log: FolderObservations) -> Path:
    (file,) = log.root.rglob("*.jsonl")
    return file


def test_each_process_writes_a_file_of_its_own_and_all_are_read(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from retrieval.observations import FolderObservations\n"
        "from domain.releases import Observation\n"
        f"log = FolderObservations(Path({str(tmp_path)!r}))\n"
        f"for i in range(300): log.write({V2!r}, 1, Observation(f'{{sys.argv[1]}}{{i:03}}', float(i), {V2!r}, {{}}))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, name], cwd=ROOT) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    # Equally old ones stand by trace id: a000 b000 c000 a001 ...
    assert traces(FolderObservations(tmp_path)) == [f"{name}{i:03}" for i in range(300) for name in "abc"]
    assert len(list(tmp_path.rglob("*.jsonl"))) == 3


def test_a_torn_last_line_is_not_there_until_it_is_whole(log: FolderObservations) -> None:
    whole = the_file(log).read_bytes().replace(b'"a"', b'"b"')
    with the_file(log).open("ab", buffering=0) as file:
        file.write(whole[:20])
        assert traces(log) == ["a"]
        assert traces(FolderObservations(log.root)) == ["a"]
        file.write(whole[20:])
    assert traces(log) == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [b"nonsense", b"[]", b"{}", b"\xff", b"null", b'{"trace_id": "x", "at": "noon", "version": "", "values": {}}',
     b'{"trace_id": "x", "at": 1, "version": "", "values": {}, "paired": {"found": [1]}}'],
)  # fmt: skip
def test_a_damaged_line_is_named_until_it_is_mended_and_nothing_else_is_lost(
    log: FolderObservations, line: bytes
) -> None:
    traces(log)
    damaged = the_file(log)
    sound = damaged.read_bytes()
    damaged.write_bytes(sound + line + b"\n" + sound.replace(b'"a"', b'"c"'))
    FolderObservations(log.root).write(V2, 1, seen("b"))  # a file of its own
    for _ in range(2):
        with pytest.raises(StorageError, match=rf"{damaged}, line 2 is damaged .*mend or remove"):
            log.read(V2, 1)
    damaged.write_bytes(damaged.read_bytes().replace(line + b"\n", b""))
    assert traces(log) == ["a", "b", "c"]


def test_a_log_that_was_cut_or_removed_is_read_from_its_start(log: FolderObservations) -> None:
    log.write(V2, 1, seen("b"))
    assert traces(log) == ["a", "b"]
    the_file(log).write_bytes(the_file(log).read_bytes().splitlines(keepends=True)[0])
    assert traces(log) == ["a"]
    the_file(log).unlink()
    assert traces(log) == []


def test_reading_again_without_news_gives_the_same_tuple(log: FolderObservations) -> None:
    assert log.read(V2, 1) is log.read(V2, 1)


def test_beyond_its_cap_a_file_takes_no_more_and_nobody_takes_it_for_the_whole(tmp_path: Path) -> None:
    log = FolderObservations(tmp_path, most_lines=3)
    assert [log.write(V2, 1, seen(name)) for name in "ab"] == [True, True]
    assert traces(log) == ["a", "b"]
    assert [log.write(V2, 1, seen(name)) for name in "cd"] == [True, False]
    for reader in (log, FolderObservations(tmp_path, most_lines=3)):
        with pytest.raises(StorageError, match=r"\.jsonl is full, it has 3 observations: .* promote it or"):
            reader.read(V2, 1)
    assert log.write(V2, 2, seen("e")) is True  # another canary begins with an empty file


def test_a_folder_that_cannot_be_written_loses_the_observation_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "observations").write_text("a file where the folder should be")
    log = FolderObservations(tmp_path / "observations")
    assert log.write(V2, 1, seen("a")) is False


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / f"{V2}-r1").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match=rf"Cannot read {tmp_path / f'{V2}-r1'}"):
        FolderObservations(tmp_path).read(V2, 1)


def test_on_a_full_disk_no_part_of_a_line_stays(tmp_path: Path) -> None:
    code = (
        "import resource, signal; from pathlib import Path\n"
        "from retrieval.observations import FolderObservations; from domain.releases import Observation\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (250, resource.RLIM_INFINITY))\n"
        f"log = FolderObservations(Path({str(tmp_path)!r}))\n"
        f"write = lambda name: log.write({V2!r}, 1, Observation(name, 1.0, {V2!r}, {{'success': 1.0}}))\n"
        "told = [write(name) for name in 'abcd']\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "print(*told, write('e'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    # A line has 88 bytes: two fit into 250, and the third would in part.
    assert done.stdout.split() == ["True", "True", "False", "False", "True"]
    assert traces(FolderObservations(tmp_path)) == ["a", "b", "e"]


def test_a_name_that_is_no_version_never_becomes_a_path(log: FolderObservations, tmp_path: Path) -> None:
    for name in ("../x", "", "/etc", f"{V2}\n"):
        with pytest.raises(ValueError, match="is no version name"):
            log.read(name, 1)
        with pytest.raises(ValueError, match="is no version name"):
            log.write(name, 1, seen("a"))


def test_what_was_observed_of_a_version_can_be_removed(log: FolderObservations) -> None:
    log.write(V2, 5, seen("b"))
    log.write(V1, 3, seen("c"))
    log.forget(V2)
    assert [folder.name for folder in log.root.iterdir()] == [f"{V1}-r3"]
    assert traces(log) == []


def test_a_process_holds_one_open_file_however_many_canaries_there_were(tmp_path: Path) -> None:
    log, handles = FolderObservations(tmp_path), Path("/proc/self/fd")
    log.write(V2, 1, seen("a"))
    before = len(list(handles.iterdir()))
    for began in range(2, 40):
        log.write(V2, began, seen("a"))
    assert len(list(handles.iterdir())) == before
