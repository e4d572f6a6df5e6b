"""Files to S3 and back: uploads that go on, uploads that were given up, and bytes that are checked on arrival."""

from pathlib import Path

import pytest

from domain.errors import StorageError
from tests.contracts.test_index_registry import V1, genuine, publish, version
from tests.retrieval.coast import Coast, large
from tests.s3_server import DROPPED, Asked, S3Server


@pytest.fixture
def coast(s3_server: S3Server, tmp_path: Path) -> Coast:
    return Coast(s3_server, tmp_path)


def parts_sent(server: S3Server) -> list[str]:
    return sorted(a.query.split("partNumber=")[1].split("&")[0] for a in server.requests if "partNumber" in a.query)


def broken_off(coast: Coast, path: Path) -> None:
    """An upload that died before its third part."""

    def no_third(asked: Asked) -> str | None:
        return (
            DROPPED if "partNumber=3" in asked.query or ("uploadId" in asked.query and asked.method == "POST") else None
        )

    with coast.server.fault(no_third), pytest.raises(StorageError, match="cannot be reached"):
        coast.registry("dead", attempts=1).publish(large(path, "killed"), version(V1))


def test_an_upload_that_was_killed_goes_on_where_it_stopped(coast: Coast, tmp_path: Path) -> None:
    broken_off(coast, tmp_path)
    assert coast.registry().versions() == ()
    with coast.server.fault(lambda _: None):
        assert coast.registry("next").publish(large(tmp_path, "again"), version(V1)) is True
        assert parts_sent(coast.server) == ["3"]
        assert sum(asked.method == "PUT" and "/files/" in asked.key for asked in coast.server.requests) == 1
    fetched = coast.registry("elsewhere").folder(V1)
    assert (fetched / "vectors.npy").read_bytes() == bytes(range(256)) * (12 << 12)


def test_an_upload_that_was_given_up_is_listed_with_its_size_and_removed(coast: Coast, tmp_path: Path) -> None:
    broken_off(coast, tmp_path)
    assert coast.registry(hours=23).leftovers() == ()  # it may still be going on
    (left,) = coast.registry(hours=25).leftovers()
    assert f"an upload of {V1} without progress for 25" in left.why
    assert left.bytes > 10 << 20  # two parts of 5 MiB that arrived, and the small files
    assert left.place.startswith(f"s3://{coast.bucket}/library/files/{V1}/")
    assert coast.registry(hours=25).clear_leftovers() == (left,)
    assert coast.there() == set()
    assert "Uploads" not in coast.server.client().list_multipart_uploads(Bucket=coast.bucket)


def test_an_upload_that_was_taken_for_given_up_begins_again_and_is_whole(coast: Coast, tmp_path: Path) -> None:
    swept: list[object] = []

    def sweep(asked: Asked) -> None:
        if "partNumber=3" in asked.query and not swept:
            swept.extend(coast.registry("sweeper", hours=25).clear_leftovers() or [None])

    with coast.server.fault(sweep):
        try:
            assert coast.registry("slow").publish(large(tmp_path, "slow"), version(V1)) is True
        except StorageError:  # its parts are gone under its hands: the next attempt is clean
            assert coast.registry("slow").publish(large(tmp_path, "once more"), version(V1)) is True
    assert swept
    registry = coast.registry("elsewhere")
    assert (registry.folder(V1) / "vectors.npy").stat().st_size == 12 << 20
    registry.clear_leftovers()
    assert len({key.split("/")[2] for key in coast.there() if key.startswith("files/")}) == 1


def test_a_file_that_was_changed_in_the_bucket_is_never_opened(coast: Coast, tmp_path: Path) -> None:
    publish(coast.registry(), tmp_path, V1)
    (key,) = [k for k in coast.there() if k.startswith("files/")][:1]
    coast.registry().objects.put(key, b"chonks")
    with pytest.raises(StorageError, match=f"{key} is not what was published as"):
        coast.registry("elsewhere").folder(V1)
    coast.registry().objects.delete(key)
    with pytest.raises(StorageError, match=f"{key} is missing or too short"):
        coast.registry("elsewhere").folder(V1)


def test_a_file_that_the_bucket_has_lost_is_found_although_this_machine_has_it(coast: Coast, tmp_path: Path) -> None:
    built = genuine(tmp_path)
    registry = coast.registry()
    registry.publish(tmp_path / "genuine" / "versions" / built.id, built)
    registry.objects.delete(min(key for key in coast.there() if key.startswith("files/")))
    with pytest.raises(StorageError, match=f"{built.id} is not what was published under that name: .* missing"):
        registry.verify(built.id)


def test_a_damaged_copy_is_told_once_and_fetched_again(coast: Coast, tmp_path: Path) -> None:
    built = genuine(tmp_path)
    registry = coast.registry()
    registry.publish(tmp_path / "genuine" / "versions" / built.id, built)
    (registry.folder(built.id) / "chunks.jsonl").write_bytes(b"{}")
    with pytest.raises(StorageError, match=r"chunks.jsonl: its content is another.* is fetched again"):
        registry.verify(built.id)
    registry.verify(built.id)


def test_a_record_that_names_files_outside_of_the_version_is_refused(coast: Coast, tmp_path: Path) -> None:
    publish(coast.registry(), tmp_path, V1)
    objects = coast.registry().objects
    stored = objects.get(f"versions/{V1}.json")
    assert stored is not None
    objects.put(f"versions/{V1}.json", stored.body.replace(b"bm25/rows.npy", b"../../rows.npy"))
    with pytest.raises(StorageError, match=r"names '../../rows.npy', which is no file within it"):
        coast.registry("elsewhere").folder(V1)
    assert not list(tmp_path.rglob("**/elsewhere/**/rows.npy"))
