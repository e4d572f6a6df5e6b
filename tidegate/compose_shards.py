"""Settings to the shards of a library and to the one retriever over all of them.

Each shard is made in its own replicas, the retriever over all in the gateway, where no index and no model is loaded.
On the command line and in an evaluation the library is one index: what shards answer is what that one answers.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from domain.ports import Embedder, Retriever
from retrieval.index import HybridIndex
from retrieval.phases import Recipe, recipe
from retrieval.shard_library import ShardLibrary
from retrieval.sharded import ShardedRetriever
from retrieval.sharding import shard_folder
from serving.remote import shard_name
from tidegate.compose import make_embedder, make_registry, open_folder, sound_folder
from tidegate.compose_calibration import check_calibration
from tidegate.settings import Settings


def shards_root(settings: Settings) -> Path:
    """Where folders of shards are cut."""
    return settings.data_dir / "shards"


def make_shard(settings: Settings, number: int) -> ShardLibrary:
    """The library of one shard; `refresh` it before the first question."""
    embedder = make_embedder(settings)
    check_calibration(settings, embedder)
    opening = partial(open_shard, settings, embedder, number)
    return ShardLibrary(opening, make_registry(settings), settings.canary.drill_ms / 1000, shard_name(number))


def open_shard(settings: Settings, embedder: Embedder, number: int, version: str) -> HybridIndex:
    """One shard of a version, open for searching; the first time it is cut, which takes longer."""
    whole = sound_folder(settings, version)
    folder = shard_folder(whole, shards_root(settings), number, settings.retrieval.shards)
    return open_folder(settings, embedder, folder)


def make_sharded(settings: Settings, shards: Sequence[Any], limit_s: float) -> Retriever:  # Any: a Shard each
    """One retriever over all shards, wherever they are."""
    return ShardedRetriever(shards, _recipe(settings), limit_s)


def _recipe(settings: Settings) -> Recipe:
    chosen = settings.retrieval
    return recipe(chosen.fusion, dense_share=chosen.dense_share, rrf_k=chosen.rrf_k, arm_candidates=chosen.candidates)
