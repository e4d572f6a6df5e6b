"""A PostgreSQL of our own from installed binaries: in a folder of its own, on a Unix socket, gone after its tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "tidegate"


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl: on the PATH, or where Debian puts it; None where there is none."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return folders[-1].parent if folders else None


def why_not() -> str:
    """Why no server can be started here; empty when one can."""
    if binaries() is None:
        return "no PostgreSQL is installed: apt-get install postgresql"
    if os.getuid() == 0 and subprocess.run(["id", "-u", "postgres"], capture_output=True, check=False).returncode:
        return "PostgreSQL does not run as root, and there is no user postgres to run it"
    return ""


@contextmanager
def server() -> Iterator[str]:
    """The address of a server that is running. It does not flush to disk: it lives for one test module."""
    folder = binaries()
    if folder is None:
        raise RuntimeError(why_not())
    home = Path(tempfile.mkdtemp(prefix="tidegate-pg-"))  # short: a socket's path has at most 107 characters
    as_root = os.getuid() == 0

    def run(*words: str) -> None:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
            user="postgres" if as_root else None,
            group="postgres" if as_root else None,
            extra_groups=[] if as_root else None,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise RuntimeError(f"{Path(words[0]).name} failed: {done.stdout[-500:]} {done.stderr[-500:]}")

    try:
        if as_root:
            shutil.chown(home, "postgres", "postgres")
        data, ctl = str(home / "data"), str(folder / "pg_ctl")
        run(str(folder / "initdb"), "-D", data, "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        switches = f"-k {home} -c listen_addresses='' -c fsync=off -c max_connections=20 -c shared_buffers=16MB"
        run(ctl, "-D", data, "-o", switches, "-l", str(home / "log"), "-w", "-t", "60", "start")
        try:
            yield f"postgresql://{USER}@/postgres?host={home}"
        finally:
            run(ctl, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
