"""Who moves the pointer, as the ledger has it; and groups as a command line names them."""

import getpass
import socket

from domain.errors import BadRequest


def who() -> str:
    """The operating system's user and machine, `keeper@pier-3`. It says who was logged in and proves nothing."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run under a number without a name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def group_names(text: str) -> frozenset[str]:
    """The groups of an option, comma separated. Raises BadRequest for bytes that are no text: no file keeps those."""
    named = frozenset(name for part in text.split(",") if (name := part.strip()))
    for name in sorted(named):
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise BadRequest(
                f"--groups {name!r} is not UTF-8: set the terminal to it, and name the group again.", "groups"
            )
    return named
