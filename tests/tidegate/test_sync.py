"""`tidegate sync`: what it tells, what it exits with, and that what is deleted is found no more."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from retrieval.registry import FolderRegistry
from tests.tidegate.small import SMALL, small_library
from tests.tidegate.tiny import admit, sets, settings, write_corpus
from tidegate.cli import main
from tidegate.console import Code
from tidegate.keeping_fresh import Wanted, synced_from
from tidegate.sample import corpus_path
from tidegate.syncing import alone

if TYPE_CHECKING:
    from tests.s3_server import S3Server

Capture = pytest.CaptureFixture[str]
KILNS = {
    "keep.txt": "The blue kiln reaches 900 degrees.\n",
    "drop.txt": "The zebrawood kiln reaches 1200 degrees.\n",
}


def found(capsys: Capture, data: Path, query: str, *words: str) -> set[str]:
    """The documents that a search gives."""
    capsys.readouterr()
    assert main(["search", query, "--json", *words, *sets(data)]) == 0
    return {hit["doc_id"] for hit in json.loads(capsys.readouterr().out)["hits"]}


# ---------------------------------------------------------------------------------------------- what is told


def test_a_sync_without_questions_builds_and_says_that_nobody_can_decide(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus")
    assert main(["sync", str(corpus), *sets(here / "data")]) == Code.NOT_MEASURED
    out, err = capsys.readouterr()
    assert "3 documents, 3 chunks (3 embedded, 0 re-used); files: 3 read, 0 unchanged, 0 moved, 0 gone" in out
    assert "there are no questions to decide about" in err
    assert len(FolderRegistry(here / "data" / "registry").versions()) == 1


def test_nothing_changed_is_told_as_that_and_is_no_failure(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus")
    main(["sync", str(corpus), *sets(here / "data")])
    capsys.readouterr()
    assert main(["sync", str(corpus), *sets(here / "data")]) == 0
    assert "unchanged: 3 files are what they were" in capsys.readouterr().out
    assert len(FolderRegistry(here / "data" / "registry").versions()) == 1


def test_a_sync_as_json_says_what_became_of_every_document(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus")
    main(["sync", str(corpus), *sets(here / "data")])
    (corpus / "pump.txt").unlink()
    (corpus / "bad.jsonl").write_text('{"id": "a", "text": 5}\n', "utf-8")
    capsys.readouterr()
    assert main(["sync", str(corpus), "--json", *sets(here / "data")]) == Code.NOT_MEASURED
    told = json.loads(capsys.readouterr().out)
    assert (told["unchanged"], told["removed"], told["hidden"]) == (False, ["pump.txt"], ["pump.txt"])
    assert told["files"] == {"there": 3, "read": 1, "unchanged": 2, "moved": 0, "gone": 1}
    assert [o["path"] for o in told["outcomes"]] == ["bad.jsonl:1", "bad.jsonl"]
    assert told["embedded"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere does not exist: name a folder of documents, or s3://BUCKET/PREFIX"),
        (["corpus", "--prune-limit", "1.5"], "--prune-limit"),
        (["corpus", "--groups", "st\udcffaff"], "--groups 'st\\udcffaff' is not UTF-8"),
        (["corpus", "--format", "zip"], "Corpus format 'zip' is not known"),
        ([], "Missing argument 'source'"),
    ],
)
def test_what_cannot_be_synced_is_refused_by_name(here: Path, capsys: Capture, words: list[str], said: str) -> None:
    write_corpus(here / "corpus")
    assert main(["sync", *words, *sets(here / "data")]) != 0
    assert said in capsys.readouterr().err
    assert not (here / "data" / "registry").exists()


# ---------------------------------------------------------------------------------------------- what is deleted


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_a_file_that_is_deleted_is_found_no_more_in_the_version_people_have(
    here: Path, capsys: Capture, mode: str
) -> None:
    corpus, data = write_corpus(here / "corpus", KILNS), here / "data"
    main(["sync", str(corpus), *sets(data)])
    admit(data)
    assert "drop.txt" in found(capsys, data, "zebrawood kiln", "--mode", mode)
    (corpus / "drop.txt").unlink()
    assert main(["sync", str(corpus), *sets(data)]) == Code.NOT_MEASURED
    assert "1 gone from every version: drop.txt" in capsys.readouterr().err
    assert found(capsys, data, "zebrawood kiln", "--mode", mode) == {"keep.txt"}  # of the version of before
    admit(data)
    assert found(capsys, data, "zebrawood kiln", "--mode", mode) == {"keep.txt"}


def test_a_deleted_file_is_cited_no_more(here: Path, capsys: Capture) -> None:
    corpus, data = write_corpus(here / "corpus", KILNS), here / "data"
    main(["sync", str(corpus), *sets(data)])
    admit(data)
    (corpus / "drop.txt").unlink()
    main(["sync", str(corpus), *sets(data)])
    capsys.readouterr()
    assert main(["ask", "How hot does the zebrawood kiln get?", "--json", *sets(data)]) == 0
    assert "1200" not in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------- again and at once

PARTS = "".join(f"# Part {n}\n\n{f'The word of this part is alpha{n}. ' * 30}\n\n" for n in range(1, 7))


def test_the_same_document_three_times_and_at_once_has_the_same_chunks(here: Path, capsys: Capture) -> None:
    corpus, data = write_corpus(here / "corpus", {"six.md": PARTS}), here / "data"
    counts = []
    for spelled in ("corpus", "./corpus", str(corpus)):
        main(["sync", spelled, "--json", *sets(data)])
        counts.append(json.loads(capsys.readouterr().out))
    assert [told["unchanged"] for told in counts] == [False, True, True]
    assert len({told["version"]["chunks"] for told in counts}) == 1
    assert counts[0]["version"]["chunks"] >= 6
    admit(data)
    for number in range(1, 7):
        assert found(capsys, data, f"alpha{number}") == {"six.md"}

    def ingest(spelled: str) -> tuple[str, int, bool]:
        of = settings(here / "other")
        with alone(of, lambda _: None):
            synced = synced_from(of, Wanted(spelled), lambda *_: None)
        return synced.version.id, synced.version.chunks, synced.built is None

    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(ingest, ["corpus", "./corpus", str(corpus)]))
    assert {version for version, _, _ in made} == {counts[0]["version"]["id"]}
    assert sorted(unchanged for _, _, unchanged in made) == [False, True, True]


# ---------------------------------------------------------------------------------------------- to people


LENIENT = json.dumps(
    [{"metric": metric, "floor": 0.1, "min_items": 5} for metric in ("recall@6", "citation_precision")]
)


def test_what_passes_goes_to_people_by_itself_and_a_change_comes_as_a_canary(here: Path, capsys: Capture) -> None:
    of, _ = small_library(here)
    corpus = Path(shutil.copy(corpus_path(of), here / "documents.jsonl"))
    pairs = {**SMALL, "data_dir": str(here), "evaluation.gates": LENIENT, "evaluation.attacks": "false"}
    words = [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]

    def synced(*more: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["sync", str(corpus), "--json", *more, *words]) == 0
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    first = synced("--auto")
    assert (first["decision"], first["serving"]) == ("PASS", {"stable": True, "canary": False})
    with corpus.open("a", encoding="utf-8") as lines:
        lines.write('{"id": "kiln", "text": "The zebrawood kiln reaches 1200 degrees.", "groups": ["public"]}\n')
    second = synced("--auto")
    assert (second["embedded"], second["serving"]) == (1, {"stable": False, "canary": True})
    assert (synced("--auto")["unchanged"], synced()["rollout"]["canary"]) == (True, second["version"]["id"])
    assert main(["rollback", *words]) == 0
    assert synced("--auto")["rollout"]["canary"] is None  # it was turned back, and nothing has changed since
    assert main(["promote", second["version"]["id"], *words]) == 0
    capsys.readouterr()
    assert main(["ask", "How hot does the zebrawood kiln get?", "--json", *words]) == 0
    assert "1200 degrees" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_told_every_time_and_changes_nothing_else(here: Path, capsys: Capture) -> None:
    corpus = write_corpus(here / "corpus")
    (corpus / "bad.txt").write_bytes(b"text \xe9\0\0")
    main(["sync", str(corpus), *sets(here / "data")])
    capsys.readouterr()
    assert main(["sync", str(corpus), *sets(here / "data")]) == Code.PARTIAL
    out, err = capsys.readouterr()
    assert "unchanged" in out
    assert "bad.txt: failed" in err


def test_a_bucket_is_synced_by_its_address_as_boto3_is_configured(
    here: Path, capsys: Capture, s3_server: "S3Server", monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.bucket()
    for name, text in KILNS.items():
        s3_server.client().put_object(Bucket=bucket, Key=f"handbook/{name}", Body=text.encode())
    for name, value in {
        "AWS_ENDPOINT_URL_S3": s3_server.url, "AWS_ACCESS_KEY_ID": "harbour", "AWS_SECRET_ACCESS_KEY": "not a secret",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert main(["sync", f"s3://{bucket}/handbook", *sets(here / "data")]) == Code.NOT_MEASURED
    assert "2 documents" in capsys.readouterr().out
    assert main(["sync", f"s3://{bucket}/handbook/", *sets(here / "data")]) == 0
    assert "unchanged: 2 files" in capsys.readouterr().out
    assert main(["sync", "s3://", *sets(here / "data")]) == Code.USAGE
    assert "names no bucket" in capsys.readouterr().err
