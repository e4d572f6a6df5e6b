"""Settings to the registry on S3. Part of compose.py; buckets that a sync reads are compose_source.py.

One registry a process: it knows what has not changed since it last looked, and which versions are in use here.
"""

from functools import cache
from pathlib import Path
from typing import Any

from domain.errors import StorageError
from retrieval.s3_objects import Objects
from retrieval.s3_registry import S3Registry
from tidegate.settings import Settings
from tidegate.settings_registry import Registry

CONNECT_S = 5.0
AT_ONCE = 24  # connections kept: objects read at the same time by several threads of a server


def make_s3_registry(settings: Settings) -> S3Registry:
    """The registry in the bucket of the settings. Raises StorageError without region or credentials."""
    root = settings.registry.cache_dir or settings.data_dir / "registry-cache"
    return _registry(settings.registry, root)


@cache
def _registry(chosen: Registry, root: Path) -> S3Registry:
    bucket, _, prefix = str(chosen.url).removeprefix("s3://").partition("/")
    objects = Objects(_client(chosen), bucket, prefix, chosen.kms_key_id)
    return S3Registry(objects, root, int(chosen.cache_gb * 1e9), abandoned_s=chosen.abandoned_hours * 3600)


def _client(chosen: Registry) -> Any:  # boto3
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    from retrieval.s3_errors import CREDENTIALS, failed

    config = Config(
        connect_timeout=CONNECT_S,
        read_timeout=chosen.timeout_s,
        retries={"total_max_attempts": chosen.attempts, "mode": "standard"},
        max_pool_connections=AT_ONCE,
        s3={"addressing_style": "path" if chosen.endpoint_url else "auto"},
    )
    try:
        session = boto3.Session(region_name=chosen.region)
        client = session.client("s3", endpoint_url=chosen.endpoint_url, config=config)
        known = session.get_credentials()
    except BotoCoreError as error:
        raise failed("client", str(chosen.url), error) from error
    if known is None:
        raise StorageError(f"{chosen.url} cannot be asked without credentials: {CREDENTIALS}.")
    return client
