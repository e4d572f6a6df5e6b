"""Settings as flat leaves: what `config show` prints, what the digest hashes, and what neither may reveal."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import SecretStr

from tidegate.model_content import model_content
from tidegate.section import Section

# Where and how large the service runs, and what it is measured on: none of it changes an answer. Timeouts are *not*
# here, because a stage that is cut short answers differently; neither are model folders, which enter with what they
# hold, and files, because another path is another file as far as anybody can tell from here. How documents are cut and
# who may read those that do not say it is fixed when a version is built, and the version's name stands for it.
NOT_SERVED = frozenset(
    {"sessions.store", "sessions.url", "sessions.keep_hours", "sessions.max_kept",
     "data_dir", "registry", "ingestion", "chunking", "access.default_groups", "embedding.threads", "embedding.device",
     "embedding.query_cache", "rerank.device", "retrieval.shards", "rerank.threads", "rerank.batch_tokens",
     "serving.host", "serving.port", "serving.haproxy", "serving.max_body_bytes",
     "serving.stages", "costs", "evaluation", "judge", "tracking", "canary", "sample",
     "access.rules", "uploads", "access.admin_key_file", "access.keys_file", "access.open_to_network"}
)  # fmt: skip


def leaves(section: Section, under: str = "") -> Iterator[tuple[str, object]]:
    """Every (key path, value) in the order of settings.py; a list is one leaf."""
    for key in type(section).model_fields:
        value, path = getattr(section, key), f"{under}{key}"
        if isinstance(value, Section):
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


def digest(settings: Section, leave_out: frozenset[str] = NOT_SERVED) -> str:
    """16 hex digits naming what is served: equal digests answer alike. Secrets and `leave_out` do not enter."""
    there = {path: value for path, value in leaves(settings) if not _is_under(path, leave_out)}
    served = {path: shown(path, value) for path, value in there.items()}
    served |= {
        f"{path} holds": model_content(value)
        for path, value in there.items()
        if path.endswith(".folder") and isinstance(value, Path)
    }
    text = json.dumps(served, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


MASK = "********"
_SECRET_KEY = re.compile(
    r"secret|passw(or)?d|credential|api_?key|access_?key|private_?key|(^|[._])(\w+_)?token$", re.IGNORECASE
)
_CREDENTIALS_IN_URL = re.compile(r"(?<=://)[^/?#\s]*@")


def shown(path: str, value: object) -> object:
    """The value as plain JSON data that may be printed: secrets and credentials in addresses are masked."""
    if isinstance(value, SecretStr) or (_SECRET_KEY.search(path) and value is not None):
        return MASK
    if isinstance(value, Section):  # an item of a list: only what was written, or every gate would be six keys long
        return {key: shown(f"{path}.{key}", inner) for key, inner in value.model_dump(exclude_defaults=True).items()}
    if isinstance(value, tuple | list):
        return [shown(path, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): shown(f"{path}.{key}", inner) for key, inner in value.items()}
    if isinstance(value, str | Path):
        return _CREDENTIALS_IN_URL.sub(f"{MASK}@", str(value))
    return value


def _is_under(path: str, roots: frozenset[str]) -> bool:
    return any(path == root or path.startswith(f"{root}.") for root in roots)
