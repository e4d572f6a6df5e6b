"""The key that moves the pointer over HTTP: made once beside the versions, or in a file of the operator's own."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import TYPE_CHECKING

from domain.errors import ConfigError
from retrieval.disk import cannot_write

if TYPE_CHECKING:
    from tidegate.settings import Settings

FILE = "admin.key"
SHORTEST = 16  # characters: below that a key can be guessed over the network


def key_path(settings: "Settings") -> Path:
    """Where the key is, or will be."""
    return settings.access.admin_key_file or settings.data_dir / FILE


def make_key(settings: "Settings") -> Path:
    """Where the key is, made now if none was named and there is none yet.

    Raises ConfigError for one that cannot be used, StorageError when it cannot be written.
    """
    path = key_path(settings)
    if settings.access.admin_key_file is None and not path.exists():
        fresh = path.with_name(f".{path.name}.{token_hex(8)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(f"{token_urlsafe(32)}\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # somebody else made it at the same moment
                os.link(fresh, path)  # whole or not at all, and never over one that is there
        except OSError as error:
            raise cannot_write(path, error) from error
        finally:
            with suppress(OSError):
                fresh.unlink()
    read_key(settings)
    return path


def read_key(settings: "Settings") -> str | None:
    """The key; None when none was named and none made, so that nobody moves the pointer over HTTP.

    Raises ConfigError for a file that was named and is not there, and for a key that is none. A key that everybody on
    the machine may read is refused, not warned about: a warning at night is read by nobody, and the way out is one
    command.
    """
    path = key_path(settings)
    try:
        mode = path.stat().st_mode
        text = path.read_text("ascii").strip()
    except FileNotFoundError as error:
        if settings.access.admin_key_file is None:
            return None
        raise ConfigError(
            f"access.admin_key_file {path} does not exist: make it, or remove the setting and one is made in data_dir."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not ASCII text"
        raise ConfigError(f"The admin key {path} cannot be read ({reason}): mend it, or name another file.") from error
    if mode & stat.S_IRWXO:
        raise ConfigError(
            f"The admin key {path} is open to every user of this machine (mode {stat.S_IMODE(mode):04o}): "
            f"chmod 600 {path}, or in a mounted secret set defaultMode to 0440."
        )
    if len(text) < SHORTEST or not text.isprintable() or " " in text:
        raise ConfigError(
            f"The admin key {path} is {'empty' if not text else 'no key'}: wanted are at least {SHORTEST} characters "
            "without blanks on one line."
        )
    return text
