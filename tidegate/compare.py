"""`tidegate compare`: two versions side by side, in the terminal and as a page. Decides and records nothing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import StageFailed
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from eval.comparing import Line
    from eval.report import Report


def compare(
    ctx: typer.Context,
    baseline: Annotated[str, typer.Argument(help="Index version to compare with.", show_default=False)],
    candidate: Annotated[str, typer.Argument(help="Index version that is compared.", show_default=False)],
    questions: Annotated[
        Path | None, typer.Option(help="Question set; the one of the settings, or the sample library's, when left out.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the report there; into reports/ of the data folder when left out.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, max=1000, help="How many changed questions are shown.")] = 20,
    all_text: Annotated[
        bool, typer.Option("--all-text", help="Show questions and answers too that the anonymous reader may not see.")
    ] = False,
    as_json: AsJson = False,
) -> Code:
    """Show what changed between two versions. Decides nothing.

    Every metric, what the gate would say, and the questions that changed most. Both are measured on the same questions
    under the same settings; what was measured before is not asked again. A page with plots and both answers side by
    side is written too. Exit code 0 whatever the verdict is, 4 when it could not be measured.
    """
    from tidegate.reporting import compared

    settings = loaded(ctx).settings
    try:
        with progress() as report:
            told = compared(settings, baseline, candidate, questions, report, note, top=top, all_text=all_text)
    except StageFailed as error:  # neither better nor worse: there is no number
        complain(str(error))
        return Code.NOT_MEASURED
    path = _written(told, html or settings.data_dir / "reports" / f"{baseline}-{candidate}.html")
    if as_json:
        say_json(_as_json(told, path))
    else:
        _say(told, path)
    return Code.DONE


def _written(told: "Report", path: Path) -> Path:
    """Where the report is now, whole. Raises OSError."""
    from eval.report import page
    from retrieval.jsonrecords import replace_file

    content = page(told).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    return path


def _say(told: "Report", path: Path) -> None:
    import shutil

    from tidegate.comparison_lines import lines

    for line in lines(told, shutil.get_terminal_size((120, 24)).columns):
        say(line)
    say(f"Report with plots: {path}")


def _as_json(told: "Report", path: Path) -> dict[str, object]:
    from dataclasses import asdict

    found = told.comparison
    return {
        "baseline": found.baseline,
        "candidate": found.candidate,
        "questions": found.dataset,
        "n": found.questions,
        "facts": [asdict(fact) for fact in told.facts],
        "detectable": [asdict(line) for line in found.detectable],
        "metrics": [_line(line) for line in found.lines],
        "slices": [_line(line) for line in found.slices],
        "whole": [asdict(fact) for fact in told.whole],
        "verdicts": [asdict(v) | {"outcome": v.outcome.name} for v in found.verdicts],
        "outcome": found.outcome.name,
        "alike": found.alike,
        "changed": len(found.changes),
        "reworded": told.reworded,
        "failed": [asdict(one) for one in told.failed],
        "shown": [
            {"total": change.total, "values": dict(change.values), **asdict(answers)} for change, answers in told.shown
        ],
        "report": str(path),
    }


def _line(line: "Line") -> dict[str, object]:
    from dataclasses import asdict

    outcome = line.outcome.name if line.outcome is not None else None
    return asdict(line) | {"equal": line.equal, "outcome": outcome}
