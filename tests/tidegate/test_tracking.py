"""Trouble with the tracker ends in time, loses nothing, decides nothing, and shows nobody what they may not see."""

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from domain.errors import ConfigError
from domain.evaluation import Evaluation, Row
from domain.releases import Binding, Decision, IndexVersion, Move, Outcome, Rollout, Verb, Verdict
from eval.tracking import sqlite_uri
from tests.eval.evaluations import evaluation
from tests.fakes import MemoryRegistry
from tidegate import tracking
from tidegate.sending import GAVE_UP, Job
from tidegate.settings import Settings
from tidegate.spool import Spool
from tidegate.tracking import candidate, follow, prepare, resend, run_of, track, untracked

BOUND_S = 600  # a test's own bound: speed is not what is asserted
MANY = 1500
in_mlflow = [
    pytest.mark.slow,
    pytest.mark.timeout(BOUND_S),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inside MLflow
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # MLflow keeps its connections until the process ends
]


def settings(folder: Path, **chosen: object) -> Settings:
    return Settings.model_validate({"data_dir": folder, "tracking": {"timeout_s": 300.0, **chosen}})


def statuses(folder: Path) -> list[str]:
    """Of the evaluations, past whoever still writes: MLflow's own client gives up on a locked database after 5 s."""
    query = "SELECT status FROM runs JOIN tags USING (run_uuid) WHERE key = 'tidegate.kind' AND value = 'evaluation'"
    with closing(sqlite3.connect(folder / "mlflow.db", timeout=BOUND_S)) as looking:
        return [status for (status,) in looking.execute(query)]


def runs(folder: Path) -> list[Any]:
    """The evaluations in the database of a data folder."""
    from mlflow import MlflowClient

    uri = sqlite_uri(folder / "mlflow.db")
    client = MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("tidegate")
    return list(client.search_runs([experiment.experiment_id], "tags.`tidegate.kind` = 'evaluation'"))


@contextmanager
def answering(status: int) -> Iterator[str]:
    """A server on the loopback interface that answers everything with `status`; 0 is a server that never answers."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if status == 0:
                ended.wait(BOUND_S)
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://anna:s3cret@127.0.0.1:{server.server_port}"
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


# ------------------------------------------------------------------------------------------ without a tracker


def test_tracking_that_is_off_writes_nothing(tmp_path: Path) -> None:
    off = settings(tmp_path, enabled=False)
    assert track(off, evaluation()) == tracking.Tracked()
    follow(off)
    prepare(off)
    assert resend(off).note == "Nothing is sent: tracking.enabled is false."
    assert list(tmp_path.iterdir()) == []


def test_with_nothing_waiting_nothing_is_sent(tmp_path: Path) -> None:
    assert resend(settings(tmp_path)) == tracking.Resent()
    assert not (tmp_path / "mlflow.db").exists()


def test_only_where_tracking_is_required_a_decision_needs_a_run(tmp_path: Path) -> None:
    assert untracked(settings(tmp_path), "") == ""
    assert untracked(settings(tmp_path, required=True), "run-1") == ""
    assert "tidegate evaluate --resend" in untracked(settings(tmp_path, required=True), "")
    assert "change one of them" in untracked(settings(tmp_path, required=True, enabled=False), "")


def test_what_cannot_be_cleaned_of_terms_is_not_written(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    answering = chosen.answering.model_copy(update={"forbidden_terms_file": tmp_path / "gone.txt"})
    with pytest.raises(ConfigError, match=r"gone\.txt cannot be read"):
        track(chosen.model_copy(update={"answering": answering}), evaluation())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where a folder is wanted")
    told = track(settings(tmp_path / "data"), evaluation())
    assert told.run_id == ""
    assert f"{tmp_path / 'data' / 'tracking'} (Not a directory)" in told.note


class TestCandidate:
    """v1 is stable; v2 and v3 were decided about, v3 last."""

    def registry(self, *moves: Move, decided: str = "v2 v3") -> MemoryRegistry:
        registry = MemoryRegistry()
        for version in ("v1", "v2", "v3", "v4"):
            registry.publish(Path(), IndexVersion(version, None, "c", "a", "e", 1, 1, "2026-01-31T12:00:00+00:00"))
        for minute, version in enumerate(decided.split()):
            verdicts = (Verdict("g", Outcome.PASS, ""),)
            at = f"2026-01-31T12:{minute:02d}:00.000+00:00"
            registry.record(Decision(Binding(version, "d", "s", "g", "c"), verdicts, "", at))
        for move in moves:
            registry.move(move)
        return registry

    def move(self, before: Rollout, after: Rollout, at: str) -> Move:
        return Move(Verb.PROMOTE, at, "me", before, after)

    def test_is_the_version_that_was_decided_about_last(self) -> None:
        assert candidate(self.registry()) == "v3"
        assert candidate(self.registry(decided="v3 v2")) == "v2"
        assert candidate(self.registry(decided="")) is None

    def test_is_not_one_that_people_get(self) -> None:
        one = Rollout("v3", revision=1)
        registry = self.registry(self.move(Rollout(), one, "2026-01-31T12:05:00.000+00:00"))
        assert candidate(registry) == "v2"

    def test_is_not_one_that_was_turned_back_until_it_is_decided_about_again(self) -> None:
        first, second = Rollout("v1", revision=1), Rollout("v1", "v3", 0.05, None, 2, 2)
        moves = (
            self.move(Rollout(), first, "2026-01-31T12:05:00.000+00:00"),
            self.move(first, second, "2026-01-31T12:06:00.000+00:00"),
            self.move(second, Rollout("v1", revision=3), "2026-01-31T12:07:00.000+00:00"),
        )
        registry = self.registry(*moves)
        assert candidate(registry) == "v2"
        again = Decision(Binding("v3", "d", "s", "g", "c"), (), "", "2026-01-31T12:08:00.000+00:00")
        registry.record(again)
        assert candidate(registry) == "v3"


# ------------------------------------------------------------------------------------------ with one


class TestTrouble:
    pytestmark = in_mlflow

    @pytest.fixture(autouse=True)
    def _store(self, tmp_path: Path, make_database: Callable[[Path], str]) -> None:
        make_database(tmp_path)
        self.folder, self.settings = tmp_path, settings(tmp_path)

    def waiting(self) -> int:
        return len(Spool(self.folder / "tracking").waiting())

    @pytest.mark.slow
    def test_an_evaluation_becomes_a_run_and_nothing_waits(self) -> None:
        told = track(self.settings, evaluation())
        assert told.note == ""
        (run,) = runs(self.folder)
        assert run.info.run_id == told.run_id == run_of(self.settings, evaluation().id)
        assert self.waiting() == 0

    @pytest.mark.slow
    @pytest.mark.parametrize("status", [0, 500])
    def test_a_server_that_does_not_help_is_named_and_its_evaluations_are_sent_later(self, status: int) -> None:
        with answering(status) as uri:
            told = track(settings(self.folder, uri=uri, timeout_s=30.0), evaluation())
        assert told.run_id == ""
        assert uri.replace("anna:s3cret", "********") in told.note
        assert "tidegate evaluate --resend" in told.note
        assert "s3cret" not in told.note
        assert self.waiting() == 1
        assert resend(self.settings) == tracking.Resent(sent=1, failed=0)
        assert len(runs(self.folder)) == 1
        assert run_of(self.settings, evaluation().id)

    @pytest.mark.slow
    def test_a_closed_port_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        told = resend(settings(self.folder, uri=f"http://127.0.0.1:{port}"))
        assert told == tracking.Resent()  # nothing waits, so nobody is asked
        noted = track(settings(self.folder, uri=f"http://127.0.0.1:{port}", timeout_s=300.0), evaluation())
        assert f"The experiment tracker at http://127.0.0.1:{port} " in noted.note
        again = resend(settings(self.folder, uri=f"http://127.0.0.1:{port}", timeout_s=300.0))
        assert (again.sent, again.failed) == (0, 1)
        assert f"127.0.0.1:{port}" in again.note

    @pytest.mark.slow
    def test_what_was_sent_before_a_crash_is_not_a_second_run(self) -> None:
        first = track(self.settings, evaluation()).run_id
        (self.folder / "tracking" / "sent" / f"{evaluation().id}.json").unlink()  # killed before it was noted down
        Spool(self.folder / "tracking").keep(evaluation())
        assert resend(self.settings).sent == 1
        assert [run.info.run_id for run in runs(self.folder)] == [first]

    @pytest.mark.slow
    def test_a_damaged_evaluation_is_named_and_holds_up_no_other(self) -> None:
        spool = Spool(self.folder / "tracking")
        (spool.keep(evaluation("v1")) / "evaluation.json").write_text("{")
        spool.keep(evaluation("v2"))
        told = resend(self.settings)
        assert (told.sent, told.failed) == (1, 1)
        assert "evaluation.json cannot be read (it is damaged)" in told.note

    @pytest.mark.slow
    def test_a_killed_sender_leaves_nothing_running_for_ever(self) -> None:
        """Killed while its run says RUNNING: the next sending finishes that very run."""
        with self.sender_in_the_middle() as sender:
            sender.kill()
            sender.wait(BOUND_S)
        (run,) = runs(self.folder)
        assert run.info.status == "RUNNING"
        assert resend(self.settings).sent == 1
        (whole,) = runs(self.folder)
        assert (whole.info.run_id, whole.info.status) == (run.info.run_id, "FINISHED")
        assert len(whole.data.metrics) == MANY * 4 + 1, "and what a thousand answers cost"

    @pytest.mark.slow
    def test_a_sender_that_is_asked_to_end_marks_its_run_as_killed(self) -> None:
        with self.sender_in_the_middle() as sender:
            sender.terminate()  # what a Ctrl-C becomes, and the end of its time
            assert sender.wait(BOUND_S) == GAVE_UP
        assert [run.info.status for run in runs(self.folder)] == ["KILLED"]
        assert self.waiting() == 1

    @pytest.mark.slow
    def test_a_ctrl_c_in_the_middle_marks_the_run_as_killed_and_keeps_the_evaluation(self) -> None:
        self.keep_much()
        # A shell starts what runs in the background with Ctrl-C ignored, and that is handed down; a person's is not.
        code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        code += "from pathlib import Path; from tests.tidegate.test_tracking import settings; "
        code += "from tidegate.tracking import resend; resend(settings(Path(sys.argv[1])))"
        with self.once_begun([sys.executable, "-c", code, str(self.folder)], "") as person:
            person.send_signal(signal.SIGINT)
            assert person.wait(BOUND_S) == -signal.SIGINT
        deadline = time.monotonic() + BOUND_S
        while statuses(self.folder) == ["RUNNING"] and time.monotonic() < deadline:
            time.sleep(0.5)
        assert statuses(self.folder) == ["KILLED"]
        assert self.waiting() == 1

    def keep_much(self) -> None:
        """An evaluation waits that has so many numbers that it takes seconds to write them."""
        number = evaluation().metrics["recall@6"][""]
        slices = {f"source={i}": number for i in range(MANY)}
        Spool(self.folder / "tracking").keep(evaluation(metrics={"recall@6": slices}))

    @contextmanager
    def sender_in_the_middle(self) -> Iterator["subprocess.Popen[str]"]:
        """The process that sends, with a run that it has begun."""
        self.keep_much()
        root = str(self.folder / "tracking")
        database = self.folder / "mlflow.db"
        job = Job(sqlite_uri(database), "tidegate", str(self.folder / "mlartifacts"), root, "", float(BOUND_S))
        with self.once_begun([sys.executable, "-P", "-m", "tidegate.sending"], json.dumps(asdict(job))) as sender:
            yield sender

    @contextmanager
    def once_begun(self, command: list[str], given: str) -> Iterator["subprocess.Popen[str]"]:
        """A process, as soon as there is a run in the database."""
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdin is not None
            process.stdin.write(given)
            process.stdin.close()
            with closing(sqlite3.connect(self.folder / "mlflow.db")) as looking:
                while not looking.execute("SELECT 1 FROM tags WHERE key = 'tidegate.evaluation'").fetchone():
                    assert process.poll() is None
                    time.sleep(0.01)
            yield process

    @pytest.mark.slow
    def test_the_aliases_come_with_the_first_evaluation_and_follow_in_the_background(self) -> None:
        from mlflow import MlflowClient

        from tidegate.compose import make_registry

        registry = make_registry(self.settings)
        verdicts = (Verdict("g", Outcome.PASS, ""),)
        for version in ("v000000000001", "v000000000002"):
            staged = self.folder / "staged" / version
            staged.mkdir(parents=True)
            (staged / "manifest.json").write_text("{}")
            registry.publish(staged, IndexVersion(version, None, "c", "a", "e", 1, 1, "2026-01-31T12:00:00+00:00"))
            at = f"2026-01-31T12:00:0{version[-1]}.000+00:00"
            registry.record(Decision(Binding(version, "d", "s", "g", "c"), verdicts, "", at))
        follow(self.settings)
        assert not (self.folder / "mlartifacts").exists()  # nothing was ever told, so nobody is started
        track(self.settings, evaluation("v000000000002"))
        client = MlflowClient(sqlite_uri(self.folder / "mlflow.db"), sqlite_uri(self.folder / "mlflow.db"))
        assert set(client.get_registered_model("tidegate").aliases) == {"candidate"}
        after = Rollout("v000000000002", revision=1)
        registry.move(Move(Verb.PROMOTE, "2026-01-31T12:01:00.000+00:00", "me", Rollout(), after))
        follow(self.settings)
        deadline = time.monotonic() + BOUND_S
        while Spool(self.folder / "tracking").pointed() and time.monotonic() < deadline:
            time.sleep(0.2)
        aliases = client.get_registered_model("tidegate").aliases
        named = {a: client.get_model_version("tidegate", n).tags["index_version"] for a, n in aliases.items()}
        assert named == {"stable": "v000000000002", "candidate": "v000000000001"}


class TestPrivacy:
    pytestmark = in_mlflow

    @pytest.mark.slow
    def test_no_forbidden_term_and_no_text_out_of_reach_is_anywhere_in_what_is_written(
        self, tmp_path: Path, make_database: Callable[[Path], str]
    ) -> None:
        """Every byte of database, artifacts and spool, also of what waits for a tracker that is down."""
        (tmp_path / "terms.txt").write_text("zanzibrand\n")
        answering = {"forbidden_terms_file": tmp_path / "terms.txt"}
        for data, uri in ((tmp_path / "sent", None), (tmp_path / "kept", "http://127.0.0.1:1")):
            make_database(data)
            chosen = Settings.model_validate(
                {"data_dir": data, "answering": answering, "tracking": {"timeout_s": 300.0, "uri": uri}}
            )
            told = track(chosen, planted())
            assert bool(told.run_id) == (uri is None)
            found = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
            names = "\n".join(str(path) for path in found)
            assert any(b"visible question" in content for content in found.values())
            for secret in (b"zanzi", b"ZANZI", b"Zanzi", b"quarry secret", b"board secret"):
                assert secret.decode() not in names
                assert [path for path, content in found.items() if secret in content] == []


def planted() -> Evaluation:
    """An evaluation with a forbidden term in every text it has, and text that an anonymous reader may not see."""
    made = evaluation("v2", "v1")
    term = "Zanzi\u00adbrand"
    number = made.metrics["recall@6"][""]
    rows = (
        Row(f"q-{term}", "harbour", frozenset({"public"}), {"source": term}, {"m": 1.0}, 9.0, "", "visible question",
            f"{term} and Zanzibrand and ZANZIBRAND"),
        Row("q2", "quarry", frozenset({"public"}), {"tenant": "quarry"}, {"m": 1.0}, 9.0, "", "quarry secret 1",
            "quarry secret 2"),
        Row("q3", "harbour", frozenset({"public", "board"}), {}, {"m": 1.0}, 9.0, "", "board secret 1",
            "board secret 2"),
    )  # fmt: skip
    return replace(
        made,
        rows=rows,
        metrics={f"recall@6 {term}": {"": number, f"source={term}": number}},
        verdicts=(Verdict(f"gate {term}", Outcome.FAIL, f"{term} is worse"),),
        parameters={f"key {term}": f"value {term}", "long": f"{'x' * 490}{term}{'x' * 5000}"},
    )


class TestFirstTime:
    pytestmark = in_mlflow

    @pytest.mark.slow
    def test_a_database_is_made_in_the_background_although_the_time_was_too_short(self, tmp_path: Path) -> None:
        told = track(settings(tmp_path, timeout_s=0.5), evaluation())
        assert "was not done within 0.5 s (tracking.timeout_s)" in told.note
        deadline = time.monotonic() + BOUND_S
        while Spool(tmp_path / "tracking").waiting() and time.monotonic() < deadline:
            time.sleep(0.5)
        assert len(runs(tmp_path)) == 1
        assert json.loads((tmp_path / "tracking" / "sent" / f"{evaluation().id}.json").read_text())["run_id"]
