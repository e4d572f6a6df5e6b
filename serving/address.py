"""Is this address free, and if not, whose is it? Asked before anything starts: Ray Serve shares a port in silence."""

import socket
from ipaddress import ip_address
from pathlib import Path

from domain.errors import AddressTaken, ConfigError


def check_free(host: str, port: int) -> None:
    """Nothing, when `host:port` can be bound. Raises AddressTaken naming the port and, where it shows, its owner."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Connections that lately closed may linger on the port without owning it; a listener still refuses this.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError as error:
            raise ConfigError(f"Port {port} may not be opened by this user: choose one from 1024 up.") from error
        except socket.gaierror as error:
            raise ConfigError(f"Host {host!r} is not an address of this machine: use 127.0.0.1 or 0.0.0.0.") from error
        except OSError as error:
            owner = owner_of(port)
            raise AddressTaken(
                f"Port {port} on {host} is taken{f' by {owner}' if owner else ''}: stop it, or choose another port."
            ) from error


def is_loopback(host: str) -> bool:
    """True when only this machine reaches an address; a name is asked for its addresses, all of which must be."""
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host, None)}
        return bool(found) and all(ip_address(address.partition("%")[0]).is_loopback for address in found)
    except (OSError, ValueError):
        return False


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on now, outside the range from which Ray takes its own."""
    for _ in range(100):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            port: int = probe.getsockname()[1]
        if not RAY_WORKER_PORTS[0] <= port <= RAY_WORKER_PORTS[1]:
            return port
    raise ConfigError("No free port was found in 100 tries: close something that listens.")


def free_range(start: int, count: int, step: int = 100, stop: int = 64_000) -> int:
    """The first of `count` neighbouring ports that are all free, looking from `start` upwards."""
    for first in range(start, stop, step):
        if all(_listens_nobody(port) for port in range(first, first + count)):
            return first
    raise ConfigError(f"No {count} neighbouring free ports were found from {start} up: close something that listens.")


def owner_of(port: int) -> str:
    """`name (pid)` of the process listening on `port`, or nothing where the system does not let us see it."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not wanted:
        return ""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in wanted for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
        except OSError:  # not ours to look into, or gone meanwhile
            continue
    return ""


RAY_WORKER_PORTS = (10002, 19999)
_LISTEN = "0A"  # state column of /proc/net/tcp


def _listening_inodes(port: int) -> set[str]:
    inodes: set[str] = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
        except OSError:
            continue
        inodes |= {row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port}
    return inodes


def _listens_nobody(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
