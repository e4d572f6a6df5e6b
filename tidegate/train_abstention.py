"""`tidegate train-abstention`: what signals of evidence are worth under these settings, as a file.

Learns on libraries of other seeds than the sample's, which are made and indexed for it, and sets the bar on the dev
questions of the sample; its frozen questions are not looked at.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, StorageError
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from eval.covering_training import Sample
    from eval.questions import Question
    from tidegate.settings import Settings

FIRST_SEED = 101  # of the libraries that are learned from; the next ones follow


def train_abstention(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="File to write.", show_default=False)],
    libraries: Annotated[int, typer.Option(min=1, max=20, help="Libraries to learn from.")] = 3,
    as_json: AsJson = False,
) -> Code:
    """Learn when to decline, on made-up libraries.

    Indexes each of them under these settings, asks all of its questions, and sets the bar on the dev questions of the
    sample library so that at most 3 % of the answerable ones are declined. Name the file in abstaining.weights.
    """
    from eval.covering_training import held, learned
    from retrieval.covering_file import record_of
    from tidegate.compose_covering import encoder_name

    settings = loaded(ctx).settings
    seeds = range(FIRST_SEED, FIRST_SEED + libraries)
    if settings.sample.seed in seeds:
        raise BadRequest(
            f"sample.seed {settings.sample.seed} is a library that is learned from: set another one.", "sample.seed"
        )
    with progress() as report:
        training = [sample for seed in seeds for sample in _samples(settings, seed, "", report)]
        dev = _samples(settings, settings.sample.seed, "dev", report)
    covering = learned(encoder_name(settings), training, dev)
    measured = {
        "learned_on": f"{len(training)} questions of libraries {', '.join(map(str, seeds))}",
        "bar_set_on": f"{len(dev)} dev questions of library {settings.sample.seed}",
        "dev": asdict(held(covering, dev)),
    }
    _write(out, record_of(covering, measured))
    if as_json:
        say_json({"file": str(out), "bar": covering.bar, **measured})
    else:
        told = held(covering, dev)
        say(f"{out}: on {told.questions} dev questions F1 {told.f1:.3f}, over-refusal {told.over_refusal:.3f}")
        note("nothing that is served has changed: set abstaining.weights to that file, then evaluate and gate again")
    return Code.DONE


def _samples(settings: "Settings", seed: int, part: str, report: Report) -> "list[Sample]":
    """The questions of one library, of all slices or one, with the signals of their evidence."""
    from eval.questions import load
    from tidegate.build import build_version
    from tidegate.sample import corpus_path, make_sample, questions_path

    home = settings.model_copy(
        update={
            "data_dir": settings.data_dir / "abstention",
            "sample": settings.sample.model_copy(update={"seed": seed}),
        }
    )
    make_sample(home)
    questions = [one for one in load(questions_path(home)) if part in ("", one.slice)]
    version = build_version(home, corpus_path(home), report).version.id
    return asyncio.run(signals_of(home, version, questions, report))


async def signals_of(
    settings: "Settings", version: str, questions: "Sequence[Question]", report: Report
) -> "list[Sample]":
    """Every question with the signals of what `version` has for it, on the path that answers people.

    Weights without a tree and a bar above every chance decline all of them, so nobody writes an answer.
    """
    from dataclasses import replace

    from domain.answering import answer, outcome
    from domain.covering import Covering
    from domain.types import Ask, Done, Session
    from eval.covering_training import Sample
    from tidegate.compose import in_process_stages, make_library, make_naming, make_rules
    from tidegate.compose_covering import encoder_name

    library = make_library(settings)
    await library.refresh()
    stages = in_process_stages(settings, library, hurried=False)
    rules = replace(make_rules(settings), covering=Covering(encoder_name(settings), 0.0, (), bar=1.0))
    naming, found = make_naming(settings), list[Sample]()
    for number, one in enumerate(questions, 1):
        ask = Ask(one.query, Session(one.id, one.history), one.scope, version, one.id)
        ended = await outcome(answer(ask, stages, rules, naming))
        if isinstance(ended, Done) and (seen := ended.answer.trace.coverage) is not None and seen.signals:
            found.append(Sample(dict(seen.signals), one.type != "null"))
        report("asking", number, len(questions))
    return found


def _write(out: Path, record: dict[str, object]) -> None:
    try:
        out.write_text(json.dumps(record) + "\n", "utf-8")
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}): choose another --out.") from error
