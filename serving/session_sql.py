"""The SessionStore on a database: one row a conversation, in a SQLite file or in PostgreSQL.

A row is found by a digest of tenant, groups and id, so another reader's conversation is not there rather than refused,
and neither ids nor names of readers are written down. Rows expire; what has expired, and the least recent beyond
`max_sessions`, is deleted once a minute by whoever saves next.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from sqlalchemy import (
    Column,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy import exc as sql_errors
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.schema import CreateIndex, CreateTable

from domain.errors import ConfigError, StorageError
from domain.ports import KeptSession
from domain.types import PoolEntry, Role, Scope, Session, Turn

TIDY_EVERY_S = 60.0
WAIT_S = 5  # for a lock, a connection or a statement: answers wait for it

_META = MetaData()
_SESSIONS = Table(
    "tidegate_sessions",
    _META,
    Column("key", String(64), primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
    Column("body", LargeBinary, nullable=False),
)


class SqlSessions:
    """Conversations in the database at `url`, each for `keep_s` seconds after its last turn, `max_sessions` at most.

    Safe for many processes at once: a save that another overtook changes nothing. Raises ConfigError for an address
    that is none, StorageError when the database cannot be reached.
    """

    keeps = True

    def __init__(self, url: str, keep_s: float, max_sessions: int, tidy_every_s: float = TIDY_EVERY_S) -> None:
        self._keep_s, self._max, self._tidy_every_s, self._tidied_at = keep_s, max_sessions, tidy_every_s, 0.0
        try:
            address = make_url(url)
            self._shown = address.render_as_string(hide_password=True)
            if address.get_backend_name() == "sqlite" and address.query:
                # The driver would ignore one that it does not know, and fail as a bug on a value that is none.
                raise ConfigError(
                    f"sessions.url {self._shown} has {', '.join(sorted(address.query))} after its '?', and a SQLite "
                    "file takes none of it: write sqlite:////path/file."
                )
            self._engine = create_engine(address, **_options(address.get_backend_name()))
        except (sql_errors.ArgumentError, sql_errors.NoSuchModuleError, KeyError, ValueError, ImportError) as error:
            raise ConfigError(
                "sessions.url is no address of a SQLite file or a PostgreSQL database: write sqlite:////path/file or "
                "postgresql://user@host/name."
            ) from error
        if address.get_backend_name() == "sqlite":
            event.listen(self._engine, "connect", _many_writers)
        self._create()

    def load(self, session_id: str, scope: Scope, now_s: float) -> KeptSession | None:
        """The conversation, or None: never saved, expired, or another reader's."""
        wanted = (_SESSIONS.c.key == _key(session_id, scope)) & (_SESSIONS.c.expires_at > now_s)
        with self._working("read") as connection:
            row = connection.execute(select(_SESSIONS.c.body, _SESSIONS.c.revision).where(wanted)).first()
        return None if row is None else KeptSession(_session(session_id, row.body), row.revision)

    def save(self, session: Session, scope: Scope, revision: int, now_s: float) -> bool:
        """True when it is saved; False when the row is no longer at `revision`, and then nothing has changed."""
        key, body, until = _key(session.id, scope), _body(session), now_s + self._keep_s
        with self._working("written") as connection:
            if revision == 0:
                connection.execute(delete(_SESSIONS).where(_SESSIONS.c.key == key, _SESSIONS.c.expires_at <= now_s))
                try:
                    with connection.begin_nested():
                        row = {"key": key, "revision": 1, "expires_at": until, "body": body}
                        connection.execute(insert(_SESSIONS).values(row))
                except sql_errors.IntegrityError:
                    return False
            else:
                there = (_SESSIONS.c.key == key) & (_SESSIONS.c.revision == revision)
                changed = {"revision": revision + 1, "expires_at": until, "body": body}
                if connection.execute(update(_SESSIONS).where(there).values(changed)).rowcount == 0:
                    return False
            self._tidy(connection, now_s)
        return True

    def close(self) -> None:
        """Gives its connections back."""
        self._engine.dispose()

    def _tidy(self, connection: Connection, now_s: float) -> None:
        if now_s - self._tidied_at < self._tidy_every_s:
            return
        self._tidied_at = now_s
        connection.execute(delete(_SESSIONS).where(_SESSIONS.c.expires_at <= now_s))
        count = connection.execute(select(func.count()).select_from(_SESSIONS)).scalar_one()
        if count > self._max:
            oldest = select(_SESSIONS.c.key).order_by(_SESSIONS.c.expires_at, _SESSIONS.c.key).limit(count - self._max)
            connection.execute(delete(_SESSIONS).where(_SESSIONS.c.key.in_(oldest.scalar_subquery())))

    def _create(self) -> None:
        """The table, if nobody made it. PostgreSQL can refuse one of two that make it at the same moment."""
        for last in (False, True):
            try:
                with self._working("made") as connection:
                    connection.execute(CreateTable(_SESSIONS, if_not_exists=True))
                    for index in _SESSIONS.indexes:
                        connection.execute(CreateIndex(index, if_not_exists=True))
                return
            except StorageError:
                if last:
                    raise

    @contextmanager
    def _working(self, what: str) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except sql_errors.SQLAlchemyError as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())[:200]
            raise StorageError(
                f"The conversations at {self._shown} cannot be {what} ({reason}): mend the database, or set "
                "sessions.store to none and let clients carry them."
            ) from error


def _options(backend: str) -> dict[str, Any]:  # Any: SQLAlchemy's create_engine
    """What each database needs so that a request never waits for it without end. Raises KeyError for any other."""
    options: dict[str, dict[str, Any]] = {
        "sqlite": {"connect_args": {"timeout": WAIT_S}},
        "postgresql": {
            "pool_pre_ping": True,
            "pool_timeout": WAIT_S,
            "connect_args": {"connect_timeout": WAIT_S, "options": f"-c statement_timeout={WAIT_S * 1000}"},
        },
    }
    return options[backend]


def _many_writers(connection: Any, _: Any) -> None:  # Any: sqlite3's connection, SQLAlchemy's record of it
    """Readers do not wait for the writer; the file is whole after a crash."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _key(session_id: str, scope: Scope) -> str:
    """64 hex digits of reader and id. A length stands before each part, so that no two lists of parts look alike."""
    parts = (scope.tenant, *sorted(scope.groups), session_id)
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def _body(session: Session) -> bytes:
    return orjson.dumps(
        {
            "turns": [[turn.role.value, turn.text] for turn in session.turns],
            "pool": [[entry.chunk_id, entry.joined_turn] for entry in session.pool],
            "version": session.version,
            "earlier": session.earlier,
        }
    )


def _session(session_id: str, body: bytes) -> Session:
    """What `_body` wrote. Raises StorageError for anything else."""
    try:
        told = orjson.loads(body)
        return Session(
            session_id,
            tuple(Turn(Role(role), text) for role, text in told["turns"]),
            tuple(PoolEntry(chunk_id, turn) for chunk_id, turn in told["pool"]),
            told["version"],
            told["earlier"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            "A remembered conversation is damaged: begin a new one, or delete its row in tidegate_sessions."
        ) from error
