"""What a run in MLflow holds, how it survives what people do to it, and that MLflow's floors are our floors."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.errors import StorageError
from domain.evaluation import ALL, Estimate, Evaluation
from domain.releases import Outcome, Rollout, Scorecard
from eval.evaluation_files import lay_out, save
from eval.gates import Gate
from eval.intervals import Sample, interval
from eval.tracking import MAX_VALUE, MlflowTracker, legal, masked, metric_name, sqlite_uri
from eval.verdicts import judge
from tests.eval.evaluations import evaluation

in_mlflow = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inside MLflow
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # MLflow keeps its connections until the process ends
]


def test_a_metric_of_a_slice_is_named_as_close_to_itself_as_mlflow_allows() -> None:
    assert metric_name("recall@6") == "recall_at_6"
    assert metric_name("recall@6", "type=comparison") == "recall_at_6/type:comparison"


def test_every_name_is_legal_and_different_names_stay_different() -> None:
    from mlflow.utils.validation import _validate_metric_name  # the rule itself, which MLflow does not export

    seeded = random.Random(5)
    names = {"".join(seeded.choices("ab1@=/.:- _é漢%#'\n", k=seeded.randint(0, 40))) for _ in range(3000)}
    names |= {"x" * 500, "x" * 501, ".", "..", "../x", "/x", "a b", "a/b"}
    told = {name: legal(name) for name in names if name.replace("@", "_at_").replace("=", ":") == name}
    assert len(set(told.values())) == len(told)
    for name in names:
        _validate_metric_name(f"difference/{legal(name)}/{legal(name)}.high")
        assert len(f"difference/{metric_name(name, name)}.high") <= 250


def test_credentials_in_an_address_are_masked_wherever_it_stands() -> None:
    text = "no route to https://anna:s3cret@host:5000/api and postgresql://u:p@db/x, but http://host/a@b"
    told = "no route to https://********@host:5000/api and postgresql://********@db/x, but http://host/a@b"
    assert masked(text) == told


class TestInMlflow:
    pytestmark = in_mlflow

    @pytest.fixture(autouse=True)
    def _store(self, tmp_path: Path, make_database: Callable[[Path], str]) -> None:
        from mlflow import MlflowClient

        self.uri, self.folder = make_database(tmp_path), tmp_path / "files"
        self.folder.mkdir()
        self.client: Any = MlflowClient(self.uri, self.uri)
        self.tracker = MlflowTracker(self.uri, "tidegate", tmp_path / "my artifacts")

    def record(self, made: Evaluation) -> Any:  # mlflow.entities.Run
        save(made, self.folder)
        return self.client.get_run(self.tracker.record(made, self.folder))

    def runs(self) -> list[Any]:
        experiment = self.client.get_experiment_by_name("tidegate")
        return list(self.client.search_runs([experiment.experiment_id]))

    @pytest.mark.slow
    def test_a_training_is_one_run_with_its_curve_however_often_it_is_told(self) -> None:
        from mlflow import MlflowClient

        self.folder.mkdir(exist_ok=True)
        (self.folder / "card.md").write_text("a card")
        tracker = MlflowTracker(self.uri, "trained", self.folder / "artifacts")
        points = [("loss", 10, 1.5), ("loss", 20, 0.5), ("dev/ndcg_at_10/set one", 20, 0.75)]
        told = [
            tracker.record_training("reranker", "d1" * 32, {"seed": "7"}, points, [self.folder / "card.md"])
            for _ in range(2)
        ]
        assert told[0] == told[1]
        client = MlflowClient(self.uri)
        assert client.get_run(told[0]).data.params == {"seed": "7"}
        assert [(m.step, m.value) for m in client.get_metric_history(told[0], "loss")] == [(10, 1.5), (20, 0.5)]
        assert client.get_run(told[0]).data.metrics["dev/ndcg_at_10/set one"] == 0.75
        assert [file.path for file in client.list_artifacts(told[0])] == ["card.md"]

    def test_a_training_whose_files_cannot_be_told_is_a_failed_run_and_the_next_try_ends_it(self) -> None:
        card, points = self.folder / "card.md", [("loss", 10, 1.5)]
        with pytest.raises(StorageError):
            self.tracker.record_training("reranker", "d2" * 32, {"seed": "7"}, points, [card])
        assert [run.info.status for run in self.runs()] == ["FAILED"]
        card.write_text("a card")
        self.tracker.record_training("reranker", "d2" * 32, {"seed": "7"}, points, [card])
        assert [run.info.status for run in self.runs()] == ["FINISHED"]

    def test_a_run_holds_every_number_and_leaves_out_what_was_not_worked_out(self) -> None:
        assert self.record(evaluation("v2", "v1")).data.metrics == {
            "recall_at_6": 1.0,
            "recall_at_6.low": 0.25,
            "recall_at_6.high": 1.0,
            "recall_at_6.n": 1.0,
            "recall_at_6/type:comparison": 1.0,
            "recall_at_6/type:comparison.n": 1.0,
            "difference/recall_at_6/type:comparison": -0.01,
            "difference/recall_at_6/type:comparison.low": -0.03,
            "difference/recall_at_6/type:comparison.high": 0.01,
            "difference/recall_at_6/type:comparison.n": 1.0,
            "cost_usd_per_1000": 3.5,
        }

    def test_a_run_says_what_was_measured_and_cuts_what_is_long(self, tmp_path: Path) -> None:
        lay_out(evaluation("v2", "v1"), self.folder)
        run = self.record(evaluation("v2", "v1"))
        prompt = run.data.params.pop("prompt")
        assert run.data.params == {
            "version": "v2", "baseline": "v1", "dataset": "f" * 16, "settings": "5" * 16, "gates": "9" * 12,
            "code": "0.1.0", "seed": "7",
        }  # fmt: skip
        assert len(prompt) == MAX_VALUE
        assert prompt.endswith("xxx ... sha256:e4ee97ec252749d2")  # head -c 10000 /dev/zero | tr '\\0' x | sha256sum
        whole = self.client.download_artifacts(run.info.run_id, "parameters.json", str(tmp_path))
        assert json.loads(Path(whole).read_text("utf-8"))["prompt"] == "x" * 10_000

    def test_a_run_carries_verdicts_table_and_plots(self) -> None:
        lay_out(evaluation("v2", "v1"), self.folder)
        run = self.record(evaluation("v2", "v1"))
        assert run.data.tags["tidegate.outcome"] == "PASS"
        assert run.data.tags["tidegate.verdict.recall_at_6 floor"] == "PASS: 1.0000 | over 1"
        assert run.data.tags["tidegate.verdict.cost"] == "FAIL (advisory): dear"
        assert "| recall@6 floor | PASS | 1.0000 / over 1 |" in run.data.tags["mlflow.note.content"]
        assert json.loads(run.data.tags["mlflow.loggedArtifacts"]) == [{"path": "questions.json", "type": "table"}]
        files = {item.path for item in self.client.list_artifacts(run.info.run_id)}
        assert files == {"evaluation.json", "questions.json", "verdicts.json", "parameters.json", "plots"}
        plots = {item.path for item in self.client.list_artifacts(run.info.run_id, "plots")}
        assert "plots/differences.png" in plots
        assert [i.dataset.digest for i in run.inputs.dataset_inputs] == ["f" * 16]

    def test_evaluations_are_nested_under_their_version(self) -> None:
        first, again = self.record(evaluation("v1")), self.record(evaluation("v1", "v0"))
        (candidate,) = [run for run in self.runs() if run.data.tags["tidegate.kind"] == "candidate"]
        assert candidate.info.run_name == "candidate v1"
        assert {run.data.tags["mlflow.parentRunId"] for run in (first, again)} == {candidate.info.run_id}
        assert {run.info.status for run in self.runs()} == {"FINISHED"}
        assert first.info.start_time == first.info.end_time == 1_769_860_800_000  # date -d 2026-01-31T12:00Z +%s000

    def test_sent_again_with_its_verdicts_it_is_one_run_with_the_verdicts(self) -> None:
        before, after = self.record(evaluation(verdicts=())), self.record(evaluation())
        assert before.data.tags["tidegate.outcome"] == "undecided"
        assert after.data.tags["tidegate.outcome"] == "PASS"
        assert after.data.metrics == before.data.metrics
        assert len(self.runs()) == 2

    def test_measured_again_without_deciding_it_keeps_what_was_decided(self) -> None:
        decided = self.record(evaluation())
        assert self.record(evaluation(verdicts=())).data.tags == decided.data.tags

    def test_an_index_version_is_registered_once_with_its_latest_outcome(self) -> None:
        self.record(evaluation(verdicts=()))
        run = self.record(evaluation())
        (found,) = self.client.search_model_versions("name = 'tidegate'")
        assert found.tags == {"index_version": "v1", "evaluation_run_id": run.info.run_id, "outcome": "PASS"}
        assert found.run_id == run.data.tags["mlflow.parentRunId"]

    def test_more_numbers_than_one_call_takes_all_arrive(self) -> None:
        slices = {f"source={i}": Estimate(i / 1000, 0.0, 1.0, i) for i in range(600)}
        parameters = {f"key.{i}": str(i) for i in range(150)}
        run = self.record(evaluation(metrics={"recall@6": slices}, parameters=parameters))
        assert len(run.data.metrics) == 600 * 4 + 1, "and what a thousand answers cost"
        assert run.data.metrics["recall_at_6/source:599"] == 0.599
        assert len(run.data.params) == 150 + 6

    def test_an_experiment_that_was_deleted_is_restored(self) -> None:
        self.record(evaluation("v1"))
        self.client.delete_experiment(self.client.get_experiment_by_name("tidegate").experiment_id)
        assert self.record(evaluation("v2")).info.status == "FINISHED"
        assert self.client.get_experiment_by_name("tidegate").lifecycle_stage == "active"

    def test_a_version_and_a_model_that_were_deleted_are_registered_again(self) -> None:
        self.record(evaluation("v1"))
        self.client.delete_registered_model("tidegate")
        self.tracker.follow(Rollout("v1", revision=1), None)
        assert set(self.client.get_registered_model("tidegate").aliases) == {"stable"}

    def test_a_name_that_no_model_may_have_is_changed_for_the_model_alone(self, tmp_path: Path) -> None:
        self.tracker = MlflowTracker(self.uri, "team/it's: tidegate", tmp_path / "more")
        save(evaluation(), self.folder)
        for _ in range(2):
            self.tracker.record(evaluation(), self.folder)
        assert self.client.get_experiment_by_name("team/it's: tidegate") is not None
        assert len(self.client.search_model_versions("name = 'team-it-s- tidegate'")) == 1

    def test_a_run_that_failed_halfway_says_so_and_becomes_whole(self, tmp_path: Path) -> None:
        save(evaluation(), self.folder)
        (tmp_path / "my artifacts").write_text("a file where a folder is wanted")
        with pytest.raises(StorageError, match=r"mlflow\.db failed: .*my artifacts"):
            self.tracker.record(evaluation(), self.folder)
        (tmp_path / "my artifacts").unlink()
        (broken,) = [run for run in self.runs() if run.data.tags["tidegate.kind"] == "evaluation"]
        assert broken.info.status == "FAILED"
        assert self.record(evaluation()).info.run_id == broken.info.run_id
        assert {run.info.status for run in self.runs()} == {"FINISHED"}

    def test_a_run_that_was_interrupted_is_marked_as_killed(self) -> None:
        class Interrupted(Evaluation):
            @property
            def outcome(self) -> None:
                raise KeyboardInterrupt

        made = evaluation()
        with pytest.raises(KeyboardInterrupt):
            self.tracker.record(
                Interrupted(made.binding, made.measured_at, made.metrics, verdicts=made.verdicts), self.folder
            )
        statuses = {run.data.tags["tidegate.kind"]: run.info.status for run in self.runs()}
        assert statuses == {"candidate": "FINISHED", "evaluation": "KILLED"}

    def test_a_database_appears_whole_or_not_at_all(self, tmp_path: Path) -> None:
        folder = tmp_path / "50% new #1"
        folder.mkdir()
        (folder / ".mlflow.db.part").write_bytes(b"half of a database, left by a killed process")
        MlflowTracker(sqlite_uri(folder / "mlflow.db"), "tidegate", folder / "artifacts").open()
        assert [path.name for path in folder.iterdir()] == ["mlflow.db"]

    def test_a_file_that_is_no_database_is_told_at_once(self, tmp_path: Path) -> None:
        (tmp_path / "no.db").write_bytes(b"not a database, but long enough to have a header of one hundred bytes" * 9)
        with pytest.raises(StorageError, match=r"no\.db failed: file is not a database"):
            MlflowTracker(sqlite_uri(tmp_path / "no.db"), "tidegate", tmp_path).open()

    def test_mlflow_rejects_the_mean_exactly_when_a_floor_fails_and_accepts_the_bound_exactly_when_it_passes(
        self,
    ) -> None:
        """Over random scorecards, with floors around each mean and on it. The numbers are those of the run."""
        seeded = random.Random(11)
        values = {f"recall@{k}": scores(seeded, k) for k in range(1, 41)}
        estimates = {metric: estimate(list(of.values())) for metric, of in values.items()}
        run = self.record(evaluation(metrics={metric: {ALL: found} for metric, found in estimates.items()}))
        numbers, outcomes = run.data.metrics, Counter[Outcome]()
        for metric, found in estimates.items():
            for floor in (found.mean, *(found.mean + seeded.uniform(-0.2, 0.2) for _ in range(4))):
                gate = Gate(metric, floor=min(1.0, max(0.0, floor)), min_items=1)
                (verdict,) = judge(Scorecard("v1", "d", {metric: values[metric]}), None, [gate], {}, alpha=0.05, seed=7)
                name = metric_name(metric)
                assert (verdict.outcome is Outcome.FAIL) == (not accepted(numbers, name, gate.floor))
                assert (verdict.outcome is Outcome.PASS) == accepted(numbers, f"{name}.low", gate.floor)
                outcomes[verdict.outcome] += 1
        assert all(outcomes[outcome] >= 20 for outcome in (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL))
        assert not accepted(numbers, "answered", 0.0)  # what was not measured is not accepted


def accepted(numbers: dict[str, float], name: str, floor: float | None) -> bool:
    """What MLflow's own validation says about a number of a run and a floor."""
    from mlflow import validate_evaluation_results
    from mlflow.exceptions import MlflowException
    from mlflow.models import EvaluationResult, MetricThreshold

    threshold = MetricThreshold(threshold=floor, greater_is_better=True)
    try:
        validate_evaluation_results({name: threshold}, EvaluationResult(metrics=numbers, artifacts={}))
    except MlflowException:
        return False
    return True


def scores(seeded: random.Random, k: int) -> dict[str, float | None]:
    """A metric of 20 to 600 questions: all or nothing for even `k`, quarters for odd ones; some are not eligible."""
    n, good = seeded.randint(20, 600), seeded.random()
    steps = 1 if k % 2 == 0 else 4
    drawn = [sum(seeded.random() < good for _ in range(steps)) / steps for _ in range(n)]
    return {"none": None} | {f"q{i}": value for i, value in enumerate(drawn)}


def estimate(values: list[float | None]) -> Estimate:
    """The mean and interval as an evaluation has them."""
    eligible = [value for value in values if value is not None]
    sample = Sample.of(eligible, 0.0, 1.0)
    return Estimate(sample.mean, *interval(sample, 0.05, 7), sample.n)
