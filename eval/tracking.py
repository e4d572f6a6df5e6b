"""The Tracker on MLflow: a run per evaluation under a run per index version, and a registered model whose aliases
follow the pointer. The only file that knows MLflow.

Names in MLflow may hold letters, digits, `_ - . : /` and blanks, so `recall@6` of the slice `type=comparison` is the
metric `recall_at_6/type:comparison`, its interval `...low` and `...high` and its number of questions `....n`; other
characters become `_` and a short hash keeps the name distinct. A value longer than MAX_VALUE is cut and its hash
added; the whole of it is in the run's artifacts.

Calls may take as long as the server likes: whoever needs a bound runs this in a process that can be ended.
"""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from domain.errors import StorageError
from domain.evaluation import ALL, Estimate, Evaluation
from domain.releases import Rollout, Verdict
from eval.evaluation_files import QUESTIONS

MAX_VALUE = 500  # what servers of the last years take; newer ones take 6000
MAX_NOTE = 5000  # the same for the description of a run
MAX_NAME = 220  # of 250, with room for "difference/" and ".high"
PER_BATCH = 90  # of 100 parameters or tags, of 1000 metrics
ALIASES = ("stable", "canary", "candidate")

_EVALUATION, _VERSION, _TRAINING = "tidegate.evaluation", "tidegate.index_version", "tidegate.training"
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")


class MlflowTracker:
    """Runs and aliases on the server or in the database at `uri`.

    `artifacts` is where files go when `uri` is a database without a server, which has no place of its own for them.
    """

    def __init__(self, uri: str, experiment: str, artifacts: Path) -> None:
        self._uri = uri
        self._name = experiment
        self._model = re.sub("[/:']", "-", experiment)  # no model may have the first two, no filter the third
        self._artifacts = artifacts

    def open(self) -> None:
        """Make database and experiment where they are missing. Raises StorageError, naming the tracker."""
        with self._speaking() as client:
            self._experiment(client)

    def record(self, evaluation: Evaluation, folder: Path) -> str:
        """See Tracker.record. Metrics carry the time of the measurement, so that a second sending changes nothing."""
        with self._speaking() as client:
            experiment = self._experiment(client)
            candidate = self._candidate(client, experiment, evaluation.binding.version)
            found = _find(client, experiment, f"tags.`{_EVALUATION}` = '{evaluation.id}'")
            if found is not None and found.info.status == "FINISHED" and not evaluation.verdicts:
                return str(found.info.run_id)  # it has these numbers already, and what was decided on them
            run_id = self._run(client, experiment, candidate, evaluation, found)
            with _ended_by_errors(client, run_id):
                _fill(client, run_id, evaluation, folder)
                self._register(client, candidate, run_id, evaluation)
            # Its end is that of the measurement, or a run that was sent a week later would show a week's work.
            client.set_terminated(run_id, "FINISHED", _ms(evaluation.measured_at))
            return run_id

    def record_training(
        self,
        name: str,
        digest: str,
        params: Mapping[str, str],
        points: Sequence[tuple[str, int, float]],
        files: Sequence[Path],
    ) -> str:
        """The id of the run that holds a training: `points` are (metric, step, value), `digest` names the weights.

        Recording the same weights again gives the same run. Raises StorageError, naming the tracker.
        """
        from mlflow.entities import Metric, Param

        with self._speaking() as client:
            experiment = self._experiment(client)
            found = _find(client, experiment, f"tags.`{_TRAINING}` = '{digest}'")
            if found is not None and found.info.status == "FINISHED":
                return str(found.info.run_id)
            tags = {_TRAINING: digest, "tidegate.kind": "training"}
            run_id = str((found or client.create_run(experiment, tags=tags, run_name=name)).info.run_id)
            with _ended_by_errors(client, run_id):
                client.log_batch(run_id, params=[Param(legal(key), _cut(value)) for key, value in params.items()])
                metrics = [Metric(legal_path(key), value, 0, step) for key, step, value in points]
                for start in range(0, len(metrics), 10 * PER_BATCH):
                    client.log_batch(run_id, metrics=metrics[start : start + 10 * PER_BATCH])
                for file in files:
                    client.log_artifact(run_id, str(file))
            client.set_terminated(run_id, "FINISHED")
            return run_id

    def follow(self, rollout: Rollout, candidate: str | None) -> None:
        """See Tracker.follow. A version that no evaluation was recorded for is registered on the way."""
        wanted = dict(zip(ALIASES, (rollout.stable, rollout.canary, candidate), strict=True))
        with self._speaking() as client:
            experiment = self._experiment(client)
            numbers = {
                version: self._model_version(client, self._candidate(client, experiment, version), version)
                for version in dict.fromkeys(wanted.values())
                if version
            }
            there = client.get_registered_model(self._model).aliases if self._registered(client) else {}
            for alias, version in wanted.items():
                if version and str(there.get(alias)) != numbers[version]:
                    client.set_registered_model_alias(self._model, alias, numbers[version])
                elif not version and alias in there:
                    client.delete_registered_model_alias(self._model, alias)

    @contextmanager
    def _speaking(self) -> Iterator[Any]:  # mlflow.MlflowClient
        """A client; whatever goes wrong with it is told as a StorageError that names the address."""
        try:
            from mlflow import MlflowClient

            _make_database(self._uri)
            yield MlflowClient(self._uri, self._uri)
        except Exception as error:
            told = " ".join(str(error).split())[:300] or type(error).__name__
            raise StorageError(masked(f"The experiment tracker at {self._uri} failed: {told}")) from error

    def _experiment(self, client: Any) -> str:
        """The id of our experiment, which is made, or restored when somebody deleted it: a deleted one keeps its name
        taken for ever.
        """
        found = client.get_experiment_by_name(self._name)
        if found is None:
            served = self._uri.startswith("http")
            created = client.create_experiment(self._name, None if served else self._artifacts.absolute().as_uri())
            return str(created)
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(found.experiment_id)
        return str(found.experiment_id)

    def _candidate(self, client: Any, experiment: str, version: str) -> Any:  # mlflow.entities.Run
        """The run that stands for an index version; its evaluations are nested under it."""
        found = _find(client, experiment, f"tags.`{_VERSION}` = '{version}' and tags.`tidegate.kind` = 'candidate'")
        if found is None:
            tags = {_VERSION: version, "tidegate.kind": "candidate"}
            found = client.create_run(experiment, tags=tags, run_name=f"candidate {version}")
            client.set_terminated(found.info.run_id, "FINISHED")
        return found

    def _run(self, client: Any, experiment: str, candidate: Any, evaluation: Evaluation, found: Any) -> str:
        """The evaluation's run, running: the one that was found, or a new one."""
        if found is not None:
            client.update_run(found.info.run_id, status="RUNNING")
            return str(found.info.run_id)
        against = f" against {evaluation.binding.baseline}" if evaluation.binding.baseline else ""
        tags = {
            _EVALUATION: evaluation.id,
            _VERSION: evaluation.binding.version,
            "tidegate.kind": "evaluation",
            "mlflow.parentRunId": candidate.info.run_id,
        }
        name = f"{evaluation.binding.version}{against}"
        created = client.create_run(experiment, start_time=_ms(evaluation.measured_at), tags=tags, run_name=name)
        return str(created.info.run_id)

    def _register(self, client: Any, candidate: Any, run_id: str, evaluation: Evaluation) -> None:
        """The registered version of the index, with its latest evaluation and its latest outcome."""
        number = self._model_version(client, candidate, evaluation.binding.version)
        client.set_model_version_tag(self._model, number, "evaluation_run_id", run_id)
        if evaluation.outcome is not None:
            client.set_model_version_tag(self._model, number, "outcome", evaluation.outcome.name)

    def _model_version(self, client: Any, candidate: Any, version: str) -> str:
        """The number that the registered model has for an index version."""
        if not self._registered(client):
            client.create_registered_model(self._model, description="The index versions of one library.")
        named = f"name = '{self._model}' and tag.`index_version` = '{version}'"
        if found := client.search_model_versions(named):
            return str(found[0].version)
        info = candidate.info
        tags = {"index_version": version}
        made = client.create_model_version(self._model, info.artifact_uri, info.run_id, tags, await_creation_for=0)
        return str(made.version)

    def _registered(self, client: Any) -> bool:
        return bool(client.search_registered_models(f"name = '{self._model}'"))


def sqlite_uri(path: Path) -> str:
    """The address of a database in a file; what means something in an address is escaped."""
    return f"sqlite:///{quote(str(path))}"


def masked(text: str) -> str:
    """The text without the credentials of any address in it."""
    return _CREDENTIALS.sub("********@", text)


def legal(name: str, longest: int = MAX_NAME) -> str:
    """The name as MLflow takes it; different names stay different."""
    plain = name.replace("@", "_at_").replace("=", ":")
    kept = re.sub(r"[^A-Za-z0-9_.: -]", "_", plain)
    if kept == plain and len(kept) <= longest and kept.strip(". ") == kept != "":
        return kept
    return f"{kept.strip('. ')[: longest - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def metric_name(metric: str, slice: str = ALL) -> str:
    """`recall_at_6/type:comparison`: pages of MLflow group what stands before the stroke."""
    half = MAX_NAME // 2
    return legal(metric, half) if slice == ALL else f"{legal(metric, half)}/{legal(slice, half)}"


def legal_path(name: str) -> str:
    """A metric's name in parts between strokes, each as MLflow takes it."""
    return "/".join(legal(part, MAX_NAME // 3) for part in name.split("/"))


# ---------------------------------------------------------------------------------------------- what a run holds


@contextmanager
def _ended_by_errors(client: Any, run_id: str) -> Iterator[None]:
    """A run that breaks off says so: one that seems to run for ever hides that its numbers are missing."""
    try:
        yield
    except BaseException as error:
        with suppress(Exception):  # the first error is the one that is told
            client.set_terminated(run_id, "FAILED" if isinstance(error, Exception) else "KILLED")
        raise


def _fill(client: Any, run_id: str, evaluation: Evaluation, folder: Path) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

    at = _ms(evaluation.measured_at)
    params = [Param(legal(name), _cut(value)) for name, value in _params(evaluation).items()]
    tags = [RunTag(legal(name), _cut(value)) for name, value in _tags(evaluation).items()]
    tags.append(RunTag("mlflow.note.content", _note(evaluation)[:MAX_NOTE]))
    tags.append(RunTag("mlflow.loggedArtifacts", json.dumps([{"path": QUESTIONS, "type": "table"}])))
    metrics = [Metric(name, value, at, 0) for name, value in _metrics(evaluation).items()]
    for start in range(0, len(params), PER_BATCH):
        client.log_batch(run_id, params=params[start : start + PER_BATCH])
    for start in range(0, len(tags), PER_BATCH):
        client.log_batch(run_id, tags=tags[start : start + PER_BATCH])
    for start in range(0, len(metrics), 10 * PER_BATCH):
        client.log_batch(run_id, metrics=metrics[start : start + 10 * PER_BATCH])
    dataset = Dataset("questions", evaluation.binding.dataset[:36], "tidegate", "{}")
    client.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])])
    client.log_artifacts(run_id, str(folder))


def _params(evaluation: Evaluation) -> dict[str, str]:
    binding = evaluation.binding
    bound = {name: getattr(binding, name) for name in ("version", "dataset", "settings", "gates", "code")}
    return {**evaluation.parameters, **bound, "baseline": binding.baseline or "none"}


def _metrics(evaluation: Evaluation) -> dict[str, float]:
    """Every number of every estimate. An end of an interval that was not worked out is left out, not zero."""
    numbers: dict[str, float] = {}
    for metric, slices in evaluation.metrics.items():
        for slice, estimate in slices.items():
            numbers |= _numbers(metric_name(metric, slice), estimate)
    for difference in evaluation.differences:
        name = metric_name(difference.metric, difference.slice)
        numbers |= _numbers(f"difference/{name}", difference.estimate)
    return {**evaluation.totals, **numbers}


def _numbers(name: str, estimate: Estimate) -> dict[str, float]:
    numbers = {name: estimate.mean, f"{name}.low": estimate.low, f"{name}.high": estimate.high, f"{name}.n": estimate.n}
    return {name: float(number) for name, number in numbers.items() if number is not None}


def _tags(evaluation: Evaluation) -> dict[str, str]:
    outcome = evaluation.outcome.name if evaluation.outcome is not None else "undecided"
    verdicts = {f"tidegate.verdict.{legal(v.gate)}": f"{_said(v)}: {v.reason}" for v in evaluation.verdicts}
    return {"tidegate.outcome": outcome, **verdicts}


def _note(evaluation: Evaluation) -> str:
    """Outcome and verdicts as the description on the run's page."""
    if evaluation.outcome is None:
        return "Measured; nothing was decided."
    rows = [f"| {v.gate} | {_said(v)} | {v.reason.replace('|', '/')} |" for v in evaluation.verdicts]
    return "\n".join([f"**{evaluation.outcome.name}**", "", "| gate | outcome | reason |", "|---|---|---|", *rows])


def _said(verdict: Verdict) -> str:
    return f"{verdict.outcome.name}{' (advisory)' if verdict.advisory else ''}"


def _cut(value: str) -> str:
    """The value, or its beginning with the hash of the whole."""
    if len(value) <= MAX_VALUE:
        return value
    ending = f" ... sha256:{sha256(value.encode()).hexdigest()[:16]}"
    return value[: MAX_VALUE - len(ending)] + ending


def _find(client: Any, experiment: str, wanted: str) -> Any:  # mlflow.entities.Run | None
    """The oldest run that is like this: should two have been made at once, both sides go on with the same."""
    found = client.search_runs([experiment], wanted, max_results=1, order_by=["attributes.start_time ASC"])
    return found[0] if found else None


def _ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def _make_database(uri: str) -> None:
    """A SQLite file appears whole or not at all: ended halfway through its fifty migrations it could not be used.

    One that cannot be opened raises at once here, where MLflow would try again for minutes.
    """
    if not uri.startswith("sqlite:///"):
        return
    path = Path(unquote(uri.removeprefix("sqlite:///")))
    if not path.exists():
        from mlflow import MlflowClient

        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)):
            half_made = sqlite_uri(part)
        MlflowClient(half_made, half_made).search_experiments(max_results=1)
        part.rename(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version").fetchone()
