"""A place by its name to what a sync reads: a folder, or the objects of a bucket.

Makes clients of S3 for sources, which are configured as boto3 is: a source is somebody else's bucket, and has nothing
to do with where versions are kept.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import BadRequest, CorpusError, StorageError

if TYPE_CHECKING:
    from retrieval.documents import Corpus
    from retrieval.origins import Origin
    from tidegate.settings import Settings

S3 = "s3://"
CONNECT_S, READ_S, ATTEMPTS = 5.0, 60.0, 4


def make_source(settings: "Settings", place: str, format: str, groups: str) -> "tuple[Corpus, Origin]":
    """How a place is read, and what is there.

    Raises CorpusError for a folder that does not exist, BadRequest for an address that is none, and StorageError
    without region or credentials.
    """
    from retrieval.origins import FolderOrigin
    from tidegate.build import corpus_of

    if place.startswith(S3):
        return _bucket(settings, place, format, groups)
    if not Path(place).exists():
        raise CorpusError(f"{place} does not exist: name a folder of documents, or s3://BUCKET/PREFIX.")
    documents = corpus_of(settings, Path(place), format, groups)
    return documents, FolderOrigin(documents)


def _bucket(settings: "Settings", place: str, format: str, groups: str) -> "tuple[Corpus, Origin]":
    from retrieval.bucket import BucketOrigin, address
    from tidegate.build import corpus_of

    if format == "beir":
        raise BadRequest("--format beir is for folders: a bucket is read file by file.", "format")
    bucket, prefix = address(place)
    documents = corpus_of(settings, Path(place), "folder", groups)
    return documents, BucketOrigin(_client(place), bucket, prefix, settings.data_dir / "fetched")


def _client(place: str) -> Any:  # boto3
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    from retrieval.s3_errors import CREDENTIALS

    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
        s3={"addressing_style": "auto"},
    )
    try:
        session = boto3.Session()
        client, known = session.client("s3", config=config), session.get_credentials()
    except BotoCoreError as error:
        raise StorageError(f"{place} cannot be asked ({error}): set AWS_DEFAULT_REGION; {CREDENTIALS}.") from error
    if known is None:
        raise StorageError(f"{place} cannot be asked without credentials: {CREDENTIALS}.")
    return client
