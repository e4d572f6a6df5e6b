"""A library cut in two, each half in a deployment of its own: what the service finds is what one index finds."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from domain.releases import Move, Rollout, Verb
from domain.types import Document, Query, Scope
from retrieval.building import build
from serving.graph import build as build_graph
from tests.ray.conftest import Graph
from tidegate.compose import make_embedder, make_registry, open_index
from tidegate.compose_graph import graph_plan
from tidegate.loading import load
from tidegate.settings import Settings

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),  # Ray's own models
]

READER = Scope("harbour", frozenset({"public"}))
ALONE = {"min_replicas": "1", "max_replicas": "1", "num_cpus": "0.05"}
CHOSEN = {
    "embedding.backend": "hashing",
    "rerank.backend": "none",
    "retrieval.shards": "2",
    "retrieval.dense": "faiss",
    "tracking.enabled": "false",
} | {
    f"serving.stages.{stage}.{key}": value
    for stage in ("gateway", "rewriter", "retriever", "reranker", "generator")
    for key, value in ALONE.items()
}


@pytest.fixture(scope="module")
def cut(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Settings, str]]:
    """Settings and address of an application beside that of the other tests, in the same Ray."""
    from ray import serve

    folder = tmp_path_factory.mktemp("cut")
    settings = load(None, {}, CHOSEN | {"data_dir": str(folder)}, cwd=folder).settings
    registry = make_registry(settings)
    documents = [
        Document(f"d{i}", "", f"Pump {i} runs at {i % 3} bar.", "", "", "", READER.groups, READER.tenant, "")
        for i in range(20)
    ]
    built = build(documents, embedder=make_embedder(settings), registry=registry, staging=folder / "staging")
    registry.move(Move(Verb.PROMOTE, "", "a test", Rollout(), Rollout(stable=built.version.id, revision=1)))
    serve.run(build_graph(graph_plan(settings)), name="cut", route_prefix="/cut")
    yield settings, f"{graph.url}/cut"
    serve.delete("cut")


def search(url: str, query: str) -> list[tuple[str, float]]:
    address = urlsplit(url)
    asked = json.dumps({"query": query, "k": 10})
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)) as connection:
        connection.request("POST", f"{address.path}/v1/search", asked, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        body = json.loads(reply.read())
    assert reply.status == 200, body
    return [(hit["chunk_id"], hit["score"]) for hit in body["hits"]]


def test_two_shards_find_what_one_index_finds(cut: tuple[Settings, str]) -> None:
    settings, url = cut
    version = make_registry(settings).rollout().stable
    whole = open_index(settings, make_embedder(settings), version or "")
    for query in ("pump 7", "bar", "runs at 2 bar"):
        assert search(url, query) == [(hit.chunk.id, hit.score) for hit in whole.search(Query(query), READER, 10)]


def test_each_shard_is_a_deployment_of_its_own(cut: tuple[Settings, str]) -> None:
    from ray import serve

    deployments = serve.status().applications["cut"].deployments
    assert {"retriever-0", "retriever-1"} <= deployments.keys()
    assert "retriever" not in deployments
    assert sorted(path.name for path in Path(cut[0].data_dir / "shards").glob("v*/*")) == ["0-of-2", "1-of-2"]
