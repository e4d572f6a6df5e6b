"""An index that changes: after any sequence of additions and deletions it is the one that counting all texts gives."""

import errno
from pathlib import Path

import numpy as np
import pytest

from domain.errors import IncompatibleIndex, StorageError
from retrieval.arms import Visible
from retrieval.lexical import Bm25Arm
from retrieval.lexical_snapshot import Snapshot
from retrieval.lexical_updates import LexicalUpdates, opened, verify

WORDS = ["pump", "valve", "seal", "AR-7", "ERR_CONN_RESET", "conn", "冷却水", "the"]
QUERIES = ["pump", "seal valve pump pump", "ERR_CONN_RESET AR-7", "冷却 unheardof", "the"]


def text(rng: np.random.Generator) -> str:
    return " ".join(rng.choice(WORDS, rng.integers(0, 6)))


def told(snapshot: Snapshot, query: str, n: int, visible: Visible) -> list[tuple[str, float]]:
    ranking = snapshot.search(query, n, visible)
    return list(zip(snapshot.ids(ranking.rows), ranking.scores.tolist(), strict=True))


def counted(texts: dict[str, str], query: str, n: int, may_see: set[str]) -> list[tuple[str, float]]:
    """What an arm says that was built over all of `texts` and nothing else."""
    ids = sorted(texts)
    arm = Bm25Arm.build([texts[each] for each in ids])
    ranking = arm.search(query, n, Visible(np.array([each in may_see for each in ids], np.bool_)))
    return [(ids[row], score) for row, score in zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)]


def seen_by(snapshot: Snapshot, may_see: set[str]) -> Visible:
    everything = snapshot.ids(np.arange(snapshot.everyone.mask.size))
    return snapshot.visible(np.array([each in may_see for each in everything], np.bool_))


def changed(writer: LexicalUpdates, texts: dict[str, str], rng: np.random.Generator) -> None:
    """One change of the index and of what it ought to hold; ids come again, some are unknown, some changes empty."""
    names = [f"d{i:02d}" for i in rng.integers(0, 25, rng.integers(0, 5))]
    match rng.integers(0, 6):
        case 0:
            writer.compact()
        case 1:
            writer.delete(names)
            for name in names:
                texts.pop(name, None)
        case _:
            gone = [f"d{i:02d}" for i in rng.integers(0, 25, 2)]
            new = {name: text(rng) for name in names}
            writer.update(new, gone)
            for name in gone:
                texts.pop(name, None)
            texts |= new


@pytest.mark.parametrize("seed", range(12))
def test_after_any_changes_every_reader_gets_what_counting_all_texts_gives_bit_by_bit(seed: int, tmp_path: Path):
    rng = np.random.default_rng(seed)
    texts: dict[str, str] = {}
    with LexicalUpdates(tmp_path) as writer:
        for _ in range(8):
            changed(writer, texts, rng)
            snapshot = writer.snapshot
            may_see = {name for name in texts if rng.random() < 0.6}
            for query in QUERIES:
                assert told(snapshot, query, 5, snapshot.everyone) == counted(texts, query, 5, set(texts))
                assert told(snapshot, query, 50, seen_by(snapshot, may_see)) == counted(texts, query, 50, may_see)


@pytest.mark.parametrize("seed", range(3))
def test_opening_an_index_gives_what_its_writer_had(seed: int, tmp_path: Path):
    rng = np.random.default_rng(seed)
    texts: dict[str, str] = {}
    with LexicalUpdates(tmp_path) as writer:
        for _ in range(6):
            changed(writer, texts, rng)
        verify(tmp_path)
        for snapshot in (opened(tmp_path), writer.compact(), opened(tmp_path)):
            for query in QUERIES:
                assert told(snapshot, query, 9, snapshot.everyone) == counted(texts, query, 9, set(texts))
    with LexicalUpdates(tmp_path) as again:
        assert told(again.snapshot, "pump", 9, again.snapshot.everyone) == counted(texts, "pump", 9, set(texts))


def test_compacting_leaves_the_one_segment_that_counting_gives(tmp_path: Path):
    with LexicalUpdates(tmp_path / "live") as writer:
        writer.add({"b": "pump valve", "d": "rotor"})
        writer.update({"a": "seal", "c": "valve valve"}, ["d"])
        writer.compact()
    Bm25Arm.build(["seal", "pump valve", "valve valve"]).save(tmp_path / "counted")
    [segment] = (tmp_path / "live" / "updates").iterdir()
    for file in (tmp_path / "counted").iterdir():
        assert (segment / file.name).read_bytes() == file.read_bytes()


def test_an_update_writes_nothing_of_what_it_does_not_change(tmp_path: Path):
    with LexicalUpdates(tmp_path) as writer:
        writer.add({f"d{i:03d}": f"pump word{i}" for i in range(300)})
        first = {path: path.stat().st_mtime_ns for path in (tmp_path / "updates").rglob("*")}
        writer.update({"d007": "valve"}, ["d100"])
        assert {path: path.stat().st_mtime_ns for path in first if path.is_file()}.items() <= first.items()
        new = [path for path in (tmp_path / "updates").rglob("*.npy") if path not in first]
        assert sum(path.stat().st_size for path in new) < 2000  # nine files with a head of 128 bytes each


def test_rows_are_scored_as_in_search(tmp_path: Path):
    with LexicalUpdates(tmp_path) as writer:
        writer.add({"a": "pump valve", "c": "valve"})
        snapshot = writer.add({"b": "pump", "d": "seal"})
    found = dict(told(snapshot, "pump valve", 9, snapshot.everyone))
    rows = snapshot.everyone.rows[::-1]
    scores = snapshot.score("pump valve", rows, snapshot.everyone).tolist()
    assert dict(zip(snapshot.ids(rows), scores, strict=True)) == {"d": 0.0} | found


def test_a_snapshot_stays_what_it_was_while_the_index_changes(tmp_path: Path):
    with LexicalUpdates(tmp_path) as writer:
        before = writer.add({"a": "pump", "b": "pump pump"})
        expected = told(before, "pump", 9, before.everyone)
        writer.update({"c": "pump"}, ["b"])
        writer.compact()
        assert told(before, "pump", 9, before.everyone) == expected


def test_an_id_finds_its_row_until_it_is_deleted(tmp_path: Path):
    with LexicalUpdates(tmp_path) as writer:
        writer.add({"a": "pump", "c": "seal"})
        snapshot = writer.update({"b": "valve"}, ["a"])
        rows = {name: snapshot.row(name) for name in "abcd"}
        assert {name: snapshot.ids(np.array([row])) for name, row in rows.items() if row is not None} == {
            "b": ["b"],
            "c": ["c"],
        }


def test_a_change_of_nothing_is_no_update(tmp_path: Path):
    with LexicalUpdates(tmp_path) as writer:
        writer.add({"a": "pump"})
        before = writer.snapshot
        assert writer.delete(["unknown"]) is before
        assert len(list((tmp_path / "updates").iterdir())) == 1


def test_an_index_that_is_not_there_is_an_empty_one(tmp_path: Path):
    snapshot = opened(tmp_path / "nowhere")
    assert told(snapshot, "pump", 9, snapshot.everyone) == []


def test_a_second_writer_is_refused(tmp_path: Path):
    with LexicalUpdates(tmp_path), pytest.raises(StorageError, match="being written by another process"):
        LexicalUpdates(tmp_path)
    LexicalUpdates(tmp_path).close()


def test_a_writer_that_could_not_open_its_index_lets_another_try(tmp_path: Path):
    (tmp_path / "index.json").write_text("[]")
    with pytest.raises(StorageError, match=r"index\.json"):
        LexicalUpdates(tmp_path)
    with pytest.raises(StorageError, match=r"index\.json"):  # and not "is being written"
        LexicalUpdates(tmp_path)


def test_a_writer_that_was_closed_writes_no_more(tmp_path: Path):
    writer = LexicalUpdates(tmp_path)
    writer.close()
    with LexicalUpdates(tmp_path) as other:
        for change in (lambda: writer.add({"a": "pump"}), writer.compact):
            with pytest.raises(ValueError, match="closed"):
                change()
        assert told(other.add({"b": "pump"}), "pump", 9, other.snapshot.everyone)[0][0] == "b"


def test_what_an_update_left_behind_that_never_came_to_be_is_removed(tmp_path: Path):
    (tmp_path / "updates" / "00000001").mkdir(parents=True)
    (tmp_path / "updates" / "00000001" / "rows.npy").write_bytes(b"half")
    with LexicalUpdates(tmp_path) as writer:
        assert list((tmp_path / "updates").iterdir()) == []
        assert told(writer.add({"a": "pump"}), "pump", 9, writer.snapshot.everyone)[0][0] == "a"


@pytest.mark.parametrize("change", ["update", "compact"])
def test_an_update_that_cannot_be_opened_never_came_to_be(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with LexicalUpdates(tmp_path) as writer:
        writer.add({"a": "pump", "b": "seal"})
        with monkeypatch.context() as full:
            full.setattr(np, "load", no_room)  # as when a process may map no more files
            with pytest.raises(StorageError, match="Cannot allocate"):
                writer.add({"a": "valve"}) if change == "update" else writer.compact()
        writer.add({"a": "rotor"})
        for snapshot in (writer.snapshot, opened(tmp_path)):
            found = {
                word: [name for name, _ in told(snapshot, word, 9, snapshot.everyone)] for word in ("valve", "rotor")
            }
            assert found == {"valve": [], "rotor": ["a"]}
            assert sorted(snapshot.ids(snapshot.everyone.rows)) == ["a", "b"]


def test_an_index_of_another_analyser_is_refused(tmp_path: Path):
    with LexicalUpdates(tmp_path) as writer:
        writer.add({"a": "pump"})
    index = tmp_path / "index.json"
    index.write_text(index.read_text().replace('"tidegate-', '"another-'))
    with pytest.raises(IncompatibleIndex, match=r"another-.*make it again"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["rows.npy", "ids.npy", "id_ends.npy", "terms.npy", "gone-00000001.npy", "files.json"])
def test_a_file_that_is_cut_or_missing_is_named_when_the_index_is_opened(name: str, tmp_path: Path):
    damage(tmp_path, name, lambda content: content[:-1])
    with pytest.raises(StorageError, match=name):
        opened(tmp_path)
    (tmp_path / "updates" / "00000002" / name).unlink()
    with pytest.raises(StorageError, match=name):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["rows.npy", "ids.npy", "gone-00000001.npy", "files.json"])
def test_a_changed_byte_is_named_by_a_look_at_all_of_them(name: str, tmp_path: Path):
    damage(tmp_path, name, lambda content: content[:-2] + b" " + content[-1:])
    with pytest.raises(StorageError, match=name):
        verify(tmp_path)


@pytest.mark.parametrize("row", [2, -1])  # there are rows 0 and 1; -1 would hide the last one
def test_a_deletion_of_a_row_that_does_not_exist_is_damage(row: int, tmp_path: Path):
    damage(tmp_path, "gone-00000001.npy", lambda content: content[:-8] + np.int64(row).tobytes())
    with pytest.raises(StorageError, match=r"gone-00000001\.npy"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["counts.npy", "ids.npy"])
def test_damage_is_named_and_not_compacted_into_a_segment_that_looks_whole(name: str, tmp_path: Path):
    damage(tmp_path, name, lambda content: content[:-1] + b"\2")
    with LexicalUpdates(tmp_path) as writer:
        before = sorted((tmp_path / "updates").rglob("*"))
        with pytest.raises(StorageError, match=name):
            writer.compact()
    assert sorted((tmp_path / "updates").rglob("*")) == before


def test_an_index_file_that_is_no_record_is_named(tmp_path: Path):
    (tmp_path / "index.json").write_text("[]")
    with pytest.raises(StorageError, match=r"index\.json"):
        opened(tmp_path)


def damage(folder: Path, name: str, change: object) -> None:
    """An index of two updates whose second one has a damaged file."""
    with LexicalUpdates(folder) as writer:
        writer.add({"a": "pump", "b": "seal"})
        writer.update({"c": "valve"}, ["a"])
    path = folder / "updates" / "00000002" / name
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
