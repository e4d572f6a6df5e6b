"""Where index versions, decisions and the pointer are kept: part of settings.py."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, StringConstraints

from tidegate.section import Folder, Seconds, Section
from tidegate.settings_generation import Region, Url

Bucket = Annotated[
    str,
    StringConstraints(max_length=600, pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w!.*'()-]+)*/?$"),
    "s3://bucket or s3://bucket/prefix",
]
Key = Annotated[str, StringConstraints(max_length=2048, pattern=r"^[\w:/-]+$"), "the id, alias or ARN of a KMS key"]


class Registry(Section):
    """Where versions and records are kept: a folder of this machine, or a bucket that several machines share."""

    url: Bucket | None = Field(
        default=None, description="Bucket and prefix, like s3://bucket/prefix. Absent: the folder registry in data_dir."
    )
    region: Region | None = Field(
        default=None, description="Region of the bucket. Absent: the cloud client's own configuration."
    )
    endpoint_url: Url | None = Field(default=None, description="Address of another S3 server. Absent: the vendor's.")
    kms_key_id: Key | None = Field(
        default=None, description="KMS key that encrypts. Absent: a key of S3's own; unencrypted is not to be had."
    )
    cache_dir: Folder | None = Field(
        default=None, description="Folder of versions fetched from the bucket. Absent: registry-cache in data_dir."
    )
    cache_gb: float = Field(
        default=20.0, ge=0.001, le=100_000, description="Size of that folder, beside versions that are in use."
    )
    attempts: int = Field(default=5, ge=1, le=20, description="Times that a call of the bucket is made at most.")
    timeout_s: Seconds = Field(default=20.0, description="Seconds without a byte until a call is given up.")
    abandoned_hours: float = Field(
        default=24.0, ge=0, le=8760, description="Hours without progress until an upload counts as given up, for gc."
    )

    verify_mb: int = Field(
        default=200, ge=0, le=10_000_000, description="Versions up to this size are read whole before they are opened."
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        for key in ("region", "endpoint_url", "kms_key_id", "cache_dir"):
            if self.url is None and getattr(self, key) is not None:
                yield key, "null, because registry.url names no bucket"
