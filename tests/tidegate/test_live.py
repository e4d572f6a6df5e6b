"""People ask, a canary answers some of them, the watch decides: everything but Ray, over the real surface and disk."""

import asyncio
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from domain.releases import Verb
from serving.api import create_app
from serving.service import always_ready
from serving.telemetry import Silent
from tests.tidegate.tiny import FILES, served, sets, settings, write_corpus
from tidegate.cli import main
from tidegate.compose import in_process_stages, make_library, make_registry
from tidegate.compose_graph import make_served
from tidegate.compose_releases import make_releases
from tidegate.serve import watch
from tidegate.settings import Settings

QUESTIONS = ("Which oil does pump P3 need?", "When was the blue crane built?", "When does the sea gate close?")
QUICK = {"canary__every_s": "0.02", "canary__min_requests": "20", "canary__slo_ms": "600000"}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, str]:
    """A data folder with a stable version, one that lost two of its three documents, and one with a document more."""
    folder = tmp_path_factory.mktemp("three")
    data_dir, stable = served(folder)
    ids = [stable]
    for name, files in (
        ("less", {"crane.md": FILES["crane.md"]}),
        ("more", {**FILES, "lock.txt": "Lock 4 is shut.\n"}),
    ):
        assert main(["build", str(write_corpus(folder / name, files)), *sets(data_dir)]) == 0
        ids += {version.id for version in make_registry(settings(data_dir)).versions()} - set(ids)
    return data_dir, ids[0], ids[1], ids[2]


@pytest.fixture
def ours(here: Path, three: tuple[Path, str, str, str]) -> Settings:
    shutil.copytree(three[0], here / "data")
    return settings(here / "data", **QUICK)


@contextmanager
def watched(ours: Settings) -> Iterator[None]:
    """The watch of a server, as `tidegate serve` runs it."""
    ended = threading.Event()
    thread = threading.Thread(target=watch, args=(ours, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def ask_until_decided(ours: Settings, most: int) -> Counter[tuple[int, str]]:
    """People ask until there is no canary any more, `most` times at most; how often which status and version came."""
    registry, library = make_registry(ours), make_library(ours)
    await library.refresh()
    app: Any = create_app(make_served(ours, in_process_stages(ours, library), always_ready, Silent()))
    got: Counter[tuple[int, str]] = Counter()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://here") as http:
        for i in range(most):
            body = {"question": QUESTIONS[i % len(QUESTIONS)], "session": {"id": f"session-{i}"}}
            reply = await http.post("/v1/answers", json=body)
            got[reply.status_code, reply.headers.get("X-Index-Version", "")] += 1
            if i % 20 == 0:
                await library.refresh()
                if registry.rollout().canary is None:
                    break
    return got


async def test_a_canary_that_finds_less_is_turned_back_while_people_go_on_asking(
    ours: Settings, three: tuple[Path, str, str, str]
) -> None:
    _, stable, less, _ = three
    releases = make_releases(ours)
    releases.force(less, "a test")
    releases.begin(less, 0.5, "a test")  # nobody gave it leave to go forward; back it goes by itself
    with watched(ours):
        got = await ask_until_decided(ours, 2000)
    assert {status for status, _ in got} == {200}
    assert got[200, less] > 10
    assert got[200, stable] > 10
    last = releases.registry.ledger()[-1]
    assert (last.verb, last.who, last.after.stable) == (Verb.ROLLBACK, "tidegate watch", stable)
    assert "worse" in last.reason
    assert last.noticed_at <= last.at


async def test_observations_that_no_disk_takes_are_told_on_the_page_of_whoever_lost_them(
    ours: Settings, three: tuple[Path, str, str, str]
) -> None:
    releases = make_releases(ours)
    releases.begin(three[3], 0.5, "a test", reason="a test", force=True)
    (ours.data_dir / "observations").symlink_to(ours.data_dir / "unplugged")
    library = make_library(ours)
    await library.refresh()
    app: Any = create_app(make_served(ours, in_process_stages(ours, library), always_ready, Silent()))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://here") as http:
        for i in range(3):
            asked = {"question": QUESTIONS[i], "session": {"id": f"session-{i}"}}
            assert (await http.post("/v1/answers", json=asked)).status_code == 200
        told: Any = {}
        for _ in range(50):  # written beside the answering, and weighed at most once a second
            told = (await http.get("/v1/rollout")).json()["evidence"]
            if told["kept"]["lost"] == 3:
                break
            await asyncio.sleep(0.1)
    assert (told["kept"], told["requests"]) == ({"one_in": 1, "lost": 3}, {"canary": 0, "stable": 0})
    assert "3 observations lost" in told["advice"]["reason"]


@pytest.mark.slow
async def test_a_canary_that_is_as_good_widens_step_by_step_until_everybody_has_it(
    ours: Settings, three: tuple[Path, str, str, str]
) -> None:
    _, stable, _, more = three
    releases = make_releases(ours)
    releases.force(more, "a test")
    releases.begin(more, 0.25, "a test", auto=True)
    with watched(ours):
        got = await ask_until_decided(ours, 6000)
    assert {status for status, _ in got} == {200}
    moves = [(move.verb, move.who, move.after.share) for move in releases.registry.ledger()[1:]]
    assert moves == [
        (Verb.CANARY, "a test", 0.25),
        (Verb.WIDEN, "tidegate watch", 0.5),
        (Verb.PROMOTE, "tidegate watch", 0.0),
    ]
    assert (releases.registry.rollout().stable, releases.registry.rollout().previous) == (more, stable)
