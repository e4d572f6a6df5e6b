"""The pointer moves under load: no request fails, and two seconds later every answer is from where it points."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

from domain.releases import Rollout
from domain.rollout import assign
from serving.noop import VERSION
from tests.ray.conftest import Graph
from tests.ray.stages import MovableRegistry

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),  # Ray's own models
]

FOLLOWED_S = 2.0
SESSIONS = [f"session {number}" for number in range(40)]

MOVES = (
    Rollout(VERSION, "vcanary", 0.25, None, 2, began=2),
    Rollout(VERSION, "vcanary", 0.75, None, 3, began=2),  # wider
    Rollout("vcanary", None, 0.0, VERSION, 4),  # promoted
    Rollout(VERSION, None, 0.0, None, 5),  # back
    Rollout("vslow", None, 0.0, VERSION, 6),  # promoted although nobody has it open
    Rollout(VERSION, None, 0.0, None, 7),  # and back
)


@dataclass
class Reply:
    """What one session was told: when it asked, the version that answered, and what was wrong, if anything."""

    session: str
    asked: float
    version: str
    wrong: str


@dataclass
class Sessions:
    """Threads which ask in the name of every session in turn, each over a connection of its own."""

    url: str
    replies: list[Reply] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def ask_on(self) -> None:
        address = urlsplit(self.url)
        while not self.over.is_set():
            for session in SESSIONS:
                # A connection for each question: whichever gateway a connection goes to, it goes to both in the end.
                connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
                body = json.dumps({"question": "When does the gate open?", "session": {"id": session}})
                asked = time.monotonic()
                try:
                    connection.request("POST", "/v1/answers", body, {"Content-Type": "application/json"})
                    reply = connection.getresponse()
                    text, version = reply.read(), reply.headers.get("X-Index-Version", "")
                    wrong = "" if reply.status == 200 else f"{reply.status} {text[:300]!r}"
                except (OSError, http.client.HTTPException) as error:
                    version, wrong = "", f"{type(error).__name__}: {error}"
                connection.close()
                self.replies.append(Reply(session, asked, version, wrong))
                time.sleep(0.005)


@pytest.fixture
def registry(graph: Graph) -> Iterator[MovableRegistry]:
    """The pointer of the graph, put back where the other tests expect it."""
    registry = MovableRegistry(graph.folder)
    yield registry
    registry.reset()
    time.sleep(FOLLOWED_S)


def test_no_request_fails_when_the_pointer_moves_and_all_follow_within_two_seconds(
    graph: Graph, registry: MovableRegistry
) -> None:
    sessions, moved = Sessions(graph.url), []
    threads = [threading.Thread(target=sessions.ask_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    for rollout in MOVES:
        registry.point(rollout)
        moved.append((time.monotonic(), rollout))
        time.sleep(FOLLOWED_S + 1.5)
    sessions.over.set()
    for thread in threads:
        thread.join(60)

    assert [reply.wrong for reply in sessions.replies if reply.wrong] == []
    settled = 0
    before = Rollout(VERSION, revision=1)
    for (at, rollout), (until, _) in zip(moved, [*moved[1:], (time.monotonic(), None)], strict=True):
        while_moving = [r for r in sessions.replies if at <= r.asked < at + FOLLOWED_S]
        after = [r for r in sessions.replies if at + FOLLOWED_S <= r.asked < until]
        assert wrongly(while_moving, before, rollout) == []
        assert wrongly(after, rollout) == []
        settled += len(after)
        before = rollout
    assert settled > len(MOVES) * len(SESSIONS), "every session was asked after every move"


def wrongly(replies: Sequence[Reply], *allowed: Rollout) -> list[tuple[Reply, set[str | None]]]:
    """The replies by another version than one of these pointers gives to their session."""
    wanted = [(reply, {assign(rollout, reply.session) for rollout in allowed}) for reply in replies]
    return [(reply, versions) for reply, versions in wanted if reply.version not in versions]
