"""Files to S3 and back: uploads that go on, uploads that were given up, and bytes that are checked on arrival."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import StorageError
from retrieval.s3_objects import Objects
from retrieval.s3_registry import S3Registry
from tests.contracts.test_index_registry import V1, genuine, publish, version
from tests.retrieval.coast import PART, Coast, large
from tests.s3_server import DROPPED, Asked, S3Server, client_of


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


# ---------------------------------------------------------------------------------------------- killed


def publish_there(url: str, bucket: str, path: str) -> None:
    """What a process of its own does."""
    objects = Objects(client_of(url, 1), bucket, "library")
    S3Registry(objects, Path(path) / "killed", 1 << 30, PART).publish(large(Path(path), "killed"), version(V1))


def fetch_there(url: str, bucket: str, path: str) -> None:
    objects = Objects(client_of(url, 1), bucket, "library")
    S3Registry(objects, Path(path) / "killed", 1 << 30, PART).folder(V1)


def killed_when(
    coast: Coast, path: Path, work: Callable[[str, str, str], None], moment: Callable[[Asked], bool]
) -> None:
    """Runs the work in a process and kills that with the request that fits."""
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=(coast.server.url, coast.bucket, str(path))
    )

    def kill(asked: Asked) -> str | None:
        if moment(asked) and process.pid and process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            return DROPPED
        return None

    with coast.server.fault(kill):
        process.start()
        process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["partNumber=2", "partNumber=3", "POST", "versions/"])
def test_a_process_that_is_killed_while_it_publishes_leaves_nothing_that_counts(
    coast: Coast, tmp_path: Path, moment: str
) -> None:
    def fits(asked: Asked) -> bool:
        completes = asked.method == "POST" and "uploadId" in asked.query
        sent = any("uploadId" in each.query for each in coast.server.requests)
        appears = asked.method == "PUT" and "versions/" in asked.key and sent
        return {"POST": completes, "versions/": appears}.get(moment, moment in asked.query)

    killed_when(coast, tmp_path, publish_there, fits)
    registry = coast.registry("next")
    assert registry.versions() == ()
    assert registry.publish(large(tmp_path, "again"), version(V1)) is True
    assert coast.registry("other").folder(V1).is_dir()
    assert coast.registry(hours=25).leftovers() == ()


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_fetches_leaves_a_copy_that_is_cleared(coast: Coast, tmp_path: Path) -> None:
    coast.registry("builder").publish(large(tmp_path, "new"), version(V1))
    killed_when(coast, tmp_path, fetch_there, lambda asked: asked.method == "GET" and "/files/" in asked.key)
    machine = coast.registry("killed")
    (left,) = machine.leftovers()
    assert ("/.incoming-" in left.place, left.why) == (True, "a copy on its way in or out")
    assert (machine.folder(V1) / "vectors.npy").stat().st_size == 12 << 20
    assert machine.leftovers() == ()
