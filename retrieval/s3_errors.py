"""What went wrong at S3, said to the operator: bucket and key, what was wanted, and the way out.

Every error of the client becomes a StorageError here, so that nothing of the vendor travels further. Who calls again is
not decided here: the client repeats what is worth repeating before it raises, and s3_objects.py conditional writes.
"""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from domain.errors import StorageError

# IAM's name of what a call of the client needs.
RIGHTS: Mapping[str, str] = {
    "get_object": "s3:GetObject",
    "put_object": "s3:PutObject",
    "delete_object": "s3:DeleteObject",
    "list_objects_v2": "s3:ListBucket",
    "create_multipart_upload": "s3:PutObject",
    "upload_part": "s3:PutObject",
    "complete_multipart_upload": "s3:PutObject",
    "abort_multipart_upload": "s3:AbortMultipartUpload",
    "list_multipart_uploads": "s3:ListBucketMultipartUploads",
    "list_parts": "s3:ListMultipartUploadParts",
}
CREDENTIALS = "set AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role"


def failed(call: str, place: str, error: Exception) -> StorageError:
    """The error of a call about `place`, an s3:// address, as one sentence."""
    if isinstance(error, ClientError):
        return StorageError(_refused(call, place, error))
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return StorageError(f"{place} cannot be asked without credentials ({error}): {CREDENTIALS}.")
    if isinstance(error, NoRegionError):
        return StorageError(f"{place} cannot be asked without a region: set registry.region or AWS_DEFAULT_REGION.")
    if isinstance(error, ConnectionError | HTTPClientError):
        return StorageError(
            f"{place} cannot be reached ({error}): check the network, registry.endpoint_url and registry.region; "
            "whatever was being written is there as a whole or not at all."
        )
    if isinstance(error, BotoCoreError):
        return StorageError(f"{place} cannot be asked ({error}): check registry.url and the credentials.")
    raise error


def code_of(error: Exception) -> str:
    """S3's code of an error, or the HTTP status where it has none; empty for what is no reply."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def status_of(error: Exception) -> int:
    """The HTTP status of a reply that is an error; 0 for what is no reply."""
    told: Any = error.response if isinstance(error, ClientError) else {}  # botocore
    return int(told.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _refused(call: str, place: str, error: ClientError) -> str:
    code, right = code_of(error), RIGHTS.get(call, call)
    told = str(error.response.get("Error", {}).get("Message", "")) or "no reason given"
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or error.response.get("Error", {}).get("Region") or "another region"
    kind = "KMS" if code.startswith("KMS") or "kms" in told.casefold() else code
    sentence = next((sentence for codes, sentence in SENTENCES if kind in codes), OTHERWISE)
    bucket = place.removeprefix("s3://").partition("/")[0]
    return sentence.format(place=place, bucket=bucket, region=region, code=code, told=told, right=right)


# What is said of S3's codes; an error without a body has its status for a code.
SENTENCES: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"NoSuchBucket"}),
        "Bucket {bucket} of {place} does not exist: create it, or name another one in registry.url.",
    ),
    (
        frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestExpired"}),
        f"{{place}} does not accept the credentials ({{code}}): {CREDENTIALS}.",
    ),
    (
        frozenset({"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}),
        "Bucket {bucket} of {place} is in {region}: set registry.region to the region of the bucket.",
    ),
    (
        frozenset({"KMS"}),
        "{place} cannot be encrypted or read ({code}: {told}): check registry.kms_key_id and the policy of that key.",
    ),
    (
        frozenset({"AccessDenied", "403", "AllAccessDisabled"}),
        "{place} may not be used ({code}: {told}): allow this identity {right} there, and the use of its KMS key.",
    ),
    (
        frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "503", "500"}),
        "{place} was refused several times ({code}: {told}): try again in a while.",
    ),
    (
        frozenset({"NotImplemented", "501"}),
        "{place}: this server lacks what is needed ({told}): use one with conditional writes and encryption.",
    ),
)
OTHERWISE = "{place} was refused ({code}: {told}): check registry.url, and whether this identity may {right} there."
