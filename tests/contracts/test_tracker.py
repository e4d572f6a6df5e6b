"""What every tracker promises: one run per evaluation however often it is sent, and aliases as they are told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from domain.ports import Tracker
from domain.releases import Rollout
from eval.evaluation_files import save
from eval.tracking import MlflowTracker
from tests.eval.evaluations import evaluation
from tests.fakes import FakeTracker

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inside MLflow
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # MLflow keeps its connections until the process ends
]
Aliases = Callable[[], dict[str, str]]


@pytest.fixture(params=["fake", pytest.param("mlflow", marks=pytest.mark.slow)])
def tracker(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Tracker, Aliases]:
    """A tracker, and what its aliases say: alias -> index version."""
    if request.param == "fake":
        fake = FakeTracker()
        return fake, lambda: fake.aliases
    uri = request.getfixturevalue("make_database")(tmp_path)

    def aliases() -> dict[str, str]:
        from mlflow import MlflowClient

        client = MlflowClient(uri, uri)
        there = client.get_registered_model("tidegate").aliases
        return {alias: client.get_model_version("tidegate", n).tags["index_version"] for alias, n in there.items()}

    return MlflowTracker(uri, "tidegate", tmp_path / "artifacts"), aliases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    save(evaluation(), tmp_path / "files")
    return tmp_path / "files"


def test_an_evaluation_sent_again_is_the_same_run(tracker: tuple[Tracker, Aliases], folder: Path) -> None:
    tracking, _ = tracker
    first = tracking.record(evaluation(verdicts=()), folder)
    assert first
    assert tracking.record(evaluation(), folder) == first


def test_another_evaluation_is_another_run(tracker: tuple[Tracker, Aliases], folder: Path) -> None:
    tracking, _ = tracker
    runs = {
        tracking.record(evaluation("v1"), folder),
        tracking.record(evaluation("v1", measured_at="2026-01-31T13:00:00+00:00"), folder),
        tracking.record(evaluation("v2"), folder),
        tracking.record(evaluation("v2", "v1"), folder),
    }
    assert len(runs) == 4


def test_the_aliases_follow_the_pointer_there_and_back(tracker: tuple[Tracker, Aliases], folder: Path) -> None:
    tracking, aliases = tracker
    tracking.record(evaluation("v1"), folder)
    tracking.follow(Rollout(), "v1")
    assert aliases() == {"candidate": "v1"}
    tracking.follow(Rollout("v1", revision=1), "v2")
    assert aliases() == {"stable": "v1", "candidate": "v2"}
    tracking.follow(Rollout("v1", "v2", 0.05, None, 2, 2), None)
    assert aliases() == {"stable": "v1", "canary": "v2"}
    tracking.follow(Rollout("v2", previous="v1", revision=3), None)
    assert aliases() == {"stable": "v2"}
    tracking.follow(Rollout("v1", revision=4), None)
    assert aliases() == {"stable": "v1"}
    tracking.follow(Rollout(revision=5), None)
    assert aliases() == {}


def test_following_twice_changes_nothing(tracker: tuple[Tracker, Aliases]) -> None:
    tracking, aliases = tracker
    for _ in range(2):
        tracking.follow(Rollout("v1", "v2", 0.05, None, 2, 2), "v3")
        assert aliases() == {"stable": "v1", "canary": "v2", "candidate": "v3"}
