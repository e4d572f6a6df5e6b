"""A server as a person starts and ends it: `up`, the curl line, `status`, a second `up`, `down`; and kill -9."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from serving.address import check_free, free_port
from tests.tidegate.test_admitting import LIFT, OIL
from tests.tidegate.tiny import sets, settings, write_corpus
from tidegate import ending, server, starting
from tidegate.console import Code

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl"),
]


@dataclass(frozen=True)
class Home:
    """A person's working directory with a corpus, its questions, and a data folder still to come."""

    folder: Path
    port: int

    @property
    def data_dir(self) -> Path:
        return self.folder / "my data ü"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command, in that directory and with an empty HOME."""
        return subprocess.run(self.command(*words), **self.surroundings(), capture_output=True, text=True, check=False)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The same, not waited for."""
        return subprocess.Popen(self.command(*words), **self.surroundings(), stderr=subprocess.DEVNULL, text=True)

    def command(self, *words: str) -> list[str]:
        tidegate = Path(sys.executable).with_name("tidegate")  # not -m: it would import from the working directory
        return [str(tidegate), *words, *sets(self.data_dir, serving__port=str(self.port))]

    def surroundings(self) -> dict[str, object]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")}
        return {"cwd": self.folder, "env": env | {"HOME": str(self.folder / "home")}}

    @property
    def there(self) -> server.Server | None:
        return server.recorded(settings(self.data_dir))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("a person's folder ü")
    write_corpus(folder / "corpus")
    (folder / "asked.jsonl").write_text(OIL + LIFT)
    (folder / "home").mkdir()
    for name in ("eval", "domain", "serving"):  # names of ours, which a person may well use too
        (folder / f"{name}.py").write_text("raise RuntimeError('not the module that was meant')")
    whole = Home(folder, free_port())
    yield whole
    if there := whole.there:
        ending.end(settings(whole.data_dir), there)


def marked(mark: str) -> list[psutil.Process]:
    """The processes that a server has started."""
    return [process for process in psutil.process_iter() if ending._mark_of(process) == mark]


def test_from_up_to_down(home: Home) -> None:
    # Two questions prove nothing, and say so: whoever begins with as few must want it.
    done = home.run("up", "corpus", "--questions", "asked.jsonl", "--force", "--reason", "two questions to begin with")
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    url = f"http://127.0.0.1:{home.port}"
    assert f"at {url}\n" in done.stdout

    line = next(line for line in done.stdout.splitlines() if line.strip().startswith("curl "))
    replied = subprocess.run(["sh", "-c", line], capture_output=True, timeout=60, check=True)
    answer = json.loads(replied.stdout)
    assert answer["status"] == "complete"
    assert answer["citations"]

    there = home.there
    assert there is not None
    status = home.run("status")
    assert (status.returncode, status.stdout.splitlines()[0]) == (0, f"{url} (process {there.pid}): ready")

    again = home.run("up", "corpus", "--questions", "asked.jsonl")
    assert again.returncode == Code.REFUSED
    assert f"is already served at {url} by process {there.pid}" in again.stderr
    assert home.run("status").returncode == 0

    begun = marked(there.mark)
    assert begun
    down = home.run("down")
    assert (down.returncode, down.stdout) == (0, f"stopped {url}\n")
    assert not any(process.is_running() for process in begun)
    assert not Path(there.folder).exists()
    assert home.there is None
    check_free("127.0.0.1", home.port)
    assert home.run("status").returncode == Code.REFUSED
    assert home.run("down").stdout == "nothing is running here\n"


def test_what_a_killed_server_leaves_behind_is_ended_by_down(home: Home) -> None:
    child = home.start("serve")
    try:
        deadline = time.monotonic() + starting.START_S
        while not ((there := home.there) and there.folder and there.ready()[0]):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -signal.SIGKILL
    assert home.run("status").returncode == Code.REFUSED
    down = home.run("down")
    assert (down.returncode, "cleared up" in down.stdout) == (0, True)
    assert marked(there.mark) == []
    assert not Path(there.folder).exists()
    check_free("127.0.0.1", home.port)
