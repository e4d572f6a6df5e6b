"""On a real server with two replicas of everything: what is forgotten, given other readers or revoked is so in 2 s."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from serving.address import free_port
from tests.ray.release import FOLLOWED_S, Operator
from tests.tidegate.tiny import admit, write_corpus

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = """
serving:
  port: {port}
  stages: {{retriever: {{min_replicas: 2, max_replicas: 2}}}}
embedding: {{backend: hashing}}
rerank: {{backend: none}}
tracking: {{enabled: false}}
access: {{mode: keys, default_groups: [staff]}}
"""
KILNS = {f"shed {i}/kiln.txt": f"The kiln of shed {i} reaches {900 + i} degrees.\n" for i in range(8)}
ENOUGH = 12  # searches in a row: by then both replicas have answered


@dataclass(frozen=True)
class Reader:
    """Somebody with a key."""

    url: str
    key: str

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body."""
        sent = urllib.request.Request(
            f"{self.url}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            method=method,
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(sent, timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def finds(self, doc_id: str) -> bool:
        """True when a search finds the document."""
        status, told = self.ask("POST", "/v1/search", {"query": "kiln degrees", "k": 20})
        assert status == 200, told
        return doc_id in [hit["doc_id"] for hit in told["hits"]]


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    operator = Operator(tmp_path_factory.mktemp("amending"), free_port())
    (operator.folder / "tidegate.yaml").write_text(SETTINGS.format(port=operator.port))
    corpus = operator.folder / "corpus"
    write_corpus(corpus, {})
    for name, text in KILNS.items():
        (corpus / name).parent.mkdir()
        (corpus / name).write_text(text)
    operator.must("build", "corpus")
    admit(Path(operator.folder / ".tidegate"))
    operator.must("keys", "add", "first", "--groups", "staff")
    with operator.serving({}):
        yield operator


def key(operator: Operator, name: str, *more: str) -> Reader:
    told = json.loads(operator.must("keys", "add", name, "--json", *more))
    time.sleep(FOLLOWED_S)
    return Reader(operator.url, told["key"])


def settles(claim: Callable[[], bool], since: float) -> None:
    """Two seconds after `since` the claim holds, whichever replica answers; another is given to a busy machine."""
    time.sleep(max(0.0, since + FOLLOWED_S + 1.0 - time.monotonic()))
    assert all(claim() for _ in range(ENOUGH))


def test_what_the_command_line_forgets_is_gone_from_both_replicas_in_two_seconds(operator: Operator) -> None:
    reader, doc_id = key(operator, "forgetting", "--groups", "staff"), "shed 1/kiln.txt"
    assert all(reader.finds(doc_id) for _ in range(ENOUGH))
    operator.must("forget", doc_id)
    settles(lambda: not reader.finds(doc_id), time.monotonic())
    operator.must("restore", doc_id)
    settles(lambda: reader.finds(doc_id), time.monotonic())


def test_what_is_acknowledged_over_http_is_so_at_once(operator: Operator) -> None:
    reader = key(operator, "clerk", "--groups", "staff", "--scopes", "ask,search,admin")
    doc_id = "shed 2/kiln.txt"
    assert reader.finds(doc_id)
    assert reader.ask("DELETE", f"/v1/documents/{quote(doc_id)}?reason=asked")[0] == 200
    assert not any(reader.finds(doc_id) for _ in range(ENOUGH))
    assert reader.ask("DELETE", "/v1/documents/never")[0] == 404
    other = "shed 3/kiln.txt"
    assert reader.ask("PUT", f"/v1/documents/{quote(other)}/groups", {"groups": ["hr"]})[0] == 200
    assert not any(reader.finds(other) for _ in range(ENOUGH))
    assert reader.ask("POST", "/v1/rollout/rollback", {})[0] == 403  # the pointer is the operator's


def test_a_key_opens_nothing_two_seconds_after_it_was_revoked(operator: Operator) -> None:
    reader = key(operator, "leaving", "--groups", "staff")
    assert reader.finds("shed 4/kiln.txt")
    operator.must("keys", "revoke", "leaving")
    time.sleep(FOLLOWED_S)
    asked = {reader.ask("POST", "/v1/search", {"query": "kiln"})[0] for _ in range(ENOUGH)}
    assert asked == {401}
