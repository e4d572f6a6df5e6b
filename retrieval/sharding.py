"""One shard of a version: which documents it holds, and a folder with these alone, cut when it is first opened.

A shard folder is a version folder of fewer documents and is opened by the same code. It follows from the version and
the number of shards, so it stands outside of the registry, may be removed at any time, and is cut again when damaged.
Why it is cut at all rather than mapped: docs/adr/0041. Searching several shards as one is sharded.py.
"""

import fcntl
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError, StorageError
from retrieval import passage_tokens
from retrieval.building import write_manifest
from retrieval.disk import cannot_write
from retrieval.fingerprint import MANIFEST, sha256_of
from retrieval.jsonrecords import sync_tree
from retrieval.parts import PARTS, Draft
from retrieval.stored import documents_of, manifest_of, mapped
from retrieval.workplace import workplace

BLOCK_ROWS = 65_536  # vectors copied at a time: about 100 MB of 384 dimensions

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def shards_of(doc_ids: Sequence[str], shards: int) -> NDArray[np.int64]:
    """int64 [n_documents]: the shard of each document, 0 to `shards` - 1, the same on every machine and for ever.

    Each shard draws a number for the document and the highest wins, so one shard more takes its documents evenly from
    all others and moves no other. Source: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
    IEEE/ACM Transactions on Networking 1998 (rendezvous hashing).
    """
    digests = b"".join(blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest() for doc_id in doc_ids)
    keys = np.frombuffer(digests, "<u8").astype(np.uint64)
    highest, winner = np.zeros(keys.size, np.uint64), np.zeros(keys.size, np.int64)
    for shard in range(shards):
        drawn = _mixed(keys ^ _mixed(np.array([shard + 1], np.uint64)))
        wins = drawn > highest  # a tie stays with the lower shard
        highest[wins], winner[wins] = drawn[wins], shard
    return winner


def document_of(chunk_id: str) -> str:
    """The id of the document that a chunk id names; see chunking.py."""
    return chunk_id.rpartition("#")[0]


def shard_folder(version: Path, root: Path, shard: int, shards: int) -> Path:
    """The folder of one shard of the version in the folder `version`, cut below `root` unless it is there and whole.

    A version that was built again under its name is cut again too. One process of a machine cuts, others wait for it.
    Raises StorageError when the version is damaged or `root` cannot be written.
    """
    folder = root / version.name / f"{shard}-of-{shards}"
    if _whole(folder, version):
        return folder
    try:
        with _alone(root, f"{shard}-of-{shards}"):
            if not _whole(folder, version):
                with workplace(root / ".cutting" / f"{shard}-of-{shards}", version.name) as staged:
                    cut(version, staged, shard, shards)
                    sync_tree(staged)  # a file that a crash left without content would still have its size
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.parent.mkdir(parents=True, exist_ok=True)
                    staged.rename(folder)
    except OSError as error:
        raise cannot_write(root, error) from error
    return folder


def folders(root: Path) -> dict[str, Path]:
    """The folders of shards below `root`, by version."""
    there = root.iterdir() if root.is_dir() else ()
    return {path.name: path for path in there if path.is_dir() and not path.name.startswith(".")}


def cut(version: Path, into: Path, shard: int, shards: int) -> None:
    """Writes into an empty folder what this shard holds of a version. No text is analysed or embedded again."""
    if not 0 <= shard < shards:
        raise ConfigError(f"There is no shard {shard} of {shards}: shards number from 0 to {shards - 1}.")
    manifest = manifest_of(version)
    mine = shards_of(documents_of(version), shards) == shard  # [n_documents]
    rows = np.flatnonzero(mine[mapped(version / "document_of.npy")])
    _copy_lines(version, into, rows)
    np.save(into / "texts.npy", mapped(version / "texts.npy")[rows], allow_pickle=False)
    _copy_rows(mapped(version / "vectors.npy"), into / "vectors.npy", rows)
    passage_tokens.copy(version, into, rows.tolist())
    head: dict[str, Any] = {key: value for key, value in manifest.items() if key != "files"}
    head["shard"] = {"number": shard, "of": shards, "whole": _content(version)}
    head["counts"] = {"documents": int(mine.sum()), "chunks": len(rows)}
    draft = Draft(into, head, version)
    for write in PARTS.values():
        write(draft)
    write_manifest(draft)


def _copy_lines(version: Path, into: Path, rows: NDArray[np.int64]) -> None:
    offsets = mapped(version / "offsets.npy")
    lengths = offsets[rows + 1] - offsets[rows]
    np.save(into / "offsets.npy", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), allow_pickle=False)
    with (version / "chunks.jsonl").open("rb") as source, (into / "chunks.jsonl").open("wb") as target:
        for start, length in zip(offsets[rows].tolist(), lengths.tolist(), strict=True):
            source.seek(start)
            target.write(source.read(length))


def _copy_rows(values: NDArray[np.float32], path: Path, rows: NDArray[np.int64]) -> None:
    """A file of these rows, written block by block."""
    shape = (len(rows), values.shape[1])
    with path.open("wb") as target:
        header = {"descr": np.lib.format.dtype_to_descr(values.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(target, header)
        for start in range(0, len(rows), BLOCK_ROWS):
            target.write(np.ascontiguousarray(values[rows[start : start + BLOCK_ROWS]]).tobytes())


def _whole(folder: Path, version: Path) -> bool:
    """True when every file is there, cut from the very content that the version has now."""
    if not folder.is_dir():
        return False
    try:
        return bool(manifest_of(folder).get("shard", {}).get("whole") == _content(version))
    except StorageError:
        return False


def _content(version: Path) -> str:
    """The digest of everything in a version. Its name covers texts, but no vector to the last bit."""
    try:
        return sha256_of(version / MANIFEST)
    except OSError as error:
        raise StorageError(
            f"Index version {version} cannot be read ({error.strerror or error}): restore that folder, or remove it "
            "and build again."
        ) from error


@contextmanager
def _alone(root: Path, name: str) -> Iterator[None]:
    """One process at a time; the kernel drops the lock of one that dies."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a key depends on every other: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        mixed = keys + _GOLDEN
        for shift, factor in _MIX:
            mixed = (mixed ^ (mixed >> shift)) * factor
        return mixed ^ (mixed >> np.uint64(31))
