"""`tidegate calibrate`: what the scores of this encoder and this order are worth, on the dev questions of a library.

Fits nothing on any other slice, changes nothing that is served: the file it writes counts once the settings name it,
and then for what is evaluated and for what is served alike, so that older decisions no longer speak of it.
"""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.config import AnyVersion, AsJson, QuestionSet
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from domain.calibration import Calibration
    from eval.calibrating import Error
    from tidegate.calibrating import Facts, Found
    from tidegate.settings import Settings

LEAST = 100  # questions: of fewer, an error of .05 cannot be told from none


def calibrate(
    ctx: typer.Context,
    version: AnyVersion = "",
    questions: QuestionSet = None,
    slice: Annotated[str, typer.Option(help="dev; with --check also frozen or all.")] = "dev",
    check: Annotated[bool, typer.Option("--check", help="Fit nothing: measure the calibration in force.")] = False,
    as_json: AsJson = False,
) -> Code:
    """Learn from dev questions what scores are worth.

    Turns scores into chances, and the trigger's bar into this encoder's cosines. Prints how wrong the chances are
    before and after, on questions left out of the fit, and how often a second round starts; writes a file for
    answering.calibration.
    """
    from tidegate.calibrating import fitted, found_in, held
    from tidegate.evaluate import newest, question_set

    settings = loaded(ctx).settings
    if slice != "dev" and not check:
        raise BadRequest(
            f"A calibration is fitted on dev questions only, never on those of slice {slice}, which versions are "
            "decided on: leave --slice out, or only measure with --check.",
            "slice",
        )
    try:
        chosen = question_set(settings, questions, slice)
    except BadRequest as error:
        if error.field != "slice" or check:
            raise
        raise BadRequest(
            "That question set has none in slice dev, and a calibration is fitted on no other: mark some of its "
            "questions dev, or only measure with --check --slice all.",
            "slice",
        ) from error
    if len(chosen) < LEAST:
        raise BadRequest(
            f"{len(chosen)} questions of slice {slice} are too few to calibrate on, at least {LEAST} are wanted: name "
            "a larger set with --questions, or raise evaluation.questions.",
            "questions",
        )
    name = newest(settings, version)
    with progress() as report:
        found = asyncio.run(found_in(settings, name, chosen, report))
    if check:
        facts = held(settings, found)
        path = None
    else:
        calibration, facts = fitted(settings, found)
        path = _written(settings, calibration, facts)
    if as_json:
        say_json({"version": name, "file": str(path) if path else None, **asdict(facts)})
    else:
        _tell(settings, found, facts)
        if path:
            say(f"Version {name}; written to {path}")
            note(
                "nothing that is served has changed: set answering.calibration to that file, then evaluate and gate "
                "again, because decisions about other settings no longer count"
            )
    return Code.DONE


def _written(settings: "Settings", calibration: "Calibration", facts: "Facts") -> Path:
    from retrieval.calibration import write

    return write(settings.data_dir / "calibrations", calibration, asdict(facts))


def _tell(settings: "Settings", found: "Found", facts: "Facts") -> None:
    say(f"{len(found.shown)} questions, {facts.passages} passages, {facts.relevant:.3f} of them hold evidence")
    for name, error in facts.errors.items():
        say(f"{name:<34} {'not measured' if error is None else _error(error)}")
    bar, trigger = facts.bar, settings.answering.trigger_cosine
    own = f"{facts.fires_as_written:.1%} of the questions at {trigger:.2f} as written"
    if bar is None or facts.fires is None:
        say(f"a second round starts for {own}; the bar in this encoder's terms is not measured")
    else:
        say(f"a second round starts for {own}, {facts.fires:.1%} at {bar:.3f} (calibrated)")
    if facts.fires_reference is None:
        note(
            "how often the bundled encoder would start one is not measured: build the same documents with "
            "--set embedding.backend=minilm first, and do this again"
        )
    else:
        say(f"with the bundled encoder at {trigger:.2f} for {facts.fires_reference:.1%}")


def _error(error: "Error") -> str:
    return (
        f"{error.value:.3f}  [{error.low:.3f}, {error.high:.3f}]  {error.by_chance:.3f} by chance alone, "
        f"{error.passages} passages in {error.bins} bins"
    )
