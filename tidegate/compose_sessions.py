"""Settings to what remembers conversations. Part of compose.py."""

from domain.ports import SessionStore
from serving.sessions import NoSessions
from tidegate.settings import Settings


def make_sessions(settings: Settings) -> SessionStore:
    """The store of conversations. Raises StorageError for a database that cannot be reached."""
    chosen = settings.sessions
    if chosen.store == "none":
        return NoSessions()
    from serving.session_sql import SqlSessions

    if chosen.url is None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    url = chosen.url or f"sqlite:///{settings.data_dir / 'sessions.db'}"
    return SqlSessions(url, chosen.keep_hours * 3600, chosen.max_kept)
