"""MLflow's own page over what we wrote: two versions side by side, with our metrics under our names.

The picture in docs/ is what this test sees: TIDEGATE_SCREENSHOT=docs/mlflow.png pytest tests/eval/test_tracking_page.py
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from domain.evaluation import ALL, Difference, Estimate, Evaluation
from domain.releases import Binding, Outcome, Rollout, Verdict
from eval.evaluation_files import lay_out, save
from eval.tracking import MlflowTracker

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
START_S = 300
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inside MLflow and the browser's driver
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # MLflow keeps its connections until the process ends
]
V1, V2 = "v4f1c02ab9d37", "v8b60e5c7d214"
MEANS = {"recall@6": (0.842, 0.861), "citation_precision": (0.913, 0.909)}  # of v1 and v2, made up for the picture


def measured(version: str, baseline: str | None) -> Evaluation:
    """An evaluation of 900 questions, so small that all of it is seen at once."""
    column = 0 if baseline is None else 1
    metrics = {}
    for metric, means in MEANS.items():
        mean = means[column]
        metrics[metric] = {ALL: Estimate(mean, mean - 0.021, mean + 0.02, 900)}
    metrics["recall@6"]["type=comparison"] = Estimate(0.79 + 0.02 * column, 0.73, 0.86, 180)
    gains = {metric: after - before for metric, (before, after) in MEANS.items()}
    differences = [
        Difference(m, ALL, Estimate(gain, gain - 0.011, gain + 0.012, 900), 0.02) for m, gain in gains.items()
    ]
    return Evaluation(
        Binding(version, "6d1f0a93be57c284", "21c7e4b0a95d386f", "f3820d6e1b4a", "0.1.0", baseline),
        f"2026-01-31T1{2 + column}:00:00+00:00",
        metrics,
        verdicts=(Verdict("recall@6 floor", Outcome.PASS, "0.8420 [0.8210, 0.8620] over 900 questions, floor 0.7000"),),
        differences=tuple(differences) if baseline else (),
        floors={"recall@6": 0.7, "citation_precision": 0.8},
        parameters={"seed": "7", "questions": "900"},
    )


@pytest.fixture
def runs(tmp_path: Path, make_database: Callable[[Path], str]) -> tuple[str, list[str]]:
    """The address of a database with two versions, and the runs of their evaluations."""
    uri = make_database(tmp_path)
    tracker = MlflowTracker(uri, "tidegate", tmp_path / "mlartifacts")
    ids = []
    for version, baseline in ((V1, None), (V2, V1)):
        folder = tmp_path / version
        folder.mkdir()
        save(measured(version, baseline), folder)
        lay_out(measured(version, baseline), folder)
        ids.append(tracker.record(measured(version, baseline), folder))
    tracker.follow(Rollout(V1, V2, 0.05, None, 2, 2), None)
    return uri, ids


@pytest.fixture
def served(runs: tuple[str, list[str]]) -> Iterator[str]:
    """The address of an MLflow server over that database, on the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "mlflow", "server", "--backend-store-uri", runs[0]]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
        env={**os.environ, **quiet},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
        while not _up(url):
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not come up"
            time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the server and the worker it started
        process.wait(60)


def _up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_two_versions_stand_side_by_side_in_mlflows_own_page(runs: tuple[str, list[str]], served: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1080, "height": 1370})
        page.goto(f"{served}/#/compare-runs?runs={json.dumps(runs[1])}&experiments={json.dumps(['2'])}")
        page.get_by_text("recall_at_6.high", exact=True).first.wait_for(timeout=START_S * 1000)
        seen = page.inner_text("body")
        page.get_by_text("Visualizations", exact=True).click()  # folds them away: the numbers are what is compared
        assistant = page.get_by_text("MLflow Assistant").locator("xpath=ancestor::*[.//button][1]")
        if assistant.count():
            assistant.locator("button").last.click()  # a panel at the side, closed
        page.wait_for_timeout(1000)  # until both have moved
        if where := os.environ.get("TIDEGATE_SCREENSHOT"):
            page.screenshot(path=where)
        browser.close()
    for text in (V2, f"{V2} against {V1}", "recall_at_6", "0.842", "0.861", "6d1f0a93be57c284"):
        assert text in seen
