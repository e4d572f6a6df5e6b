"""The files of a version to S3 and back: in parts, going on where an upload was killed, every byte checked on arrival.

A file is an object named by its sha256 below the prefix of one upload, so what is there under a name and as long as it
should be is that file. A download goes by the digests of the version's record; a file that differs is never used.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from botocore.exceptions import BotoCoreError, ClientError

from domain.errors import StorageError
from retrieval.fingerprint import sha256_of
from retrieval.s3_errors import code_of, failed
from retrieval.s3_objects import Objects

PART = 8 << 20  # bytes of a part; S3 wants 5 MiB at least
PARTS = 9000  # of one upload at most; S3 allows 10,000, and a file may need larger parts
AT_ONCE = 4  # parts on their way at the same time: 32 MiB of memory
BLOCK = 16 << 20  # bytes asked for at a time; a connection that breaks costs no more than this again
TRIES = 4  # to read a block


@dataclass(frozen=True, slots=True)
class File:
    """A file of a version: how long it is, and the digest of its content."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An upload in parts that was never completed. `bytes` of it arrived, and something `last` then, in server time."""

    key: str
    upload: str
    bytes: int
    last: datetime


class Transfer:
    """Files to and from `objects`. `part` is how many bytes travel in one piece."""

    def __init__(self, objects: Objects, part: int = PART) -> None:
        self._objects, self._part = objects, part

    # ------------------------------------------------------------------------------------------ there

    def upload(self, folder: Path, files: Mapping[str, File], under: str) -> int:
        """Every file is below `under` when this returns; how many bytes had to be sent comes back."""
        there = {listed.key: listed.bytes for listed in self._objects.listed(under)}
        begun = {each.key: each.upload for each in unfinished(self._objects, under)}
        wanted = {f"{under}{file.sha256}": (folder / name, file) for name, file in files.items()}
        missing = {key: at for key, at in wanted.items() if there.get(key) != at[1].bytes}
        small = {key: at for key, at in missing.items() if at[1].bytes <= self._part}
        with ThreadPoolExecutor(AT_ONCE, "upload") as pool:
            for _ in pool.map(lambda item: self._objects.put(item[0], item[1][0].read_bytes()), small.items()):
                pass
            sent = sum(file.bytes for _, file in small.values())
            for key in missing.keys() - small.keys():
                path, file = missing[key]
                sent += self._in_parts(pool, path, file, key, begun.get(key))
        return sent

    def _in_parts(self, pool: ThreadPoolExecutor, path: Path, file: File, key: str, upload: str | None) -> int:
        length = max(self._part, -(-file.bytes // PARTS))
        count = -(-file.bytes // length)
        arrived = self._arrived(key, upload) if upload else {}
        if any(size != min(length, file.bytes - (n - 1) * length) for n, (size, _) in arrived.items()):
            self._objects.call("abort_multipart_upload", key, UploadId=upload)  # cut in other pieces than these
            upload, arrived = None, {}
        if upload is None:
            reply = self._objects.call("create_multipart_upload", key, **self._objects.encryption)
            upload = str(reply["UploadId"])

        def send(number: int) -> tuple[int, str]:
            with path.open("rb") as source:
                source.seek((number - 1) * length)
                body = source.read(length)
            reply = self._objects.call("upload_part", key, UploadId=upload, PartNumber=number, Body=body)
            return number, str(reply["ETag"])

        absent = [number for number in range(1, count + 1) if number not in arrived]
        tags = {number: tag for number, (_, tag) in arrived.items()} | dict(pool.map(send, absent))
        self._complete(key, upload, tags, file)
        return sum(min(length, file.bytes - (number - 1) * length) for number in absent)

    def _arrived(self, key: str, upload: str) -> dict[int, tuple[int, str]]:
        """Size and tag of each part that is there, by number; none when the upload is over meanwhile."""
        pages = self._objects.client.get_paginator("list_parts").paginate(**self._objects.at(key), UploadId=upload)
        try:
            parts = [part for page in pages for part in page.get("Parts", ())]
        except (ClientError, BotoCoreError) as error:
            raise failed("list_parts", self._objects.place(key), error) from error
        return {int(part["PartNumber"]): (int(part["Size"]), str(part["ETag"])) for part in parts}

    def _complete(self, key: str, upload: str, tags: Mapping[int, str], file: File) -> None:
        parts = [{"PartNumber": number, "ETag": tags[number]} for number in sorted(tags)]
        try:
            reply = self._objects.client.complete_multipart_upload(
                **self._objects.at(key), UploadId=upload, MultipartUpload={"Parts": parts}
            )
        except (ClientError, BotoCoreError) as error:
            # It is over: by us, whose reply was lost, or by somebody else who sent the very same file.
            if any(each.key == key and each.bytes == file.bytes for each in self._objects.listed(key)):
                return
            raise failed("complete_multipart_upload", self._objects.place(key), error) from error
        self._objects.check_encrypted(key, reply)

    # ------------------------------------------------------------------------------------------ back

    def download(self, under: str, files: Mapping[str, File], into: Path) -> None:
        """Every file below `under` is in the empty folder `into`. Raises StorageError naming one that is not there or
        not what was published.
        """
        for name in files:
            (into / _within(name)).parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(AT_ONCE, "download") as pool:
            for _ in pool.map(lambda item: self._fetch(under, item[1], into / item[0]), files.items()):
                pass

    def _fetch(self, under: str, file: File, path: Path) -> None:
        key, digest = f"{under}{file.sha256}", sha256()
        with path.open("wb") as target:
            for begin in range(0, file.bytes, BLOCK):
                block = self._block(key, begin, min(begin + BLOCK, file.bytes))
                digest.update(block)
                target.write(block)
        if digest.hexdigest() != file.sha256:
            raise StorageError(
                f"{self._objects.place(key)} is not what was published as {path.name}, it is damaged or was tampered "
                "with: restore it from an earlier version of the object, or build that version again."
            )

    def _block(self, key: str, begin: int, end: int) -> bytes:
        """Bytes `begin` to `end`, asked for again when the connection breaks in the middle."""
        for attempt in range(1, TRIES + 1):
            try:
                reply = self._objects.client.get_object(**self._objects.at(key), Range=f"bytes={begin}-{end - 1}")
                return bytes(reply["Body"].read())
            except ClientError as error:
                raise self._absent(key, error) from error
            except BotoCoreError as error:
                if attempt == TRIES:
                    raise failed("get_object", self._objects.place(key), error) from error
        raise AssertionError("the last attempt returns or raises: this is a bug")

    def _absent(self, key: str, error: ClientError) -> StorageError:
        if code_of(error) in ("NoSuchKey", "404", "InvalidRange"):
            place = self._objects.place(key)
            return StorageError(
                f"{place} is missing or too short: restore it from an earlier version of the object, or build that "
                "version again."
            )
        return failed("get_object", self._objects.place(key), error)


def files_of(folder: Path, without: frozenset[str] = frozenset()) -> dict[str, File]:
    """The files in a folder by their path in it, but not those named by `without`. Reads all of them."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: File(path.stat().st_size, sha256_of(path)) for name, path in paths.items() if name not in without}


def unfinished(objects: Objects, under: str) -> Iterator[Unfinished]:
    """Every upload in parts below `under` that was not completed."""
    prefix = objects.at(under)["Key"]
    beginning = prefix.removesuffix(under)
    pages = objects.client.get_paginator("list_multipart_uploads").paginate(Bucket=objects.bucket, Prefix=prefix)
    try:
        uploads = [upload for page in pages for upload in page.get("Uploads", ())]
        for upload in uploads:
            key, id = str(upload["Key"]), str(upload["UploadId"])
            if not key.startswith(prefix):
                continue
            listed = objects.client.get_paginator("list_parts").paginate(Bucket=objects.bucket, Key=key, UploadId=id)
            parts = [part for page in listed for part in page.get("Parts", ())]
            last = max((part["LastModified"] for part in parts), default=upload["Initiated"])
            yield Unfinished(key.removeprefix(beginning), id, sum(int(part["Size"]) for part in parts), last)
    except (ClientError, BotoCoreError) as error:
        raise failed("list_multipart_uploads", objects.place(under), error) from error


def _within(name: str) -> PurePosixPath:
    """A path that stays within its folder. Raises StorageError for one that does not: nobody of us wrote it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise StorageError(f"A version's record names {name!r}, which is no file within it: it was tampered with.")
    return path
