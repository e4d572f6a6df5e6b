"""The real graph over HTTP: the same promises as in one process, and what only several processes can break."""

import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from domain.errors import AddressTaken
from serving.graph import start
from serving.noop import noop_plan
from serving.ray_home import Place
from tests.ray.conftest import Graph
from tests.serving.service import events

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),  # Ray's own models
]


def post(graph: Graph, path: str, body: Any, **headers: str) -> httpx2.Response:
    return httpx2.post(graph.url + path, json=body, headers=headers, timeout=30)


def test_an_answer_comes_through_four_stages(graph: Graph) -> None:
    reply = post(graph, "/v1/answers", {"question": "When does the gate open?"})
    assert reply.status_code == 200
    assert reply.json()["answer"] == "The gate opens at high water [S1]."
    assert set(reply.json()["stage_ms"]) >= {"rewrite", "retrieve", "rerank", "generate"}
    assert reply.headers["X-Index-Version"] == "noop"
    assert reply.headers.get_list("X-Request-Id") == [reply.headers["X-Request-Id"]]
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_clients_of_others_reach_the_stages_too(graph: Graph) -> None:
    asked = {"model": "tidegate", "messages": [{"role": "user", "content": "When does the gate open?"}]}
    chat = post(graph, "/v1/chat/completions", asked)
    assert chat.json()["choices"][0]["message"]["content"] == "The gate opens at high water [S1]."
    vectors = post(graph, "/v1/embeddings", {"model": "tidegate", "input": ["gate", "bell"]})
    assert [len(one["embedding"]) for one in vectors.json()["data"]] == [16, 16]
    call = {"name": "search", "arguments": {"query": "gate"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    told = post(graph, "/mcp", body, Accept="application/json, text/event-stream")
    assert told.json()["result"]["structuredContent"]["hits"]


def test_a_stream_arrives_as_events_with_one_terminal(graph: Graph) -> None:
    said = events(post(graph, "/v1/answers", {"question": "When?", "stream": True}).text)
    assert said[0][0] == "meta"
    assert [name for name, _ in said if name in ("done", "error")] == ["done"]


def test_readiness_names_every_stage(graph: Graph) -> None:
    stages = httpx2.get(f"{graph.url}/readyz", timeout=30).json()["stages"]
    assert stages == {"rewriter": True, "retriever": True, "generator": True, "reranker": True, "index": True}


def test_metrics_of_both_gateways_come_from_either(graph: Graph) -> None:
    def answers() -> float:
        text = httpx2.get(f"{graph.url}/metrics", timeout=30).text
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("tidegate_answers_total"))

    before = answers()
    for _ in range(20):
        post(graph, "/v1/answers", {"question": "When?"})
    assert {answers() - before for _ in range(6)} == {20.0}


def test_an_error_raised_in_a_replica_arrives_with_its_status_and_wait(graph: Graph) -> None:
    for body in ({"question": "throttle"}, {"question": "throttle", "stream": True}):
        reply = post(graph, "/v1/answers", body)
        assert (reply.status_code, reply.headers["Retry-After"]) == (429, "7")
        assert reply.json()["error"]["code"] == "throttled"


def test_a_bug_in_a_replica_fails_the_request_without_its_details(graph: Graph) -> None:
    reply = post(graph, "/v1/search", {"query": "crash"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "stage_failed")
    assert "secret detail" not in reply.text


def test_a_stream_that_breaks_in_a_replica_ends_with_one_error(graph: Graph) -> None:
    said = events(post(graph, "/v1/answers", {"question": "break", "stream": True}).text)
    assert [name for name, _ in said if name in ("done", "error")] == ["error"]
    assert "secret detail" not in str(said)


def test_a_reranker_that_fails_leaves_an_answer_in_fused_order(graph: Graph) -> None:
    body = post(graph, "/v1/answers", {"question": "rankless"}).json()
    assert body["status"] == "complete"
    assert any("reranker failed" in note for note in body["notes"])


def test_a_stage_that_takes_too_long_is_a_timeout(graph: Graph) -> None:
    reply = post(graph, "/v1/search", {"query": "slow"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")


def test_a_client_that_leaves_cancels_its_model_within_two_seconds(graph: Graph) -> None:
    address = urlsplit(graph.url)
    body = b'{"question": "silence", "stream": true}'
    request = b"POST /v1/answers HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
    before = len(list(graph.folder.glob("closed-*")))
    clients = 5
    for _ in range(clients):
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as connection:
            connection.sendall(request % (len(body), body))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + 2.0
    while len(list(graph.folder.glob("closed-*"))) - before < clients and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(list(graph.folder.glob("closed-*"))) - before == clients
    text = httpx2.get(f"{graph.url}/metrics", timeout=30).text
    assert "tidegate_requests_in_flight 0.0" in text


def test_a_client_that_leaves_stops_the_reading_of_its_candidates(graph: Graph) -> None:
    address = urlsplit(graph.url)
    body = b'{"query": "linger"}'
    head = b"POST /v1/search HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as connection:
        connection.sendall(head % len(body) + body)
        assert appears(graph.folder / "reading")
    assert appears(graph.folder / "stopped-reading")


def appears(path: Path, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return path.exists()


def test_a_body_sent_in_two_pieces_is_answered(graph: Graph) -> None:
    address = urlsplit(graph.url)
    body = b'{"query": "When?"}'
    head = b"POST /v1/search HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as connection:
        connection.sendall(head % len(body) + body[:5])
        time.sleep(0.3)
        connection.sendall(body[5:])
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_body_too_large_is_refused_over_the_proxy_too(graph: Graph) -> None:
    reply = post(graph, "/v1/answers", {"question": "x" * 200_000})
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_long")
    body = {"question": "Why?", "session": {"id": "s", "turns": [{"role": "user", "text": "x" * 500_000}]}}
    assert post(graph, "/v1/answers", body).status_code == 200


def test_only_this_machine_can_reach_what_listens(graph: Graph) -> None:
    home = graph.running.home.folder
    [config] = home.glob("haproxy/*/haproxy.cfg")
    binds = [line.split()[1] for line in config.read_text().splitlines() if line.strip().startswith("bind ")]
    assert len(binds) >= 3
    assert all(bind.startswith("127.0.0.1:") for bind in binds)


def test_a_taken_port_is_refused_before_anything_starts(graph: Graph) -> None:
    started = time.monotonic()
    with pytest.raises(AddressTaken, match="haproxy"):
        start(noop_plan(), Place(port=urlsplit(graph.url).port or 0))
    assert time.monotonic() - started < 5


def test_nobody_else_on_the_machine_can_reach_what_the_graph_runs_from(graph: Graph) -> None:
    assert graph.running.home.folder.stat().st_mode & 0o777 == 0o700
