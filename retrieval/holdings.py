"""Whose document an id is, looked up in the versions there are: newest first, until one holds it.

Only who may delete asks this. Readers ask an open index, which knows no document that they may not see.
"""

from bisect import bisect_left
from functools import lru_cache
from pathlib import Path

import numpy as np
import orjson

from domain.errors import IncompatibleIndex, NotFound, StorageError
from domain.ports import IndexRegistry
from retrieval.stored import documents_of, manifest_of, mapped

KEPT = 3  # versions whose document ids stay in memory: some 100 bytes a document


class Holdings:
    """The documents of every version of a registry."""

    def __init__(self, registry: IndexRegistry) -> None:
        self._registry = registry
        self._documents = lru_cache(KEPT)(documents_of)  # a version never changes

    def tenant_of(self, doc_id: str) -> str | None:
        """The tenant of a document, None where no version holds it.

        Raises StorageError when no version that can be read holds it and one cannot be read: it may be there.
        """
        trouble: Exception | None = None
        for version in reversed(self._registry.versions()):
            try:
                tenant = self._tenant_in(self._registry.folder(version.id), doc_id)
            except NotFound:
                continue  # removed since they were listed
            except (StorageError, IncompatibleIndex) as error:
                trouble = error
                continue
            if tenant is not None:
                return tenant
        if trouble is not None:
            raise StorageError(f"Whether a version holds document '{doc_id[:200]}' is not known: {trouble}")
        return None

    def _tenant_in(self, folder: Path, doc_id: str) -> str | None:
        documents = self._documents(folder)
        place = bisect_left(documents, doc_id)
        if place == len(documents) or documents[place] != doc_id:
            return None
        manifest_of(folder)  # sizes of all files, before anything is read by its place in them
        row = int(np.argmax(mapped(folder / "document_of.npy") == place))
        readers = orjson.loads((folder / "readers.json").read_bytes())
        tenant: str = readers[int(mapped(folder / "readers_of.npy")[row])][0]
        return tenant
