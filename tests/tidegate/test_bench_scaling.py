"""The bench that measures what a chunk and a shard cost."""

import json
from pathlib import Path

import pytest

from domain.types import Document
from retrieval.building import build
from retrieval.phases import recipe
from retrieval.registry import FolderRegistry
from retrieval.sharded import ShardedRetriever
from tidegate.bench_retrieve import READER
from tidegate.bench_scaling import Searched, Timed, heap_slope
from tidegate.bench_vectors import WordSums
from tidegate.cli import main


def test_what_is_in_both_processes_is_no_cost_of_a_chunk() -> None:
    # 100 bytes a chunk beside a million for caches and libraries
    whole, shard = Searched(1.0, 1_400_000, 90.0), Searched(1.0, 1_100_000, 90.0)
    assert heap_slope(whole, shard, 3000) == pytest.approx(100)
    assert heap_slope(Searched(1.0, None, None), shard, 3000) is None


async def test_a_measured_shard_looks_chunks_up_as_a_served_one_does(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path)
    made = Document("d", "", "Pump 7 runs at 2 bar.", "", "", "", READER.groups, READER.tenant, "")
    version = build([made], embedder=WordSums(), registry=registry, staging=tmp_path / "staging").version.id
    shard = Timed(registry.folder(version), 0)
    chunk_id = shard.index.stored.ids[0]
    chunks = await ShardedRetriever([shard], recipe("convex"), limit_s=60.0).chunks(["no-1", chunk_id], READER, version)
    assert [chunk.text for chunk in chunks] == [made.text]
    assert shard.sent > 0


@pytest.mark.slow
def test_constants_are_measured_and_needs_computed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "scaling", "--chunks", "1000", "--shards", "2", "--price", "2", "--json"]) == 0
    told = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert told["searched_bytes"]["value"] > 384 * 4  # the vector alone
    assert told["machine_hours_10M"]["peers"]["price"] == pytest.approx(2 * told["machine_hours_10M"]["value"])
    assert told["shards_1B"]["value"] > told["shards_10M"]["value"]
