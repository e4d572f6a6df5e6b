"""Registries of several machines over one bucket of the S3 on the loopback interface."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from domain.releases import Rollout
from retrieval.s3_objects import Objects
from retrieval.s3_registry import S3Registry
from tests.contracts.test_index_registry import V1, V2, V3, move, publish, staged
from tests.s3_server import S3Server

FIRST, SECOND = Rollout(stable=V1, revision=1), Rollout(V1, V2, 0.05, revision=2, began=2)
PART = 5 << 20


class Coast:
    """Registries of several machines over one bucket."""

    def __init__(self, server: S3Server, path: Path) -> None:
        self.server, self.bucket, self._path = server, server.bucket(), path

    def registry(
        self, machine: str = "here", attempts: int = 2, hours: float = 0.0, limit: int = 1 << 30
    ) -> S3Registry:
        objects = Objects(self.server.client(attempts), self.bucket, "library")
        clock = lambda: datetime.now(UTC) + timedelta(hours=hours)  # noqa: E731
        return S3Registry(objects, self._path / machine, 1 << 30, part=PART, clock=clock)

    def copied(self, path: Path) -> "Coast":
        """The same objects in a bucket of their own, and other machines."""
        path.mkdir()
        other = Coast(self.server, path)
        for key in self.there():
            whole = f"library/{key}"
            self.server.client().copy_object(
                Bucket=other.bucket, Key=whole, CopySource={"Bucket": self.bucket, "Key": whole}
            )
        return other

    def there(self) -> set[str]:
        return {each.key for each in self.registry().objects.listed("")}


def prepared(coast: Coast, path: Path) -> None:
    """Stable is V1; V2 and V3 are built."""
    registry = coast.registry()
    publish(registry, path, V1, V2, V3)
    registry.move(move(Rollout(), FIRST))


def large(path: Path, name: str) -> Path:
    """A version with a file of three parts."""
    folder = staged(path, name)
    (folder / "vectors.npy").write_bytes(bytes(range(256)) * (12 << 12))  # 12 MiB
    return folder
