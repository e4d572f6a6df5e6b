"""The one server of a data folder: its record, its lock, what belongs to it, and what must never be ended."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from domain.errors import AddressTaken, NotReady, StorageError
from serving.address import free_port
from tests.tidegate.tiny import served, sets, settings
from tests.waiting import wait_until_main_is_in
from tidegate import ending, server, starting
from tidegate.cli import main
from tidegate.console import Code
from tidegate.server import MARK, Server
from tidegate.settings import Settings

Capture = pytest.CaptureFixture[str]
SLEEP = "import time; time.sleep(100)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); {SLEEP}"


@contextmanager
def process(code: str = SLEEP, mark: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps, ended afterwards whatever happens."""
    env = {**os.environ, MARK: mark} if mark else None
    child = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
    if code == DEAF and child.stdout:
        child.stdout.readline()
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether it ends within a few seconds."""
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.fixture
def ours(here: Path) -> Settings:
    """Settings over an empty data folder."""
    (here / "data").mkdir()
    return settings(here / "data")


def write(ours: Settings, there: Server) -> None:
    server.record_path(ours).write_text(json.dumps(asdict(there)))


def gone(url: str = "http://127.0.0.1:1", folder: str = "") -> Server:
    """A server whose process has ended."""
    with process() as child:
        return Server.of(child.pid, url, folder)


# ---------------------------------------------------------------------------------------------- the record


def test_without_a_record_nothing_runs(ours: Settings) -> None:
    assert server.running(ours) is None


def test_a_recorded_process_is_found_again(ours: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "")
    server.record(ours, "http://127.0.0.1:1", "/tmp/x")
    there = server.running(ours)
    assert there is not None
    assert (there.pid, there.url, there.folder) == (os.getpid(), "http://127.0.0.1:1", "/tmp/x")
    assert os.environ[MARK] == there.mark
    server.forget(ours, os.getpid())
    assert list(ours.data_dir.iterdir()) == []


def test_forgetting_leaves_the_record_of_another_process(ours: Settings) -> None:
    write(ours, Server(1, 0.0, "http://127.0.0.1:1"))
    server.forget(ours, os.getpid())
    assert server.record_path(ours).exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"pid": "x", "started": 0, "url": "", "folder": ""}',
        '{"pid": -1, "started": 0, "url": "", "folder": ""}',
        "\x00",
    ],
)
def test_a_damaged_record_is_an_error_that_names_it(ours: Settings, capsys: Capture, text: str) -> None:
    server.record_path(ours).write_text(text)
    for verb in ("status", "down"):
        assert main([verb, *sets(ours.data_dir)]) == Code.REFUSED
        assert f"error: {server.record_path(ours)} cannot be read" in capsys.readouterr().err


def test_a_recycled_process_id_is_not_ours(ours: Settings) -> None:
    with process() as child:
        there = Server.of(child.pid, "http://127.0.0.1:1")
        assert there.alive
        assert not replace(there, started=there.started - 60).alive


# ---------------------------------------------------------------------------------------------- one at a time


def test_a_second_start_is_refused_with_address_and_process(ours: Settings) -> None:
    with process() as child:
        write(ours, Server.of(child.pid, "http://127.0.0.1:8123"))
        with pytest.raises(AddressTaken, match=rf"http://127\.0\.0\.1:8123 by process {child.pid}: .*tidegate down"):
            starting.refuse_second(ours)
        with pytest.raises(AddressTaken), starting.claim(ours):
            pass


def test_of_two_who_start_at_the_same_time_one_is_refused(ours: Settings) -> None:
    with (
        starting.claim(ours),
        pytest.raises(AddressTaken, match="Another process is starting a server"),
        starting.claim(ours),
    ):
        pass
    with starting.claim(ours):
        pass


def test_a_starter_that_is_killed_lets_go(ours: Settings) -> None:
    hold = "from tests.tidegate.tiny import settings; from tidegate.starting import claim; from pathlib import Path\n"
    hold += f"with claim(settings(Path({str(ours.data_dir)!r}))): print(flush=True); {SLEEP}"
    child = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert child.stdout
    child.stdout.readline()
    with pytest.raises(AddressTaken), starting.claim(ours):
        pass
    child.kill()
    child.communicate()
    with starting.claim(ours):
        pass


@pytest.mark.parametrize("blocked", ["data", "data/server.lock"])
def test_a_folder_that_cannot_be_written_is_named(here: Path, blocked: str) -> None:
    if blocked == "data":
        (here / "data").write_text("")
    else:
        (here / "data" / "server.lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=f"Cannot write {here / 'data'}"), starting.claim(settings(here / "data")):
        pass


# ---------------------------------------------------------------------------------------------- down and status


def test_down_without_a_server_says_so(here: Path, capsys: Capture) -> None:
    assert main(["down", *sets(here / "data")]) == 0
    assert capsys.readouterr().out == "nothing is running here\n"
    assert not (here / "data").exists()


def test_down_ends_the_recorded_process_and_what_it_started(ours: Settings, capsys: Capture) -> None:
    with process() as child:
        there = Server.of(child.pid, "http://127.0.0.1:8123")
        write(ours, there)
        with process(mark=there.mark) as left_behind, process() as somebody, process(mark="1 2.0") as other:
            assert main(["down", *sets(ours.data_dir)]) == 0
            assert ended(child)
            assert ended(left_behind)
            assert somebody.poll() is None
            assert other.poll() is None
    assert capsys.readouterr().out == "stopped http://127.0.0.1:8123\n"
    assert not server.record_path(ours).exists()


def test_down_after_the_server_was_killed_clears_up_what_it_left(ours: Settings, here: Path, capsys: Capture) -> None:
    folder = here / "tidegate-abc"
    folder.mkdir()
    (folder / "token").write_text("")
    there = gone(folder=str(folder))
    write(ours, there)
    with process(mark=there.mark) as left_behind:
        assert main(["status", *sets(ours.data_dir)]) == Code.REFUSED
        assert f"not running: process {there.pid} is gone" in capsys.readouterr().out
        assert main(["down", *sets(ours.data_dir)]) == 0
        assert ended(left_behind)
    assert "was no longer running; what it left behind is cleared up" in capsys.readouterr().out
    assert not folder.exists()
    assert not server.record_path(ours).exists()


def test_down_never_ends_a_process_that_only_has_the_same_id(ours: Settings) -> None:
    with process() as child:
        there = Server.of(child.pid, "http://127.0.0.1:8123")
        write(ours, replace(there, started=there.started - 60))
        assert main(["down", *sets(ours.data_dir)]) == 0
        time.sleep(0.3)
        assert child.poll() is None


def test_a_folder_that_is_not_a_servers_own_is_not_removed(ours: Settings, here: Path) -> None:
    (here / "letters").mkdir()
    (here / "tidegate-letters").mkdir()
    for name in ("letters", "tidegate-letters"):
        write(ours, gone(folder=str(here / name)))
        assert main(["down", *sets(ours.data_dir)]) == 0
        assert (here / name).exists()


def test_a_server_that_does_not_listen_is_killed_in_the_end(ours: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "STOP_S", 0.2)
    with process(DEAF) as child:
        ending.end(ours, Server.of(child.pid, ""))
        assert ended(child)


def test_the_next_start_clears_up_after_a_server_that_was_killed(ours: Settings) -> None:
    there = gone()
    write(ours, there)
    with process(mark=there.mark) as left_behind:
        starting.refuse_second(ours)
        assert ended(left_behind)
    assert not server.record_path(ours).exists()


def test_a_server_whose_starter_takes_no_note_of_its_end_has_ended(ours: Settings) -> None:
    starts = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}]).pid, flush=True); "
    with process(starts + SLEEP) as starter:
        assert starter.stdout
        there = Server.of(int(starter.stdout.readline()), "http://127.0.0.1:1")
        ending.end(ours, there)
        assert not there.alive


def test_status_without_a_server_ends_with_1_and_names_the_versions(here: Path, capsys: Capture) -> None:
    data_dir, version = served(here)
    capsys.readouterr()
    assert main(["status", *sets(data_dir)]) == Code.REFUSED
    assert capsys.readouterr().out == f"not running\nstable {version}, canary none, previous none\n"
    assert main(["status", "--json", *sets(data_dir)]) == Code.REFUSED
    told = json.loads(capsys.readouterr().out)
    assert (told["running"], told["ready"], told["pid"], told["url"]) == (False, False, None, None)
    assert told["rollout"]["stable"] == version


# ---------------------------------------------------------------------------------------------- ready or not


class Replies(http.server.BaseHTTPRequestHandler):
    """Answers every request with `status` and `body`."""

    status, body = 200, b"{}"

    def do_GET(self) -> None:
        if not self.status:
            self.wfile.write(b"what?\n")  # no HTTP at all
            return
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def answering() -> Iterator[Callable[[int, bytes], Server]]:
    """A function: this process as a server which answers with that status and body."""
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replies)
    threading.Thread(target=listener.serve_forever, daemon=True).start()

    def answer(status: int, body: bytes) -> Server:
        Replies.status, Replies.body = status, body
        return Server.of(os.getpid(), f"http://127.0.0.1:{listener.server_port}")

    yield answer
    listener.shutdown()
    listener.server_close()


@pytest.mark.parametrize(
    ("status", "body", "ready"),
    [
        (200, b"{}", (True, "")),
        (503, b'{"error": {"message": "The retriever starts."}}', (False, "The retriever starts.")),
        (503, b"<html>", (False, "HTTP 503")),
        (404, b"[]", (False, "HTTP 404")),
        (0, b"", (False, "what?\n")),
    ],
)
def test_ready_is_what_the_server_says_of_itself(
    answering: Callable[[int, bytes], Server],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: bytes,
    ready: tuple[bool, str],
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # a proxy must not come between
    assert answering(status, body).ready() == ready


def test_a_server_that_nobody_reaches_is_not_ready() -> None:
    ready, why = Server.of(os.getpid(), f"http://127.0.0.1:{free_port()}").ready()
    assert not ready
    assert "refused" in why


def test_status_of_a_ready_server_ends_with_0(
    ours: Settings, answering: Callable[[int, bytes], Server], capsys: Capture
) -> None:
    there = answering(200, b"{}")
    write(ours, there)
    assert main(["status", *sets(ours.data_dir)]) == 0
    assert capsys.readouterr().out.startswith(f"{there.url} (process {there.pid}): ready\n")
    answering(503, b'{"error": {"message": "The retriever starts."}}')
    assert main(["status", *sets(ours.data_dir)]) == Code.REFUSED
    assert capsys.readouterr().out.startswith(
        f"{there.url} (process {there.pid}): not ready: it is starting (The retriever starts.)\n"
    )


# ---------------------------------------------------------------------------------------------- a start that fails


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "serving.port=99999"], "The server did not start: --set: serving.port: got 99999"),
        (["--set", "a=1", "--set", "b=2"], "2 problems in the settings:\n  --set: a: is not"),
        ([], "No index version is admitted yet"),
    ],
)
def test_a_start_that_fails_tells_why_and_leaves_nothing(ours: Settings, arguments: list[str], said: str) -> None:
    before = children()
    with pytest.raises(NotReady) as caught:
        starting.launch(ours, [*sets(ours.data_dir), *arguments], lambda _: None)
    assert said in str(caught.value)
    assert children() == before
    assert [path.name for path in ours.data_dir.iterdir()] == ["server.log"]


def test_a_port_taken_between_check_and_start_is_told_by_number(here: Path) -> None:
    data_dir, _ = served(here)
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replies)
    words = [*sets(data_dir), "--port", str(listener.server_port)]
    with listener, pytest.raises(NotReady, match=f"Port {listener.server_port} on 127.0.0.1 is taken by"):
        starting.launch(settings(data_dir), words, lambda _: None)
    assert not server.record_path(settings(data_dir)).exists()


@pytest.fixture
def at_a_terminal() -> Iterator[None]:
    """Ctrl-C interrupts, also where a shell started the tests in the background, which leaves it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("at_a_terminal")
def test_an_interrupt_while_a_server_starts_ends_it(ours: Settings) -> None:
    before, begun = children(), list[int]()

    def interrupt() -> None:  # soon after there is a process: it has no version to serve and ends by itself
        wait_until_main_is_in(starting.launch, knows="deadline")  # earlier, nobody knows of the process yet
        begun.extend(children() - before)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        starting.launch(ours, sets(ours.data_dir), lambda _: None)
    assert begun
    assert not children() & set(begun)


def test_an_impatient_second_interrupt_does_not_stop_the_clearing_up() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ending.undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_version_of_another_encoder_is_refused_before_anything_starts(here: Path, capsys: Capture) -> None:
    data_dir, version = served(here)
    capsys.readouterr()
    words = [*sets(data_dir, embedding__dimensions="128"), "--port", str(free_port())]
    assert main(["serve", *words]) == Code.REFUSED
    assert f"Index {version} was built with embedder 'hashing-256-1'" in capsys.readouterr().err
    assert not server.record_path(settings(data_dir)).exists()
