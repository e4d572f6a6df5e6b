"""kill -9 of one replica of each deployment in turn, under load: nobody outside notices."""

import os
import signal
import time
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from serving.graph import APP
from tests.ray.conftest import Graph
from tests.ray.load import Load

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),  # Ray's own models
]

DEPLOYMENTS = ("gateway", "rewriter", "retriever", "reranker", "generator", "gateway")


def pids(deployment: str) -> list[int]:
    """The processes of the running replicas of a deployment, as Serve's controller tells them."""
    from ray.serve.context import _get_global_client

    told = _get_global_client().get_serve_details()["applications"][APP]["deployments"][deployment]["replicas"]
    return [replica["pid"] for replica in told if replica["state"] == "RUNNING"]


def wait_for_two(deployment: str, within_s: float = 60.0) -> list[int]:
    """The processes, as soon as both replicas run and are no longer the one that was killed."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        running = [pid for pid in pids(deployment) if Path(f"/proc/{pid}").exists()]
        if len(running) == 2:
            return running
        time.sleep(0.2)
    raise AssertionError(f"{deployment} did not come back to two replicas within {within_s} s")


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_no_request_fails_when_a_replica_is_killed_under_load(graph: Graph, deployment: str) -> None:
    victim = wait_for_two(deployment)[0]
    with Load(graph.url) as load:
        time.sleep(1.5)
        before = load.ok
        os.kill(victim, signal.SIGKILL)
        time.sleep(3.0)
        successors = wait_for_two(deployment)
        time.sleep(1.0)
    assert load.failures == []
    assert victim not in successors
    assert before > 20
    assert load.ok > before + 20


def test_a_killed_proxy_answers_again_within_seconds(graph: Graph) -> None:
    proxies = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "haproxy" and str(graph.running.home.folder) in " ".join(process.info["cmdline"])
    ]
    assert proxies
    for proxy in proxies:
        proxy.kill()
    killed = time.monotonic()
    while not answers(f"{graph.url}/healthz"):
        assert time.monotonic() < killed + 25, "three checks a second apart, and a start; a busy machine takes longer"
        time.sleep(0.2)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as reply:
            return reply.status == HTTPStatus.OK
    except OSError:
        return False
