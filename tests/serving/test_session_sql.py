"""The SQL store beyond its contract: what it writes down, how much it keeps, and what it says when it cannot."""

import sqlite3
from pathlib import Path

import pytest

from domain.errors import ConfigError, StorageError
from domain.types import Role, Scope, Session, Turn
from serving.session_sql import SqlSessions

READER = Scope("harbour", frozenset({"public"}))
NOW = 1_800_000_000.0


def store(path: Path, most: int = 100) -> SqlSessions:
    return SqlSessions(f"sqlite:///{path}", 3600.0, most, tidy_every_s=0.0)


def rows(path: Path) -> list[tuple[str, bytes]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT key, body FROM tidegate_sessions").fetchall()


def test_neither_the_id_nor_the_reader_is_written_down(tmp_path: Path) -> None:
    kept = store(tmp_path / "s.db")
    kept.save(Session("a-very-secret-id", (Turn(Role.USER, "Why?"),)), READER, 0, NOW)
    kept.close()
    ((key, body),) = rows(tmp_path / "s.db")
    assert len(key) == 64
    assert b"a-very-secret-id" not in body
    assert b"harbour" not in body


def test_the_least_recent_conversations_leave_beyond_the_most_that_are_kept(tmp_path: Path) -> None:
    kept = store(tmp_path / "s.db", most=3)
    for i in range(6):
        kept.save(Session(f"s{i}"), READER, 0, NOW + i)
    there = [i for i in range(6) if kept.load(f"s{i}", READER, NOW + 6)]
    kept.close()
    assert there == [3, 4, 5]


def test_expired_rows_are_deleted_and_not_only_hidden(tmp_path: Path) -> None:
    kept = store(tmp_path / "s.db")
    kept.save(Session("old"), READER, 0, NOW)
    kept.save(Session("new"), READER, 0, NOW + 7200)
    kept.close()
    assert len(rows(tmp_path / "s.db")) == 1


def test_a_damaged_row_is_a_storage_error_and_not_an_empty_conversation(tmp_path: Path) -> None:
    kept = store(tmp_path / "s.db")
    kept.save(Session("s1"), READER, 0, NOW)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("UPDATE tidegate_sessions SET body = ?", (b'{"turns": 7}',))
    with pytest.raises(StorageError, match="damaged"):
        kept.load("s1", READER, NOW)
    kept.close()


def test_a_database_that_cannot_be_opened_names_it_and_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere.*sessions\.store to none"):
        store(tmp_path / "nowhere" / "s.db")


@pytest.mark.parametrize("extra", ["timeout=abc", "timeout=5", "foo=bar", "mode=ro&uri=true"])
def test_what_follows_the_path_of_a_file_is_refused_by_name(tmp_path: Path, extra: str) -> None:
    with pytest.raises(ConfigError, match=rf"has .*{extra.partition('=')[0]}.* after its '\?'"):
        SqlSessions(f"sqlite:///{tmp_path / 's.db'}?{extra}", 3600.0, 100)
    assert not list(tmp_path.iterdir())


def test_a_password_is_in_no_message() -> None:
    with pytest.raises(StorageError) as told:
        SqlSessions("postgresql://tidegate:hunter2@127.0.0.1:1/none", 3600.0, 10)
    assert "hunter2" not in str(told.value)
    assert "127.0.0.1" in str(told.value)


@pytest.mark.parametrize("url", ["mysql://x/y", "not an address", "postgresql+nothing://x/y"])
def test_another_kind_of_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"sessions\.url"):
        SqlSessions(url, 3600.0, 10)


@pytest.mark.parametrize("url", ["postgresql://u:secret@host:notaport/db", "postgresql://[::1/db"])
def test_an_address_that_cannot_be_taken_apart_is_named_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"sessions\.url") as told:
        SqlSessions(url, 60.0, 5)
    assert "secret" not in str(told.value)
