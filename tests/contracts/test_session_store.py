"""What every SessionStore promises: the one that keeps nothing, a SQLite file, and PostgreSQL where it is installed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from domain.ports import SessionStore
from domain.types import PoolEntry, Role, Scope, Session, Turn
from serving.session_sql import SqlSessions
from serving.sessions import NoSessions
from tests import postgres

HOUR = 3600.0
NOW = 1_800_000_000.0
READER = Scope("harbour", frozenset({"public", "staff"}))
TURNS = (Turn(Role.USER, "Wie heißt 鲁特琴?\n"), Turn(Role.ASSISTANT, "So [S1]. \u2028 \N{LOBSTER}"))
Open = Callable[[], SessionStore]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if reason := postgres.why_not():
        pytest.skip(reason)
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["none", "sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same store once more, as another gateway does."""
    if request.param == "none":
        yield NoSessions
        return
    url = request.getfixturevalue("server") if request.param == "postgresql" else f"sqlite:///{tmp_path / 's.db'}"
    stores: list[SqlSessions] = []

    def open_store() -> SqlSessions:
        stores.append(SqlSessions(url, HOUR, max_sessions=1000, tidy_every_s=0.0))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def conversation(**changes: object) -> Session:
    pool = (PoolEntry("tide#0-aa", 1), PoolEntry("pumpe-ü#3-ff", 2))
    return replace(Session(uuid4().hex, TURNS, pool, "v1", 3), **changes)  # type: ignore[arg-type]


def test_what_was_saved_comes_back_whole_or_the_store_keeps_nothing(opened: Open) -> None:
    store, session = opened(), conversation()
    assert store.save(session, READER, 0, NOW)
    kept = opened().load(session.id, READER, NOW + 1)
    assert (kept.session, kept.revision) == (session, 1) if store.keeps and kept else kept is None
    assert (kept is not None) == store.keeps


@pytest.mark.parametrize(
    "other",
    [
        Scope("elsewhere", READER.groups),
        Scope("harbour", frozenset({"public"})),
        Scope("harbour", frozenset({"public", "staff", "finance"})),
        Scope("harbour", frozenset({"public,staff"})),
        Scope("harbour", frozenset()),
        Scope("harbour6:public", frozenset({"staff"})),
    ],
)
def test_another_reader_finds_nothing_and_changes_nothing(opened: Open, other: Scope) -> None:
    store, mine = opened(), conversation()
    store.save(mine, READER, 0, NOW)
    assert store.load(mine.id, other, NOW) is None
    assert store.save(replace(mine, turns=()), other, 0, NOW)  # as for an id that nobody ever used
    kept = store.load(mine.id, READER, NOW)
    assert kept is None or kept.session == mine


def test_a_conversation_expires_after_its_last_turn_and_its_id_is_free_again(opened: Open) -> None:
    store, session = opened(), conversation()
    store.save(session, READER, 0, NOW)
    store.save(session, READER, 1, NOW + HOUR - 1)  # renewed
    assert (store.load(session.id, READER, NOW + HOUR + 1) is not None) == store.keeps
    assert store.load(session.id, READER, NOW + 2 * HOUR) is None
    assert store.save(session, READER, 0, NOW + 2 * HOUR)


def test_of_two_requests_at_once_only_the_first_to_end_is_remembered(opened: Open) -> None:
    store, other, session = opened(), opened(), conversation()
    store.save(session, READER, 0, NOW)
    first, second = replace(session, earlier=4), replace(session, earlier=5)
    assert store.save(first, READER, 1, NOW)
    assert other.save(second, READER, 1, NOW) == (not store.keeps)
    assert other.save(second, READER, 0, NOW) == (not store.keeps)
    kept = other.load(session.id, READER, NOW)
    assert kept is None or (kept.session, kept.revision) == (first, 2)


def test_saves_from_many_threads_and_gateways_lose_none_and_win_once(opened: Open) -> None:
    store, other, session = opened(), opened(), conversation()
    with ThreadPoolExecutor(4) as threads:
        saved = list(threads.map(lambda i: (store, other)[i % 2].save(session, READER, 0, NOW), range(8)))
    assert sum(saved) == (1 if store.keeps else 8)
