"""What a user would pick for dense search instead: plain FAISS indexes with a bitmap of the rows a reader may see."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Search = Callable[[NDArray[np.float32], int], NDArray[np.int64]]  # (query, n) -> rows, fewer where FAISS finds fewer

LINKS, EF_SEARCH = 16, 64
LISTS, NPROBE = 512, 16


def peers(vectors: NDArray[np.float32]) -> "dict[str, Callable[[], Any]]":  # FAISS indexes
    """How to build each peer, by name. Each holds a copy of the vectors."""
    import faiss

    dimensions, inner = vectors.shape[1], faiss.METRIC_INNER_PRODUCT

    def flat() -> Any:
        index: Any = faiss.IndexFlatIP(dimensions)
        index.add(vectors)
        return index

    def hnsw() -> Any:
        index: Any = faiss.IndexHNSWFlat(dimensions, LINKS, inner)
        index.add(vectors)
        return index

    def ivf() -> Any:
        lists = min(LISTS, max(1, len(vectors) // 39))  # FAISS warns below 39 rows a list
        index: Any = faiss.index_factory(dimensions, f"IVF{lists},Flat", inner)
        index.train(vectors)
        index.add(vectors)
        return index

    return {"faiss Flat": flat, "faiss HNSW16": hnsw, "faiss IVF512": ivf}


def search(name: str, index: Any, mask: NDArray[np.bool_]) -> Search:
    """A search of this peer for a reader who sees `mask`, on one thread."""
    import faiss

    untyped: Any = faiss  # the stubs do not know all of it
    faiss.omp_set_num_threads(1)
    parameters: Any = {
        "faiss Flat": untyped.SearchParameters,
        "faiss HNSW16": lambda **more: untyped.SearchParametersHNSW(efSearch=EF_SEARCH, **more),
        "faiss IVF512": lambda **more: untyped.SearchParametersIVF(nprobe=NPROBE, **more),
    }[name]
    bits = np.packbits(mask, bitorder="little")
    selector = None if mask.all() else faiss.IDSelectorBitmap(mask.size, faiss.swig_ptr(bits))

    def found(query: NDArray[np.float32], n: int, _alive: object = bits) -> NDArray[np.int64]:
        with_filter = parameters() if selector is None else parameters(sel=selector)
        rows: NDArray[np.int64] = index.search(query[None], n, params=with_filter)[1][0]
        return rows[rows >= 0]

    return found


def size_mb(index: Any) -> float:  # any FAISS index
    """MiB of a FAISS index as it would be written to disk."""
    import faiss

    written = faiss.VectorIOWriter()
    faiss.write_index(index, written)
    return float(written.data.size()) / 2**20
