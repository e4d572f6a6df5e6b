"""A library in step with its source: only what changed is read, and the version is the one of a full rebuild."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import ClassVar

import pytest

from domain.errors import CorpusError
from retrieval.origins import FolderOrigin
from retrieval.reading import Source
from retrieval.registry import FolderRegistry
from tests.tidegate.tiny import settings
from tidegate.build import build_version, corpus_of
from tidegate.compose_documents import make_amending
from tidegate.settings import Settings
from tidegate.syncing import Pruning, Synced, alone, records_folder, sync_version

DEFAULT = Pruning()
WORDS = ("tide", "gate", "crane", "pump", "keeper", "harbour", "bell", "oil", "mast", "rope", "zebrawood", "kiln")


class Watched(FolderOrigin):
    """A folder that remembers which of its files were read, and which were only compared by content."""

    read: ClassVar[list[str]] = []
    compared: ClassVar[list[str]] = []

    def digest(self, source: Source) -> str:
        self.compared.append(source.name)
        return super().digest(source)

    @contextmanager
    def fetched(self, source: Source) -> Iterator[Source]:
        self.read.append(source.name)
        yield source


def registry_of(of: Settings) -> FolderRegistry:
    return FolderRegistry(of.data_dir / "registry")


def sync(of: Settings, folder: Path, pruning: Pruning = DEFAULT, *, full: bool = False) -> Synced:
    """One sync of a folder whose files settled long ago; what it read is in Watched."""
    long_ago(folder)
    Watched.read.clear()
    Watched.compared.clear()
    documents = corpus_of(of, folder, "auto", "")
    return sync_version(of, [Watched(documents)], documents, pruning, lambda *_: None, full=full)


def long_ago(folder: Path) -> None:
    """Every file that was written since has a time of its own: what was changed at this moment may change again."""
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if path.is_file() and path.stat().st_mtime > 1_700_000_000:
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    # The time of a change cannot be set back, so for these tests what was written a moment ago has settled.
    monkeypatch.setattr("retrieval.origins.SETTLED_S", -1e9)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def content(of: Settings, version: str) -> dict[str, bytes]:
    """Every file of a version but the one that says when it was built and after which."""
    folder = registry_of(of).folder(version)
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "version.json"}


def three(folder: Path) -> Path:
    write(folder, "crane.md", "# The crane\n\nThe blue crane lifts four tonnes.\n")
    write(folder, "gate.md", "# The gate\n\nThe sea gate closes at six metres.\n")
    write(folder, "pump.txt", "Pump P3 needs oil of grade ISO 46.\n")
    return folder


# ---------------------------------------------------------------------------------------------- what is read


def test_the_second_sync_reads_nothing_and_says_so(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    first = sync(of, folder)
    assert sorted(Watched.read) == ["crane.md", "gate.md", "pump.txt"]
    again = sync(of, folder)
    assert (again.version, again.built) == (first.version, None)
    assert (Watched.read, Watched.compared) == ([], [])
    assert len(registry_of(of).versions()) == 1


def test_only_a_changed_file_is_read_and_only_its_text_embedded(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    write(folder, "pump.txt", "Pump P3 needs oil of grade ISO 68.\n")
    synced = sync(of, folder)
    assert Watched.read == ["pump.txt"]
    assert synced.built is not None
    assert (synced.built.embedded, synced.built.reused_vectors) == (1, 2)


def test_a_file_that_was_only_touched_is_compared_once_and_not_read(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    os.utime(folder / "gate.md", (1_500_000_000, 1_500_000_000))
    assert sync(of, folder).built is None
    assert (Watched.read, Watched.compared) == ([], ["gate.md"])
    assert sync(of, folder).built is None
    assert Watched.compared == []


def test_a_file_changed_without_another_size_or_time_is_found_by_the_time_of_its_change(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    before = (folder / "pump.txt").stat()
    write(folder, "pump.txt", "Pump P3 needs oil of grade ISO 68.\n")
    os.utime(folder / "pump.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (folder / "pump.txt").stat().st_size == before.st_size
    assert sync(of, folder).built is not None


def test_a_file_that_changed_a_moment_ago_is_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.origins.SETTLED_S", 3600.0)
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    assert sync(of, folder).built is None
    assert len(Watched.compared) == 3


def test_full_compares_every_file_and_gives_the_same_version(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    first = sync(of, folder)
    assert sync(of, folder, full=True).version == first.version
    assert len(Watched.compared) == 3


def test_other_settings_read_everything_again(tmp_path: Path) -> None:
    folder = three(tmp_path / "corpus")
    sync(settings(tmp_path / "data"), folder)
    synced = sync(settings(tmp_path / "data", chunking__tokens="64"), folder)
    assert len(Watched.read) == 3
    assert synced.built is not None


def test_a_damaged_version_is_not_taken_from(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    first = sync(of, folder)
    chunks = registry_of(of).folder(first.version.id) / "chunks.jsonl"
    chunks.write_bytes(chunks.read_bytes().replace(b"blue", b"pink"))
    write(folder, "pump.txt", "Pump P3 needs oil of grade ISO 68.\n")
    synced = sync(of, folder)
    assert len(Watched.read) == 3
    assert b"pink" not in content(of, synced.version.id)["chunks.jsonl"]


@pytest.mark.parametrize("spoil", [lambda raw: raw[:-40], lambda _: b"", lambda raw: b"{}\n" + raw])
def test_a_record_that_is_damaged_costs_only_time(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    first = sync(of, folder)
    record = next(records_folder(of).iterdir())
    record.write_bytes(spoil(record.read_bytes()))
    assert sync(of, folder).version == first.version
    assert len(Watched.read) == 3


def test_a_sync_after_a_build_reads_only_what_changed_since(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    long_ago(folder)
    built = build_version(of, folder, lambda *_: None)
    assert sync(of, folder).version == built.version
    assert Watched.read == []


# ---------------------------------------------------------------------------------------------- the same version


def edits(random: Random, folder: Path) -> Iterator[str]:
    """Random edits of a folder, one after the other; each names what it did."""

    def text() -> str:
        lines = [" ".join(random.choices(WORDS, k=random.randint(3, 30))) + "." for _ in range(random.randint(1, 9))]
        return f"# {random.choice(WORDS)}\n\n" + "\n\n".join(lines) + "\n"

    def name() -> str:
        stem = f"{random.choice(WORDS)}{random.randint(0, 30)}"
        return f"{random.choice(['', 'a/', 'b/c/'])}{stem}{random.choice(['.md', '.txt'])}"

    def records() -> str:
        ids = random.sample(range(40), random.randint(1, 6))
        return "".join(f'{{"id": "record-{i}", "text": "{random.choice(WORDS)} {i}"}}\n' for i in ids)

    while True:
        there = sorted(p for p in folder.rglob("*") if p.is_file())
        kind = random.choice(["add", "edit", "delete", "move", "case", "blank", "records", "same"])
        one = random.choice(there)
        if kind == "add" or len(there) < 4:
            write(folder, name(), text())
        elif kind == "edit":
            one.write_text(text(), "utf-8")
        elif kind == "delete":
            one.unlink()
        elif kind == "move":
            target = folder / "moved" / one.name
            target.parent.mkdir(exist_ok=True)
            one.rename(target)
        elif kind == "case":
            one.rename(one.with_name(one.name.swapcase().replace(".MD", ".md").replace(".TXT", ".txt")))
        elif kind == "blank":
            one.write_text(one.read_text("utf-8") + random.choice(["\n", "  ", "\t\n"]), "utf-8")
        elif kind == "records":
            for other in there:
                if other.suffix.lower() == ".jsonl":  # the same id in two files is refused
                    other.unlink()
            write(folder, "records.jsonl", records())
        else:
            one.write_text(one.read_text("utf-8"), "utf-8")
        yield kind


@pytest.mark.parametrize("seed", range(8))
def test_a_sync_is_byte_for_byte_a_full_rebuild_after_any_edits(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    folder = three(tmp_path / "corpus")
    of = settings(tmp_path / "synced", chunking__tokens="16")
    rounds = edits(random, folder)
    for number in range(6):
        for _ in range(random.randint(1, 4)):
            next(rounds)
        synced = sync(of, folder, Pruning(limit=1.0))
        rebuilt_in = settings(tmp_path / f"rebuilt{number}", chunking__tokens="16")
        rebuilt = build_version(rebuilt_in, folder, lambda *_: None)
        assert synced.version.id == rebuilt.version.id
        assert content(of, synced.version.id) == content(rebuilt_in, rebuilt.version.id)
        if synced.built is not None:
            assert synced.built.outcomes == rebuilt.outcomes


def test_a_moved_file_keeps_its_vectors_and_records_with_ids_keep_their_chunks(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    write(folder, "records.jsonl", '{"id": "r1", "text": "The bell rings twice."}\n')
    first = sync(of, folder)
    (folder / "old").mkdir()
    (folder / "pump.txt").rename(folder / "old" / "pump.txt")
    (folder / "records.jsonl").rename(folder / "old" / "records.jsonl")
    synced = sync(of, folder)
    assert synced.built is not None
    assert (synced.built.embedded, synced.gone.moved) == (0, 2)
    before, after = (content(of, v.id)["ids.json"].decode() for v in (first.version, synced.version))
    assert '"r1#' in before
    assert '"r1#' in after
    assert '"old/pump.txt#' in after  # its id is its name: what cited it under the old one no longer resolves
    assert synced.hidden == ("pump.txt",)


# ---------------------------------------------------------------------------------------------- what has gone


def test_what_disappears_is_hidden_from_every_version_and_shown_again_when_it_is_back(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    kept = (folder / "pump.txt").read_text("utf-8")
    (folder / "pump.txt").unlink()
    assert sync(of, folder).hidden == ("pump.txt",)
    assert registry_of(of).tombstones() == {"pump.txt"}
    write(folder, "pump.txt", kept)
    assert sync(of, folder).restored == ("pump.txt",)
    assert registry_of(of).tombstones() == frozenset()


def test_what_a_person_forgot_stays_forgotten_however_often_its_file_comes_back(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    registry = registry_of(of)
    text = (folder / "pump.txt").read_text("utf-8")
    (folder / "pump.txt").unlink()
    sync(of, folder)
    assert make_amending(of).forget(["pump.txt"], "keeper@pier") == ()  # hidden already, but by nobody's wish
    write(folder, "pump.txt", text)
    synced = sync(of, folder)
    assert (synced.restored, synced.forgotten) == ((), ("pump.txt",))
    assert registry.tombstones() == {"pump.txt"}


def test_deleted_files_may_be_kept_in_earlier_versions(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    (folder / "pump.txt").unlink()
    synced = sync(of, folder, Pruning(keep=True))
    assert synced.gone.removed == ("pump.txt",)
    assert registry_of(of).tombstones() == frozenset()
    assert synced.version.documents == 2


def test_an_empty_listing_is_a_fault_and_changes_nothing(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(CorpusError, match="lists no file, and had 3 the last time: nothing was changed"):
        sync(of, folder, Pruning(limit=1.0))
    assert registry_of(of).tombstones() == frozenset()


def test_a_listing_that_lacks_too_much_is_refused_with_the_way_out(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), tmp_path / "corpus"
    for number in range(10):
        write(folder, f"{number}.txt", f"The tide gate {number} is shut.")
    sync(of, folder)
    for number in range(4):
        (folder / f"{number}.txt").unlink()
    told = r"4 of 10 documents are gone from .*, 40%, and at most 30% may go at once.*--prune-limit 0\.4"
    with pytest.raises(CorpusError, match=told):
        sync(of, folder)
    assert registry_of(of).tombstones() == frozenset()
    assert len(registry_of(of).versions()) == 1
    assert len(sync(of, folder, Pruning(limit=0.4)).hidden) == 4


def test_one_of_two_files_may_go_unless_a_limit_was_named(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), tmp_path / "corpus"
    write(folder, "keep.txt", "The blue kiln reaches 900 degrees.")
    write(folder, "drop.txt", "The zebrawood kiln reaches 1200 degrees.")
    sync(of, folder)
    (folder / "drop.txt").unlink()
    with pytest.raises(CorpusError, match="1 of 2 documents"):
        sync(of, folder, Pruning(limit=0.3))
    assert sync(of, folder).hidden == ("drop.txt",)


def test_a_folder_that_is_renamed_as_a_whole_has_not_disappeared(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), tmp_path / "corpus"
    for number in range(10):
        write(folder, f"old/{number}.txt", f"The tide gate {number} is shut.")
    sync(of, folder)
    (folder / "old").rename(folder / "new")
    synced = sync(of, folder)
    assert synced.gone.moved == 10
    assert len(synced.hidden) == 10  # under their old names


def test_a_file_that_cannot_be_read_any_more_is_not_taken_for_a_deleted_one(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    (folder / "pump.txt").write_bytes(b"text \xe9\0\0")  # Latin text with NULs: nothing that can be decoded
    synced = sync(of, folder)
    assert synced.gone.unread == ("pump.txt",)
    assert registry_of(of).tombstones() == frozenset()


# ---------------------------------------------------------------------------------------------- at once, and again


def test_a_second_sync_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    waiting, ended = Event(), Event()
    told: list[str] = []

    def second() -> None:
        def tell(text: str) -> None:
            told.append(text)
            waiting.set()

        with alone(of, tell):
            ended.set()

    with alone(of, told.append):
        thread = Thread(target=second)
        thread.start()
        assert waiting.wait(20)
        assert not ended.is_set()
    thread.join(20)
    assert ended.is_set()
    assert told == ["another sync of this library is at work: waiting for it"]


def test_after_a_sync_that_died_before_it_remembered_the_next_one_comes_to_the_same(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    sync(of, folder)
    record = next(records_folder(of).iterdir())
    before = record.read_bytes()
    (folder / "pump.txt").unlink()
    died = sync(of, folder)
    record.write_bytes(before)  # as if it had been killed after publishing
    again = sync(of, folder)
    assert (again.version.id, again.hidden) == (died.version.id, ())
    assert registry_of(of).tombstones() == {"pump.txt"}


def test_the_same_folder_is_the_same_source_however_it_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    first = sync(of, folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    for spelled in (Path("corpus"), Path("./corpus"), tmp_path / "corpus" / ".." / "corpus", tmp_path / "link"):
        again = sync(of, spelled)
        assert (again.version, again.built, Watched.read) == (first.version, None, [])


# ---------------------------------------------------------------------------------------------- readers


def read_by(folder: Path, *groups: str) -> None:
    write(folder, "crane.md", f"---\ngroups: [{', '.join(groups)}]\n---\n# The crane\n\nIt lifts four tonnes.\n")


def test_readers_that_the_source_takes_away_lose_a_document_in_every_version_at_once(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    read_by(folder, "hr", "public")
    sync(of, folder)
    read_by(folder, "hr")
    assert sync(of, folder).narrowed == ("crane.md",)
    assert registry_of(of).access() == {"crane.md": {"hr"}}
    read_by(folder, "hr", "public", "staff")  # back: no version as it was built may count again
    assert sync(of, folder).narrowed == ()
    assert registry_of(of).access() == {"crane.md": {"hr", "public", "staff"}}


def test_a_note_beside_a_file_takes_readers_away_as_the_file_itself_does(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    write(folder, "access.yaml", "groups: [hr, public]\n")
    sync(of, folder)
    write(folder, "access.yaml", "groups: []\n")
    assert sync(of, folder).narrowed == ("crane.md", "gate.md", "pump.txt")
    assert set(registry_of(of).access().values()) == {frozenset()}


def test_readers_who_are_added_wait_for_the_gate_with_their_version(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    read_by(folder, "hr")
    sync(of, folder)
    read_by(folder, "hr", "public")
    assert sync(of, folder).narrowed == ()
    assert registry_of(of).access() == {}


def test_what_a_person_said_about_readers_stands_whatever_the_source_says(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    read_by(folder, "hr", "public")
    sync(of, folder)
    make_amending(of).set_readers("crane.md", frozenset({"board"}), "keeper@pier")
    read_by(folder, "hr")
    assert sync(of, folder).narrowed == ()
    assert registry_of(of).access() == {"crane.md": {"board"}}


def test_other_settings_that_take_readers_away_do_so_in_every_version(tmp_path: Path) -> None:
    of, folder = settings(tmp_path / "data"), three(tmp_path / "corpus")
    write(folder, "access.yaml", "groups: [hr, public]\n")
    sync(of, folder)
    write(folder, "access.yaml", "groups: [hr]\n")
    other = of.model_copy(update={"chunking": of.chunking.model_copy(update={"tokens": of.chunking.tokens + 10})})
    assert sync(other, folder).narrowed == ("crane.md", "gate.md", "pump.txt")
