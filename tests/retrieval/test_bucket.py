"""A bucket as a source, over HTTP on loopback: pages, tags, odd keys, and what goes wrong with one object or all."""

from dataclasses import replace
from pathlib import Path

import pytest

from domain.errors import BadRequest, CorpusError, StorageError
from domain.ingestion import FileOutcome
from retrieval.bucket import BucketOrigin, address
from retrieval.reading import Source
from retrieval.registry import FolderRegistry
from tests.s3_server import DROPPED, Asked, S3Server
from tests.tidegate.tiny import FILES, settings, write_corpus
from tidegate.build import build_version, corpus_of
from tidegate.settings import Settings
from tidegate.syncing import Pruning, Synced, sync_version


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path) -> BucketOrigin:
    """An empty bucket, with the prefix handbook."""
    return BucketOrigin(s3_server.client(), s3_server.bucket(), "handbook", tmp_path / "staging")


def put(bucket: BucketOrigin, name: str, text: str) -> None:
    bucket.client.put_object(Bucket=bucket.bucket, Key=f"handbook/{name}", Body=text.encode())


def names(bucket: BucketOrigin) -> list[str]:
    return [entry.name if isinstance(entry, Source) else entry.path for entry in bucket.entries()]


def sync(of: Settings, bucket: BucketOrigin) -> Synced:
    documents = corpus_of(of, Path(bucket.name), "folder", "")
    fresh = replace(bucket)
    return sync_version(of, [fresh], documents, Pruning(), lambda *_: None)


def fetched(server: S3Server) -> list[str]:
    return [asked.key for asked in server.requests if asked.method == "GET" and "list-type" not in asked.query]


def test_all_pages_are_listed_and_only_what_lies_below_the_prefix(s3_server: S3Server, bucket: BucketOrigin) -> None:
    for number in range(7):
        put(bucket, f"{number}.txt", "The tide gate is shut.")
    bucket.client.put_object(Bucket=bucket.bucket, Key="handbook-2/other.txt", Body=b"The tide gate is open.")
    s3_server.requests.clear()
    assert names(replace(bucket, page=3)) == [f"{number}.txt" for number in range(7)]
    assert sum("list-type" in asked.query for asked in s3_server.requests) == 3


def test_a_bucket_comes_to_what_the_same_files_in_a_folder_come_to(bucket: BucketOrigin, tmp_path: Path) -> None:
    for name, text in FILES.items():
        put(bucket, name, text)
    synced = sync(settings(tmp_path / "data"), bucket)
    built = build_version(settings(tmp_path / "other"), write_corpus(tmp_path / "corpus"), lambda *_: None)
    assert synced.version.id == built.version.id
    assert not list(bucket.staging.iterdir())


def test_only_changed_objects_are_fetched(s3_server: S3Server, bucket: BucketOrigin, tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    for name, text in FILES.items():
        put(bucket, name, text)
    sync(of, bucket)
    s3_server.requests.clear()
    assert sync(of, bucket).built is None
    assert fetched(s3_server) == []
    put(bucket, "pump.txt", "Pump P3 needs oil of grade ISO 68.")
    s3_server.requests.clear()
    assert sync(of, bucket).changed
    assert fetched(s3_server) == ["handbook/pump.txt"]


def test_an_object_that_was_written_again_with_the_same_content_is_not_fetched(
    s3_server: S3Server, bucket: BucketOrigin, tmp_path: Path
) -> None:
    of = settings(tmp_path / "data")
    put(bucket, "pump.txt", FILES["pump.txt"])
    put(bucket, "gate.md", FILES["gate.md"])
    sync(of, bucket)
    put(bucket, "pump.txt", FILES["pump.txt"])
    s3_server.requests.clear()
    assert not sync(of, bucket).changed
    assert fetched(s3_server) == []


def test_a_deleted_object_is_hidden_like_a_deleted_file(bucket: BucketOrigin, tmp_path: Path) -> None:
    of = settings(tmp_path / "data")
    for name, text in FILES.items():
        put(bucket, name, text)
    sync(of, bucket)
    bucket.client.delete_object(Bucket=bucket.bucket, Key="handbook/pump.txt")
    assert sync(of, bucket).hidden == ("pump.txt",)
    assert FolderRegistry(of.data_dir / "registry").tombstones() == {"pump.txt"}


@pytest.mark.parametrize(
    "key", ["../escape.txt", "a/../../b.txt", "name with spaces ☃.txt", "x" * 300 + ".txt", "a//b.txt"]
)
def test_a_key_is_a_name_and_never_a_path(bucket: BucketOrigin, tmp_path: Path, key: str) -> None:
    put(bucket, key, "The tide gate is shut.")
    before = set(tmp_path.rglob("*"))
    for entry in bucket.entries():
        if isinstance(entry, Source):
            with bucket.fetched(entry) as there:
                assert there.path.resolve().is_relative_to(bucket.staging.resolve())
                assert there.path.read_text("utf-8") == "The tide gate is shut."
                assert there.path.suffix == ".txt"
    assert set(tmp_path.rglob("*")) - before <= {bucket.staging}


def test_folder_marks_hidden_objects_and_unknown_kinds_are_not_fetched(bucket: BucketOrigin) -> None:
    for name in ("sub/", ".git/config.txt", "photo.xyz", "gate.md"):
        put(bucket, name, "text")
    entries = list(bucket.entries())
    assert [e.code for e in entries if isinstance(e, FileOutcome)] == ["hidden", "unknown_kind"]
    assert [e.name for e in entries if isinstance(e, Source)] == ["gate.md"]


def test_an_object_that_is_gone_when_it_is_fetched_costs_itself_alone(
    s3_server: S3Server, bucket: BucketOrigin, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        put(bucket, name, text)

    def gone(asked: Asked) -> int | None:
        return 404 if asked.key.endswith("pump.txt") else None

    with s3_server.fault(gone):
        synced = sync(settings(tmp_path / "data"), bucket)
    assert synced.built is not None
    failed = [o for o in synced.built.outcomes if o.status == "failed"]
    assert [(o.path, o.code) for o in failed] == [("pump.txt", "unreadable")]
    assert "was deleted meanwhile" in failed[0].reason
    assert synced.version.documents == 2


def test_a_bucket_that_answers_no_more_ends_the_sync_and_hides_nothing(
    s3_server: S3Server, bucket: BucketOrigin, tmp_path: Path
) -> None:
    of = settings(tmp_path / "data")
    for name, text in FILES.items():
        put(bucket, name, text)
    first = sync(of, bucket)
    put(bucket, "pump.txt", "Pump P3 needs oil of grade ISO 68.")
    silent = s3_server.fault(lambda asked: DROPPED if "list-type" not in asked.query else None)
    with silent, pytest.raises(StorageError, match="cannot be reached"):
        sync(of, bucket)
    assert [v.id for v in FolderRegistry(of.data_dir / "registry").versions()] == [first.version.id]
    assert FolderRegistry(of.data_dir / "registry").tombstones() == frozenset()


def test_a_bucket_that_does_not_exist_is_named(s3_server: S3Server, tmp_path: Path) -> None:
    missing = BucketOrigin(s3_server.client(), "harbour-nowhere", "handbook", tmp_path / "staging")
    with pytest.raises(StorageError, match="Bucket harbour-nowhere of s3://harbour-nowhere/handbook does not exist"):
        list(missing.entries())


@pytest.mark.parametrize("place", ["s3://", "s3:///handbook", "s3://A/b", "s3://x"])
def test_an_address_without_a_bucket_is_refused(place: str) -> None:
    with pytest.raises(BadRequest, match="names no bucket"):
        address(place)


def test_an_address_is_a_bucket_and_a_prefix() -> None:
    assert address("s3://library/hand/book/") == ("library", "hand/book")
    assert address("s3://library") == ("library", "")


def test_a_bucket_with_a_note_about_readers_is_refused_rather_than_shown_to_others(bucket: BucketOrigin) -> None:
    put(bucket, "hr/pay.txt", "The keeper is paid a shilling.")
    put(bucket, "hr/access.yaml", "groups: [hr]")
    with pytest.raises(CorpusError, match=r"hr/access.yaml says who may read other files"):
        list(bucket.entries())
