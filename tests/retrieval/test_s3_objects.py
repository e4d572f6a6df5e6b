"""Objects on S3: encrypted always, conditions kept, and errors that name the object and the way out."""

from pathlib import Path
from typing import Any

import pytest

from domain.errors import StorageError
from domain.releases import Rollout
from retrieval.s3_objects import Objects
from retrieval.s3_registry import S3Registry
from tests.contracts.test_index_registry import V1, decision, move, publish, staged, version
from tests.retrieval.coast import FIRST, PART, Coast, large
from tests.s3_server import UNCONDITIONAL, S3Server


@pytest.fixture
def coast(s3_server: S3Server, tmp_path: Path) -> Coast:
    return Coast(s3_server, tmp_path)


@pytest.mark.parametrize(("key", "wanted"), [(None, "AES256"), ("alias/harbour", "aws:kms")])
def test_every_object_is_encrypted(coast: Coast, tmp_path: Path, key: str | None, wanted: str) -> None:
    registry = S3Registry(Objects(coast.server.client(), coast.bucket, "library", key), tmp_path / "c", 1 << 30, PART)
    registry.publish(large(tmp_path, "x"), version(V1))
    registry.record(decision(V1))
    registry.move(move(Rollout(), FIRST))
    registry.tombstone(["a"])
    registry.set_access("a", None)
    keys = coast.there()
    assert len(keys) > 7
    for each in keys:
        told = coast.server.client().head_object(Bucket=coast.bucket, Key=f"library/{each}")
        assert told["ServerSideEncryption"] == wanted, each
        assert told.get("SSEKMSKeyId") == key, each


class Careless:
    """A client of a server that takes objects and says nothing of encryption."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put_object(self, **arguments: Any) -> dict[str, Any]:
        reply = self._client.put_object(**arguments)
        return {key: value for key, value in reply.items() if key != "ServerSideEncryption"}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def test_a_server_that_does_not_say_it_encrypts_is_refused(coast: Coast, tmp_path: Path) -> None:
    registry = S3Registry(Objects(Careless(coast.server.client()), coast.bucket, "library"), tmp_path / "c", 1 << 30)
    with pytest.raises(
        StorageError, match=r"tombstones.json was taken without the encryption .*none instead of AES256"
    ):
        registry.tombstone(["a"])


def test_a_server_that_ignores_conditions_is_refused_before_anything_rests_on_it(coast: Coast, tmp_path: Path) -> None:
    registry = coast.registry()
    publish(registry, tmp_path, V1)
    with coast.server.fault(lambda _: UNCONDITIONAL), pytest.raises(StorageError, match="ignores If-None-Match"):
        registry.move(move(Rollout(), FIRST))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (403, r"s3://{0}/library/tombstones.json may not be used \(403.*allow this identity s3:GetObject"),
        (301, r"Bucket {0} of s3://{0}/library/tombstones.json is in another region: set registry.region"),
        (503, r"s3://{0}/library/tombstones.json was refused several times .*try again in a while"),
        (501, r"s3://{0}/library/tombstones.json: this server lacks what is needed"),
    ],
)
def test_what_s3_refuses_names_the_object_and_the_way_out(coast: Coast, status: int, told: str) -> None:
    with (
        coast.server.fault(lambda asked: status if asked.key else None),
        pytest.raises(StorageError, match=told.format(coast.bucket)),
    ):
        coast.registry(attempts=1).tombstones()


def test_a_bucket_that_is_not_there_is_named(s3_server: S3Server, tmp_path: Path) -> None:
    registry = S3Registry(Objects(s3_server.client(), "no-such-harbour", "x"), tmp_path, 1)
    told = "Bucket no-such-harbour of s3://no-such-harbour/x/.* does not exist: create it, or name another"
    for look in (registry.tombstones, registry.rollout, registry.versions, registry.leftovers):
        with pytest.raises(StorageError, match=told):
            look()
    with pytest.raises(StorageError, match=told):
        registry.tombstone(["a"])
    with pytest.raises(StorageError, match=told):
        registry.publish(staged(tmp_path, "x"), version(V1))
