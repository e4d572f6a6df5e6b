"""The command line over a bucket: every verb that reads or moves versions, on two machines that share nothing else."""

import json
import shutil
from pathlib import Path

import pytest

from domain.errors import StorageError
from domain.releases import Decision, Outcome, Verdict
from retrieval.s3_errors import RIGHTS
from tests.s3_server import DROPPED, S3Server
from tests.tidegate.tiny import sets, settings, write_corpus
from tidegate.cli import main
from tidegate.compose import make_registry, sound_folder
from tidegate.compose_releases import make_releases
from tidegate.console import Code
from tidegate.settings import Settings


class Port:
    """A bucket, and machines that use it."""

    def __init__(self, server: S3Server, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.server, self.bucket, self._path, self._capsys = server, server.bucket(), path, capsys

    def keys(self) -> dict[str, str]:
        return {"registry__url": f"s3://{self.bucket}/library", "registry__endpoint_url": self.server.url}

    def run(self, machine: str, *words: str, **others: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = main([*words, *sets(self._path / machine, **self.keys(), registry__region="eu-central-1", **others)])
        return code, *self._capsys.readouterr()

    def settings(self, machine: str, **others: str) -> Settings:
        return settings(self._path / machine, **self.keys(), registry__region="eu-central-1", **others)


@pytest.fixture
def port(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Port:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "harbour")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not a secret")
    monkeypatch.chdir(tmp_path)
    return Port(s3_server, tmp_path, capsys)


def decide(port: Port, version: str) -> None:
    ours = port.settings("builder")
    registry = make_registry(ours)
    stable = registry.rollout().stable
    bound = make_releases(ours).served(version, stable if stable != version else None)
    registry.record(Decision(bound, (Verdict("recall@6", Outcome.PASS, "fine"),), "r1", "2026-01-31T12:00:00+00:00"))


def built(port: Port, *files: tuple[str, str]) -> str:
    shutil.rmtree("corpus", ignore_errors=True)
    corpus = write_corpus(Path("corpus"))
    for name, text in files:
        (corpus / name).write_text(text)
    code, out, err = port.run("builder", "build", "corpus", "--json")
    assert code == 0, err
    return str(json.loads(out)["version"]["id"])


def test_a_version_goes_its_whole_way_to_people_of_another_machine_and_back(port: Port) -> None:
    first = built(port)
    assert port.run("server", "promote", first, "--force", "--reason", "the first")[0] == 0
    second = built(port, ("lock.txt", "The canal lock opens at nine.\n"))
    assert port.run("server", "canary", second)[0] == Code.REFUSED
    decide(port, second)
    assert port.run("server", "canary", second, "--share", "0.1")[1] == f"stable {first}, canary {second} at 10%\n"
    assert port.run("server", "promote", second, "--force", "--reason", "seen enough")[0] == 0
    hits = json.loads(port.run("server", "search", "when does the canal lock open", "--json")[1])["hits"]
    assert hits[0]["doc_id"] == "lock.txt"
    code, out, _ = port.run("builder", "versions")
    assert (code, [line.split()[-1] for line in out.splitlines()]) == (0, ["previous", "stable"])
    assert port.run("builder", "rollback")[1] == f"stable {first}, no canary\n"
    assert not (Path("server") / "registry").exists()
    moves = make_registry(port.settings("third")).ledger()
    assert [each.verb.value for each in moves] == ["promote", "canary", "promote", "rollback"]


@pytest.mark.slow
def test_gc_removes_from_the_bucket_what_nobody_goes_back_to_and_keeps_what_the_pointer_names(port: Port) -> None:
    names = [built(port)]
    port.run("server", "promote", names[0], "--force", "--reason", "the first")
    for n in (1, 2, 3):
        names.append(built(port, (f"{n}.txt", f"Quay {n} is lit until midnight.\n")))
    for name in names[1:3]:
        decide(port, name)
        assert port.run("server", "promote", name, "--force", "--reason", "a test")[0] == 0
    code, out, _ = port.run("server", "gc", "--keep", "0")
    assert (code, sorted(line.split()[0] for line in out.splitlines()[:-1])) == (0, sorted([names[0], names[3]]))
    code, _, err = port.run("server", "rollback", "--to", names[0])
    assert code != Code.DONE
    assert names[1] in err
    assert port.run("server", "rollback")[1] == f"stable {names[1]}, no canary\n"
    again = port.run("server", "rollback")  # there is nothing before it any more
    assert again[0] != Code.DONE
    assert make_registry(port.settings("server")).rollout().stable == names[1]
    left = {key.split("/")[2] for key in listed(port) if "/files/" in key}
    assert left == {names[1], names[2]}


def listed(port: Port) -> list[str]:
    reply = port.server.client().list_objects_v2(Bucket=port.bucket)
    return [entry["Key"] for entry in reply.get("Contents", ())]


def test_settings_of_the_registry_change_no_answer_and_no_digest(port: Port, tmp_path: Path) -> None:
    from tidegate.effective import digest

    assert digest(port.settings("a")) == digest(settings(tmp_path / "a"))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("bucket/prefix", "s3://bucket"), ("s3://UPPER/x", "s3://bucket"), ("s3://b/../x?", "s3://bucket")],
)
def test_an_address_that_is_no_bucket_is_refused(port: Port, value: str, wanted: str) -> None:
    code, _, err = _versions(port, value)
    assert code == Code.USAGE
    assert wanted in err


def _versions(port: Port, url: str) -> tuple[int, str, str]:
    port._capsys.readouterr()
    code = main(["versions", *sets(Path("a"), registry__url=url)])
    return code, *port._capsys.readouterr()


def test_without_credentials_that_is_said_with_the_way_out(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(StorageError, match=f"s3://{port.bucket}/library cannot be asked without credentials.*AWS_PROF"):
        make_registry(port.settings("nobody"))


def test_a_damaged_copy_is_not_opened(port: Port) -> None:
    version = built(port)
    ours = port.settings("server")
    (sound_folder(ours, version) / "vectors.npy").write_bytes(b"x")
    with pytest.raises(StorageError, match=r"vectors.npy: its content is another"):
        sound_folder(ours, version)
    assert sound_folder(ours, version).is_dir()  # fetched again


def test_a_bucket_that_cannot_be_reached_is_told_by_its_address(port: Port) -> None:
    with port.server.fault(lambda _: DROPPED):
        code, _, err = port.run("server", "versions", registry__attempts="1")
    assert code == Code.REFUSED
    assert f"s3://{port.bucket}/library/" in err
    assert "check the network" in err


def test_preflight_names_the_bucket_with_the_rights_that_it_takes(port: Port) -> None:
    code, out, _ = port.run("server", "preflight", "--json")
    told = json.loads(out)
    (versions,) = [part for part in told["parts"] if part["part"] == "versions"]
    assert (code, versions["where"], versions["named"]) == (0, "aws", f"s3://{port.bucket}/library")
    (statement,) = told["policy"]["Statement"]
    assert statement["Resource"] == [f"arn:aws:s3:::{port.bucket}", f"arn:aws:s3:::{port.bucket}/library/*"]
    assert set(RIGHTS.values()) <= set(statement["Action"])
