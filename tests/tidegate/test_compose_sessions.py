"""Settings to the store of conversations."""

from pathlib import Path

import pytest

from domain.errors import ConfigError
from domain.types import Scope, Session
from serving.session_sql import SqlSessions
from serving.sessions import NoSessions
from tidegate.compose_sessions import make_sessions
from tidegate.effective import leaves, shown
from tidegate.loading import load


def test_without_a_word_clients_carry_their_conversations(tmp_path: Path) -> None:
    assert isinstance(make_sessions(load(None, {}, {}, tmp_path).settings), NoSessions)


def test_a_store_without_an_address_is_a_file_in_the_data_folder(tmp_path: Path) -> None:
    settings = load(None, {}, {"sessions.store": "sql", "data_dir": str(tmp_path / "data")}, tmp_path).settings
    store = make_sessions(settings)
    assert isinstance(store, SqlSessions)
    assert store.save(Session("s1"), Scope("t", frozenset({"g"})), 0, 1.0)
    store.close()
    assert (tmp_path / "data" / "sessions.db").is_file()


@pytest.mark.parametrize("url", ["mysql://h/x", "sqlite://", "redis://h", "postgresql://"])
def test_an_address_of_another_kind_is_refused_when_settings_load(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sessions\.url"):
        load(None, {}, {"sessions.url": url}, tmp_path)


def test_turns_that_go_on_are_at_least_those_the_model_sees(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sessions\.turns.*answering\.history_turns"):
        load(None, {}, {"sessions.turns": "4"}, tmp_path)


def test_the_password_in_an_address_is_masked(tmp_path: Path) -> None:
    settings = load(None, {}, {"sessions.url": "postgresql://u:hunter2@h/x"}, tmp_path).settings
    assert "hunter2" not in str([shown(key, value) for key, value in leaves(settings)])
