"""The folder of observations: several processes, torn lines, damage, a full disk, a long log."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.releases import Kept, Observation, Rollout
from eval.canary import LiveRules, Weighing, weigh
from retrieval.observations import FolderObservations
from retrieval.thinning import drawn

V1, V2 = (f"v{i:012x}" for i in (1, 2))
ROOT = Path(__file__).parents[2]
CANARY = Rollout(V1, V2, 0.5, revision=1, began=1)


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
     b'{"trace_id": "x", "at": 1, "version": "", "values": {}, "paired": {"found": [1]}}',
     b'{"trace_id": "x", "at": 1, "version": "", "values": {"success": 1%s}, "paired": {}}' % (b"0" * 400),
     b'{"trace_id": "x", "at": NaN, "version": "", "values": {}, "paired": {}}',
     b'{"trace_id": "x", "at": 1, "version": "", "values": {}, "paired": {}, "one_in": 1e999}',
     b'{"trace_id": "x", "at": 1, "version": "", "values": {}, "paired": {}, "one_in": 0}',
     b"[" * 100_000],
    ids=lambda line: line[-40:].decode("latin-1"),
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


# ---------------------------------------------------------------------------------------------- a long log


def test_a_log_that_grows_long_keeps_fewer_and_fewer_says_so_and_is_never_full(tmp_path: Path) -> None:
    log = FolderObservations(tmp_path, every=100)
    assert all(log.write(V2, 1, seen(f"t{i}", float(i))) for i in range(100))
    assert log.kept(V2, 1) == Kept(one_in=1)
    assert all(log.write(V2, 1, seen(f"t{i}", float(i))) for i in range(100, 10_000))
    # 100 of the first 100, of the next 200, of the next 400, and so on: 100 (2^k - 1) traces make 100 k lines, and
    # 10,000 lie between k = 6 (6,300) and k = 7 (12,700). A hash draws, so the stretches are about that long.
    lines = len(traces(log))
    assert 600 < lines <= 700
    assert FolderObservations(tmp_path).kept(V2, 1) == Kept(one_in=64)
    assert log.write(V2, 2, seen("e")) is True
    assert [one.trace_id for one in log.read(V2, 2)] == ["e"]  # another canary begins with an empty file


def test_which_traces_are_kept_depends_on_their_ids_alone(tmp_path: Path) -> None:
    failed = dict.fromkeys(("success", "within_slo"), 0.0)
    logs = [FolderObservations(tmp_path / name, every=50) for name in "ab"]
    for i in range(1000):
        logs[0].write(V2, 1, Observation(f"t{i}", float(i), V1 if i % 7 else V2, {"success": 1.0}))
        logs[1].write(V2, 1, Observation(f"t{i}", 0.0, V2 if i % 7 else V1, failed, {"found": (0.0, 1.0)}))
    assert sorted(traces(logs[0])) == sorted(traces(logs[1]))


def test_what_is_kept_has_the_share_of_each_version_and_its_mean(tmp_path: Path) -> None:
    rng, log = random.Random(5), FolderObservations(tmp_path, every=500)
    for i in range(20_000):
        version, mean = (V2, 0.9) if rng.random() < 0.25 else (V1, 0.6)
        success = float(rng.random() < mean)
        log.write(V2, 1, Observation(f"{rng.getrandbits(128):032x}", float(i), version, {"success": success}))
    kept = log.read(V2, 1)
    canary = [one.values["success"] for one in kept if one.version == V2]
    # About 2,700 lines: four standard errors are .033 of a share of .25, and .046 of a mean of .9 in 670 lines.
    assert log.kept(V2, 1).one_in >= 16
    assert len(canary) / len(kept) == pytest.approx(0.25, abs=0.034)
    assert sum(value or 0.0 for value in canary) / len(canary) == pytest.approx(0.9, abs=0.046)


def test_whoever_is_among_fewer_is_among_more() -> None:
    for i in range(2000):
        among = [drawn(f"t{i}", 2**k) for k in range(8)]
        assert among == sorted(among, reverse=True)
        assert among[0]
    assert 870 < sum(drawn(f"t{i}", 2) for i in range(2000)) < 1130  # 1,000, give or take six standard deviations


def test_feedback_counts_for_the_answers_that_were_kept_and_for_no_other(tmp_path: Path) -> None:
    writer, elsewhere = FolderObservations(tmp_path, every=20), FolderObservations(tmp_path, every=20)
    for i in range(400):
        writer.write(V2, 1, Observation(f"t{i}", float(i), V2, {"success": 1.0}))
    for i in range(400):  # by whichever process its reader reached, when every first of them is long past
        said = Observation(f"t{i}", 1000.0 + i, "", {"feedback": 1.0})
        assert (writer, elsewhere)[i % 2].write(V2, 1, said)
    kept = writer.read(V2, 1)
    answers = {one.trace_id for one in kept if not one.is_feedback}
    assert {f"t{i}" for i in range(20)} < answers
    assert len(answers) < 120
    (feedback,) = (m for m in weigh(kept, CANARY, 0.0, LiveRules()).metrics if m.metric == "feedback")
    assert feedback.canary_n == len(answers)
    assert elsewhere.kept(V2, 1) == Kept(one_in=16)  # what readers say does not thin a log


def test_reading_a_long_log_again_costs_what_is_new_and_a_restart_reads_the_same(tmp_path: Path) -> None:
    log, weighing = FolderObservations(tmp_path, every=50), Weighing(LiveRules())
    for i in range(600):
        log.write(V2, 1, Observation(f"t{i}", float(i), V2 if i % 3 else V1, {"success": float(i % 11 > 0)}))
        if i % 50 == 0:
            weighing(log.read(V2, 1), CANARY, 0.0)
    at_once = weigh(FolderObservations(tmp_path).read(V2, 1), CANARY, 0.0, LiveRules())
    assert weighing(log.read(V2, 1), CANARY, 0.0) == at_once


# ---------------------------------------------------------------------------------------------- what is lost


def test_what_is_lost_on_the_way_is_told_to_every_reader(log: FolderObservations) -> None:
    log.lose(V2, 1, 3)
    log.lose(V2, 1, 2)
    log.lose(V2, 9, 1)
    other = FolderObservations(log.root)
    other.write(V2, 1, seen("b"))
    other.lose(V2, 1, 4)
    assert [one.kept(V2, 1) for one in (log, other, FolderObservations(log.root))] == [Kept(lost=4 + 5)] * 3


def test_what_is_lost_before_there_is_a_file_is_told_once_there_is_one(tmp_path: Path) -> None:
    log = FolderObservations(tmp_path / "observations")
    log.root.write_text("a file where the folder should be")
    assert [log.write(V2, 1, seen(name)) for name in "ab"] == [False, False]
    log.root.unlink()
    assert log.kept(V2, 1) == Kept(lost=2)  # the process that lost them knows
    assert log.write(V2, 1, seen("c")) is True
    assert FolderObservations(log.root).kept(V2, 1) == Kept(lost=2)


@pytest.mark.parametrize("content", [b"", b"-3", b"3.0", b"9" * 5000], ids=len)
def test_a_count_that_cannot_be_read_as_one_hides_no_other(log: FolderObservations, content: bytes) -> None:
    log.lose(V2, 1, 3)
    the_file(log).with_name("another.lost").write_bytes(content)
    assert FolderObservations(log.root).kept(V2, 1) == Kept(lost=3)


# ---------------------------------------------------------------------------------------------- trouble


def test_a_folder_that_cannot_be_written_loses_the_observation_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "observations").write_text("a file where the folder should be")
    log = FolderObservations(tmp_path / "observations")
    assert log.write(V2, 1, seen("a")) is False


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / f"{V2}-r1").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match=rf"Cannot read {tmp_path / f'{V2}-r1'}"):
        FolderObservations(tmp_path).read(V2, 1)


def test_a_log_that_cannot_be_looked_at_any_more_is_not_one_that_is_gone(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from domain.errors import StorageError\n"
        "from retrieval.observations import FolderObservations; from domain.releases import Observation\n"
        f"log = FolderObservations(Path({str(tmp_path / 'o')!r}))\n"
        f"log.write({V2!r}, 1, Observation('a', 1.0, {V2!r}, {{}})); log.read({V2!r}, 1)\n"
        "log.root.chmod(0)\n"
        "os.geteuid() or os.seteuid(65534)  # a mode keeps nobody out who may do everything\n"
        f"try: log.read({V2!r}, 1)\n"
        "except StorageError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    (tmp_path / "o").chmod(0o755)
    assert done.stdout.startswith(f"Cannot read {tmp_path}/o/{V2}-r1")


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
        "print(*told, write('e'), FolderObservations(log.root).kept('" + V2 + "', 1).lost)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    # A line has 88 bytes: two fit into 250, and the third would in part.
    assert done.stdout.split() == ["True", "True", "False", "False", "True", "2"]
    assert traces(FolderObservations(tmp_path)) == ["a", "b", "e"]


def test_a_name_that_is_no_version_never_becomes_a_path(log: FolderObservations, tmp_path: Path) -> None:
    for name in ("../x", "", "/etc", f"{V2}\n"):
        with pytest.raises(ValueError, match="is no version name"):
            log.read(name, 1)
        with pytest.raises(ValueError, match="is no version name"):
            log.write(name, 1, seen("a"))


def test_each_time_a_version_was_a_canary_has_a_folder_and_nothing_else_is_taken_for_one(
    log: FolderObservations,
) -> None:
    log.write(V2, 5, seen("b"))
    log.write(V1, 3, seen("c"))
    (log.root / "vineyard-r3").mkdir()
    told = {version: [folder.name for folder in folders] for version, folders in log.folders().items()}
    assert told == {V1: [f"{V1}-r3"], V2: [f"{V2}-r1", f"{V2}-r5"]}
    assert FolderObservations(log.root / "nowhere").folders() == {}


def test_a_process_holds_one_open_file_however_many_canaries_there_were(tmp_path: Path) -> None:
    log, handles = FolderObservations(tmp_path), Path("/proc/self/fd")
    log.write(V2, 1, seen("a"))
    before = len(list(handles.iterdir()))
    for began in range(2, 40):
        log.write(V2, began, seen("a"))
    assert len(list(handles.iterdir())) == before
