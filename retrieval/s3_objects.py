"""The objects of a registry below one prefix of a bucket: read, listed, and written under a condition.

Every object is encrypted, and a server that does not say so is refused. A write may name what it replaces, by tag, and
then happens only if that is still there: of two writers one wins. A reply that was lost is no failure: who finds his
own bytes where he wanted to write them has written them, so bytes that must be told apart carry a mark of their own.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from domain.errors import StorageError
from retrieval.s3_errors import code_of, failed, status_of

NOTHING = ""  # what a write replaces that must be the first one
AT_ONCE = 8  # objects read at the same time
CONFLICTS = 6  # attempts while S3 itself cannot tell who of two was first; waits double from 20 ms, 0.6 s in all


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of an object. `etag` is what a write names to replace exactly this."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Listed:
    """An object as a listing has it. The key is without the registry's prefix, the time is the server's."""

    key: str
    bytes: int
    etag: str
    modified: datetime


class Objects:
    """Objects below `prefix` of `bucket`, by keys without the prefix. `client` is boto3's; with a `kms_key` what is
    written is encrypted with that, else with keys of S3. Every method raises StorageError naming bucket and key.
    """

    def __init__(self, client: Any, bucket: str, prefix: str, kms_key: str | None = None) -> None:  # boto3
        self.client, self.bucket, self._kms_key = client, bucket, kms_key
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._seen: dict[str, Stored] = {}

    def place(self, key: str = "") -> str:
        """The address of an object, for people."""
        return f"s3://{self.bucket}/{self._prefix}{key}"

    # ------------------------------------------------------------------------------------------ reading

    def get(self, key: str) -> Stored | None:
        """An object's content, None when there is none. What was read before and has not changed is not sent again."""
        known = self._seen.get(key)
        condition = {"IfNoneMatch": known.etag} if known else {}
        try:
            reply = self.client.get_object(**self.at(key), **condition)
            stored = Stored(reply["Body"].read(), str(reply["ETag"]))
        except ClientError as error:
            if status_of(error) == 304 and known:
                return known
            if code_of(error) in ("NoSuchKey", "404"):
                self._seen.pop(key, None)
                return None
            raise failed("get_object", self.place(key), error) from error
        except BotoCoreError as error:
            raise failed("get_object", self.place(key), error) from error
        self._seen[key] = stored
        return stored

    def get_all(self, keys: Sequence[str]) -> list[Stored | None]:
        """Many objects, in the order of their keys."""
        if len(keys) < 2:
            return [self.get(key) for key in keys]
        with ThreadPoolExecutor(min(AT_ONCE, len(keys)), "s3") as pool:
            return list(pool.map(self.get, keys))

    def listed(self, under: str) -> Iterator[Listed]:
        """All objects whose key begins with `under`, by key."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{self._prefix}{under}"
        )
        try:
            for page in pages:
                for entry in page.get("Contents", ()):
                    key = str(entry["Key"]).removeprefix(self._prefix)
                    yield Listed(key, int(entry["Size"]), str(entry["ETag"]), entry["LastModified"])
        except (ClientError, BotoCoreError) as error:
            raise failed("list_objects_v2", self.place(under), error) from error

    # ------------------------------------------------------------------------------------------ writing

    def put(self, key: str, body: bytes) -> None:
        """Writes an object, whatever is there."""
        self.call("put_object", key, Body=body, **self.encryption)

    def swap(self, key: str, body: bytes, replacing: str) -> bool:
        """Writes an object if `replacing` is what is there now, a tag or NOTHING; False when it is not.

        True too when these very bytes are there: this writer's reply was lost.
        """
        condition = {"IfMatch": replacing} if replacing else {"IfNoneMatch": "*"}
        for attempt in range(CONFLICTS):
            try:
                reply = self.client.put_object(**self.at(key), Body=body, **condition, **self.encryption)
            except ClientError as error:
                if code_of(error) == "ConditionalRequestConflict" and attempt < CONFLICTS - 1:
                    time.sleep(0.02 * 2**attempt)
                    continue
                if status_of(error) not in (404, 409, 412) or code_of(error) == "NoSuchBucket":
                    raise failed("put_object", self.place(key), error) from error
                return self._is(key, body)
            except BotoCoreError as error:
                return self._arrived(key, body, replacing, error)
            self.check_encrypted(key, reply)
            self._seen[key] = Stored(body, str(reply["ETag"]))
            return True
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def refuses(self, key: str, body: bytes) -> bool:
        """True when the server does not write an object that is there as if it were the first; `body` is in it."""
        try:
            self.client.put_object(**self.at(key), Body=body, IfNoneMatch="*", **self.encryption)
        except ClientError as error:
            if status_of(error) in (409, 412):
                return True
            raise failed("put_object", self.place(key), error) from error
        except BotoCoreError as error:
            raise failed("put_object", self.place(key), error) from error
        return False

    def delete(self, key: str, etag: str | None = None) -> bool:
        """Deletes an object, with `etag` only if that is what is there; False when it is another. Gone is gone."""
        condition = {"IfMatch": etag} if etag else {}
        self._seen.pop(key, None)
        try:
            self.client.delete_object(**self.at(key), **condition)
        except ClientError as error:
            if code_of(error) in ("NoSuchKey", "404"):
                return True
            if status_of(error) in (409, 412):
                return self.get(key) is None
            raise failed("delete_object", self.place(key), error) from error
        except BotoCoreError as error:
            raise failed("delete_object", self.place(key), error) from error
        return True

    def call(self, name: str, key: str, **arguments: Any) -> Any:  # boto3
        """The reply to a call about one object; one that writes must be told that the object is encrypted."""
        try:
            reply = getattr(self.client, name)(**self.at(key), **arguments)
        except (ClientError, BotoCoreError) as error:
            raise failed(name, self.place(key), error) from error
        if "ServerSideEncryption" in arguments:
            self.check_encrypted(key, reply)
        return reply

    def at(self, key: str) -> dict[str, str]:
        """What names an object in a call."""
        return {"Bucket": self.bucket, "Key": f"{self._prefix}{key}"}

    @property
    def encryption(self) -> Mapping[str, Any]:
        """What every call that makes an object says of encryption. There is no way to say nothing."""
        if self._kms_key is None:
            return {"ServerSideEncryption": "AES256"}
        return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self._kms_key, "BucketKeyEnabled": True}

    def check_encrypted(self, key: str, reply: Mapping[str, Any]) -> None:
        """Raises StorageError when the server took an object and does not say that it is encrypted as asked."""
        asked, did = self.encryption["ServerSideEncryption"], reply.get("ServerSideEncryption")
        if did != asked:
            raise StorageError(
                f"{self.place(key)} was taken without the encryption that was asked for ({did or 'none'} instead of "
                f"{asked}): use a server that encrypts, and delete that object."
            )

    # ------------------------------------------------------------------------------------------ lost replies

    def _is(self, key: str, body: bytes) -> bool:
        there = self.get(key)
        return there is not None and there.body == body

    def _arrived(self, key: str, body: bytes, replacing: str, error: Exception) -> bool:
        """True when a write of which nothing was heard is there, False when something else is: ours then came too late,
        or was replaced. Raises StorageError when nothing has changed, or the server cannot be reached at all.
        """
        there = self.get(key)
        if there is not None and there.body == body:
            return True
        if (there.etag if there else NOTHING) != replacing:
            return False
        raise failed("put_object", self.place(key), error) from error
