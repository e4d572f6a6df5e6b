"""The pointer and its moves on disk: what a crash leaves, what hands do to files, what older programs wrote."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.releases import Move, Rollout, Verb
from retrieval.ledger import Ledger

POINTERS = (
    Rollout(),
    Rollout(stable="v1", revision=1),
    Rollout(stable="v2", previous="v1", revision=2),
    Rollout(stable="v1", revision=3),
)


def move(to: int, who: str = "Zoë") -> Move:
    return Move(Verb.PROMOTE, f"2026-01-0{to}", who, POINTERS[to - 1], POINTERS[to], "why")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """After two moves."""
    ledger = Ledger(tmp_path)
    ledger.write(move(1))
    ledger.write(move(2))
    return ledger


def test_the_pointers_file_shows_the_pointer_and_its_last_move(ledger: Ledger, tmp_path: Path) -> None:
    shown = json.loads((tmp_path / "rollout.json").read_text("utf-8"))
    last = shown.pop("move")
    assert shown == asdict(POINTERS[2])
    assert (last["who"], last["before"], last["after"]) == ("Zoë", asdict(POINTERS[1]), asdict(POINTERS[2]))


def test_wherever_the_last_line_was_torn_no_move_is_lost(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    content, pointer = path.read_bytes(), (tmp_path / "rollout.json").read_bytes()
    first, second, _ = content.split(b"\n")
    for torn in (*range(len(first) + 1, len(content), 29), len(content) - 1):
        path.write_bytes(content[:torn])
        (tmp_path / "rollout.json").write_bytes(pointer)
        assert ledger.moves() == (move(1), move(2))
        ledger.write(move(3))
        assert path.read_bytes().split(b"\n")[:2] == [first, second], "the next writer made up for it"
        assert ledger.moves() == (move(1), move(2), move(3))


def test_without_a_ledger_the_last_move_is_still_known(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").unlink()
    assert ledger.moves() == (move(2),)
    ledger.write(move(3))
    assert ledger.moves() == (move(2), move(3))


def test_a_pointer_from_before_there_was_a_ledger_is_read_and_moved(tmp_path: Path) -> None:
    (tmp_path / "rollout.json").write_text(
        '{"canary": null, "previous": "v1", "revision": 2, "share": 0.0, "stable": "v2"}'
    )
    ledger = Ledger(tmp_path)
    assert (ledger.rollout(), ledger.last(), ledger.moves()) == (POINTERS[2], None, ())
    ledger.write(move(3))
    assert ledger.moves() == (move(3),)


def damage(line: int, content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        lines = (folder / "ledger.jsonl").read_bytes().split(b"\n")
        lines[line - 1] = content
        (folder / "ledger.jsonl").write_bytes(b"\n".join(lines))

    return change


@pytest.mark.parametrize("content", [b"{", b'{"verb": "sideways"}', b"", b"\xff"])
@pytest.mark.parametrize("line", [1, 2])
def test_a_damaged_line_is_named_and_stands_in_nobodys_way(
    ledger: Ledger, tmp_path: Path, line: int, content: bytes
) -> None:
    whole = (tmp_path / "ledger.jsonl").read_bytes()
    damage(line, content)(tmp_path)
    with pytest.raises(StorageError, match=rf"ledger.jsonl, line {line} is damaged \("):
        ledger.moves()
    assert ledger.rollout() == POINTERS[2]
    ledger.write(move(3))
    assert ledger.rollout() == POINTERS[3]
    (tmp_path / "ledger.jsonl").write_bytes(
        whole.removesuffix(b"\n") + b"\n" + (tmp_path / "ledger.jsonl").read_bytes().split(b"\n", 2)[2]
    )
    assert ledger.moves() == (move(1), move(2), move(3)), "a line that was put on record twice is one move"


def test_a_line_that_is_missing_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.write(move(3))
    path = tmp_path / "ledger.jsonl"
    first, _, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + third)
    with pytest.raises(StorageError, match=r"line 2, begins at revision 2, but the move before it ended at revision 1"):
        ledger.moves()


def test_a_pointer_that_is_gone_is_not_a_fresh_start(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "rollout.json").unlink()
    for ask in (ledger.rollout, ledger.last, ledger.moves):
        with pytest.raises(StorageError, match=r"rollout.json is missing although ledger.jsonl tells of moves"):
            ask()
    # what the message advises: the last line's `after` is the pointer
    line = json.loads((tmp_path / "ledger.jsonl").read_text().splitlines()[-1])
    (tmp_path / "rollout.json").write_text(json.dumps(line["after"]))
    assert ledger.rollout() == POINTERS[2]
    assert ledger.moves() == (move(1), move(2))


@pytest.mark.parametrize("content", [b"", b"{}", b'{"revision": 0}', b"[]", b"null"])
def test_an_empty_pointer_is_damage_and_not_a_fresh_start(ledger: Ledger, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rollout.json").write_bytes(content)
    with pytest.raises(StorageError, match=r"rollout.json is damaged"):
        ledger.rollout()


def test_a_pointer_moved_by_hand_is_followed_and_its_move_disputed(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "rollout.json"
    by_hand = json.loads(path.read_text("utf-8")) | {"stable": "v9"}
    path.write_text(json.dumps(by_hand))
    assert ledger.rollout().stable == "v9"
    with pytest.raises(StorageError, match="move: it ends elsewhere than where the pointer is"):
        ledger.moves()


def test_a_ledger_that_cannot_take_the_line_loses_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    (tmp_path / "ledger.jsonl").mkdir()
    with pytest.raises(StorageError, match="Cannot read"):
        ledger.rollout()  # nobody can tell whether there were moves
    (tmp_path / "ledger.jsonl").rmdir()
    ledger.write(move(1))
    (tmp_path / "ledger.jsonl").unlink()
    (tmp_path / "ledger.jsonl").symlink_to(tmp_path / "nowhere" / "ledger.jsonl")
    with pytest.raises(OSError, match=r"ledger.jsonl"):
        ledger.write(move(2))
    assert (ledger.rollout(), ledger.moves()) == (POINTERS[1], (move(1),))
