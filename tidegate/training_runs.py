"""A training, told to the experiment tracker: its parameters, the loss as it fell, what dev said, and its files.

A process of its own speaks to the tracker and is ended when its time is over; a training is whole without it.
"""

import json
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import StorageError

if TYPE_CHECKING:
    from retrieval.pair_looks import Look
    from tidegate.reranker_card import Facts
    from tidegate.settings import Settings

FILES = ("README.md", "config.json", "history.jsonl")  # the weights stay where they are: they have a digest


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What a run holds. `points` are (metric, step, value)."""

    name: str
    digest: str  # of the weights: a training that is told again is the same run
    params: Mapping[str, str]
    points: Sequence[tuple[str, int, float]]

    @classmethod
    def of(cls, facts: "Facts", looks: "Sequence[Look]", folder: Path) -> "TrainingRun":
        """The run of a finished training in `folder`."""
        from retrieval.model_folder import sha256, weight_files

        params = {
            "command": facts.command, "base": facts.base, "started_from": facts.started_from or "none",
            "steps": str(facts.steps), "minutes": f"{facts.minutes:.1f}", "processes": str(facts.processes),
            "seed": str(facts.seed), "encoder": facts.encoder, "reading_share": f"{facts.reading_share:g}",
            "sets": ", ".join(f"{s.name} {s.learnt}+{s.chosen_by}" for s in facts.sets),
        }  # fmt: skip
        last: dict[int, float] = {}  # a training that went on has done a few steps twice
        for line in (folder / "history.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            last[int(row["step"])] = float(row["loss"])
        points = [("loss", step, loss) for step, loss in sorted(last.items())]
        for look in looks:
            points += [("dev/ndcg_at_10", look.step, look.best), ("dev/reading_share", look.step, look.share)]
            points += [(f"dev/ndcg_at_10/{name}", look.step, look.of_set(name, look.share)) for name in look.ndcg10]
        return cls(f"reranker {folder.name}", sha256(weight_files(folder)), params, points)


def track_training(settings: "Settings", run: TrainingRun, folder: Path) -> str:
    """Tell the tracker; why it has not been told comes back, or "". Takes tracking.timeout_s at most."""
    from eval.tracking import masked
    from tidegate.tracking import address

    if not settings.tracking.enabled:
        return ""
    uri, data = address(settings), settings.data_dir.absolute()
    context = multiprocessing.get_context("spawn")
    said = context.SimpleQueue()
    arguments = (
        uri,
        settings.tracking.experiment,
        data / "mlartifacts",
        run,
        folder,
        settings.tracking.timeout_s,
        said,
    )
    process = context.Process(target=_send, args=arguments, daemon=True)
    process.start()
    process.join(settings.tracking.timeout_s)
    if process.is_alive():
        process.kill()
        process.join()
        return masked(
            f"the experiment tracker at {uri} was not done in time: the curve is in {folder / 'history.jsonl'}"
        )
    why = str(said.get()) if not said.empty() else f"the process that tells it ended with {process.exitcode}"
    return f"not tracked: {why}" if why else ""


def _send(uri: str, experiment: str, artifacts: Path, run: TrainingRun, folder: Path, seconds: float, said) -> None:  # type: ignore[no-untyped-def]
    from tidegate.tracking import environment

    os.environ.update(environment(seconds))
    from eval.tracking import MlflowTracker

    try:
        files = [folder / name for name in FILES]
        MlflowTracker(uri, experiment, artifacts).record_training(run.name, run.digest, run.params, run.points, files)
    except StorageError as error:
        said.put(str(error))
    else:
        said.put("")
