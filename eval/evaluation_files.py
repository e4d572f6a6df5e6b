"""An evaluation as files: written down whole, read back, and laid out for a person to look at.

`save` and `read` are exact inverses; everything else in the folder is drawn from that one file and can be drawn again.
What may stand in it was decided before, by domain/evaluation.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from domain.errors import StorageError
from domain.evaluation import ALL, Difference, Estimate, Evaluation, Row
from domain.releases import Binding, Outcome, Verdict

WHOLE = "evaluation.json"
QUESTIONS = "questions.json"  # a table as MLflow shows it


def save(evaluation: Evaluation, folder: Path) -> None:
    """Write the evaluation into an existing folder. Raises OSError."""
    (folder / WHOLE).write_text(_json(_plain(evaluation)), "utf-8")


def read(folder: Path) -> Evaluation:
    """The evaluation that was saved there. Raises StorageError, naming the file, when it cannot be read."""
    path = folder / WHOLE
    try:
        return _evaluation(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise StorageError(f"{path} cannot be read ({why}): remove its folder and evaluate again.") from error


def lay_out(evaluation: Evaluation, folder: Path) -> None:
    """Write tables and plots beside the saved evaluation. Raises OSError."""
    (folder / QUESTIONS).write_text(_json(_table(evaluation.rows)), "utf-8")
    verdicts = [asdict(verdict) | {"outcome": verdict.outcome.name} for verdict in evaluation.verdicts]
    outcome = evaluation.outcome.name if evaluation.outcome is not None else None
    (folder / "verdicts.json").write_text(_json({"outcome": outcome, "verdicts": verdicts}), "utf-8")
    (folder / "parameters.json").write_text(_json(dict(evaluation.parameters)), "utf-8")
    (folder / "plots").mkdir(exist_ok=True)
    for name, png in _plots(evaluation).items():
        (folder / "plots" / f"{name}.png").write_bytes(png)


def _plots(evaluation: Evaluation) -> dict[str, bytes]:
    """Every plot there are numbers for, by file name without its ending."""
    from eval.plots import by_metric, by_slice, differences, latencies, png, recall_curve

    version, baseline = evaluation.binding.version, evaluation.binding.baseline
    drawn = {}
    for metric, slices in sorted(evaluation.metrics.items()):
        if any(slice != ALL for slice in slices):
            drawn[f"slices-{_file_name(metric)}"] = by_slice(metric, slices, evaluation.floors.get(metric))
    whole = {metric: slices[ALL] for metric, slices in evaluation.metrics.items() if ALL in slices}
    if whole:
        drawn["metrics"] = by_metric(whole, evaluation.floors, version)
    if evaluation.differences:
        drawn["differences"] = differences(evaluation.differences, version, baseline or "baseline")
    if evaluation.curves:
        drawn["recall-at-k"] = recall_curve(evaluation.curves)
    if times := [row.latency_ms for row in evaluation.rows if row.latency_ms is not None]:
        drawn["latency"] = latencies(times)
    return {name: png(figure) for name, figure in drawn.items()}


def _file_name(metric: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in metric.replace("@", "-at-"))[:80]


# ---------------------------------------------------------------------------------------------- tables


def _table(rows: Sequence[Row]) -> dict[str, Any]:
    """The rows as columns and data; a column for every dimension and metric that any row has."""
    dimensions = list(dict.fromkeys(name for row in rows for name in row.slices))
    metrics = list(dict.fromkeys(name for row in rows for name in row.values))
    return {
        "columns": ["question", "query", "answer", "failure", "latency_ms", *dimensions, *metrics],
        "data": [
            [row.question, row.query, row.answer, row.failure, row.latency_ms]
            + [row.slices.get(name, "") for name in dimensions]
            + [row.values.get(name) for name in metrics]
            for row in rows
        ],
    }


# ---------------------------------------------------------------------------------------------- there and back


def _plain(evaluation: Evaluation) -> dict[str, Any]:
    plain = asdict(evaluation)
    for row in plain["rows"]:
        row["groups"] = sorted(row["groups"])
    for verdict in plain["verdicts"]:
        verdict["outcome"] = verdict["outcome"].name
    return plain


def _evaluation(plain: Mapping[str, Any]) -> Evaluation:
    return Evaluation(
        binding=Binding(**plain["binding"]),
        measured_at=plain["measured_at"],
        metrics={
            metric: {slice: Estimate(**estimate) for slice, estimate in slices.items()}
            for metric, slices in plain["metrics"].items()
        },
        rows=tuple(Row(**(row | {"groups": frozenset(row["groups"])})) for row in plain["rows"]),
        verdicts=tuple(Verdict(**(v | {"outcome": Outcome[v["outcome"]]})) for v in plain["verdicts"]),
        differences=tuple(Difference(**(d | {"estimate": Estimate(**d["estimate"])})) for d in plain["differences"]),
        curves={
            version: {int(cutoff): Estimate(**estimate) for cutoff, estimate in curve.items()}
            for version, curve in plain["curves"].items()
        },
        floors=plain["floors"],
        parameters=plain["parameters"],
        totals=plain.get("totals", {}),  # a file from before there were totals has none
    )


def _json(plain: object) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=1)
