"""Who moves the pointer, as the ledger has it."""

import getpass
import socket


def who() -> str:
    """The operating system's user and machine, `keeper@pier-3`. It says who was logged in and proves nothing."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run under a number without a name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
