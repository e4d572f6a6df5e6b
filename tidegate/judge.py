"""`tidegate judge calibrate` and `tidegate judge score`: what a judge is worth, and what it makes of the answers.

Neither decides anything: `tidegate gate` does, and lets a judge have a say only with its calibration on record.
"""

import asyncio
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, StageFailed
from tidegate.config import AnyVersion, AsJson, QuestionSet
from tidegate.console import Code, complain, loaded, note, say, say_json
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    from eval.judge_calibration import Record
    from tidegate.settings import Settings


def calibrate(
    ctx: typer.Context,
    n: Annotated[int, typer.Option("--questions", min=75, max=1000, help="Questions to make cases of.")] = 100,
    as_json: AsJson = False,
) -> Code:
    """Find out what the judge of the settings is worth.

    It grades answers out of the sample library whose grade is true by construction, each four times, and the answers of
    a generator that cites badly on purpose. The figures are recorded in a file for judge.calibration. Exit code 1 when
    the judge may not gate on them.
    """
    from tidegate.judge_records import write
    from tidegate.writable import check_writable

    settings = loaded(ctx).settings
    folder = settings.data_dir / "judges"
    check_writable(folder)  # a hosted judge costs money and an hour
    try:
        with progress() as report:
            record = asyncio.run(_calibrated(settings, n, report))
    except StageFailed as error:  # it could not be asked, which says nothing of what it is worth
        complain(str(error))
        return Code.NOT_MEASURED
    path = write(folder, record)
    if as_json:
        say_json({"file": str(path), "passes": not record.problems, "problems": record.problems, **asdict(record)})
    else:
        _tell(record)
        say(f"{record.judge} by {record.rubric} on cases {record.cases}; written to {path}")
    for problem in record.problems:
        complain(f"It may not gate: {problem}.")
    if not record.problems and not as_json:
        note("nothing has changed: set judge.calibration to that file, and judge.floor or judge.max_drop")
    return Code.REFUSED if record.problems else Code.DONE


async def _calibrated(settings: "Settings", n: int, report: Report) -> "Record":
    from eval.factgraph import generate
    from eval.judge_calibration import calibrate as held
    from eval.judge_cases import cases, digest, written
    from generation.ungrounded import UngroundedGenerator
    from tidegate.compose_judge import make_judge, make_rubric

    judge, chosen = make_judge(settings), settings.sample
    listed = cases(generate(chosen.seed, chosen.documents, chosen.questions), n, settings.evaluation.seed)
    if not listed:
        raise BadRequest(
            f"{chosen.questions} questions of the sample library make no case: raise sample.questions.", "sample"
        )
    return await held(
        judge,
        make_rubric(settings),
        listed,
        digest(listed),
        await written(UngroundedGenerator(), listed),
        seed=settings.evaluation.seed,
        workers=settings.evaluation.workers,
        progress=lambda done, total: report("judging", done, total),
    )


def _tell(record: "Record") -> None:
    for name, figure in record.figures.items():
        say(f"{name:<10} {figure.value:.3f}  [{figure.low:.3f}, {figure.high:.3f}]  over {figure.n} answers")


def score(
    ctx: typer.Context,
    version: AnyVersion = "",
    questions: QuestionSet = None,
    slice: Annotated[str, typer.Option(help="Which of the questions: dev, frozen or all.")] = "frozen",
    as_json: AsJson = False,
) -> Code:
    """Let the judge grade the answers of an evaluation.

    The version is measured first, where that is not done yet. What cannot be judged is in no mean and is counted.
    Decides nothing: see tidegate gate.
    """
    from eval.intervals import Sample, interval
    from eval.judging import counted
    from tidegate.compose_judge import make_judge, make_rubric
    from tidegate.evaluate import newest, question_set
    from tidegate.judging import judgements
    from tidegate.measuring import measure

    settings = loaded(ctx).settings
    judge, rubric = make_judge(settings), make_rubric(settings)
    chosen = question_set(settings, questions, slice)
    name = newest(settings, version)
    try:
        with progress() as report:
            measured = asyncio.run(measure(settings, name, chosen, report))
            said = judgements(settings, judge, measured.observed, report)
        counts = counted(measured.observed, said, rubric)
    except StageFailed as error:  # neither good nor bad: there is no number
        complain(str(error))
        return Code.NOT_MEASURED
    grades = Counter("not judged" if one.grade is None else one.grade.value for one in said.values())
    sample = Sample.of([value for value in counts.values() if value is not None], 0.0, 1.0)
    low, high = interval(sample, settings.evaluation.alpha, settings.evaluation.seed)
    if as_json:
        told = {i: {"grade": one.grade, "reason": one.reason} for i, one in said.items()}
        mean = {"mean": sample.mean, "low": float(low), "high": float(high), "n": sample.n}
        names = {"version": name, "judge": judge.name, "rubric": judge.rubric}
        say_json({**names, "judged": mean, "grades": dict(grades), "verdicts": told})
        return Code.DONE
    say(f"judged {sample.mean:.3f}  [{low:.3f}, {high:.3f}]  over {sample.n} answers")
    say(", ".join(f"{n} {grade}" for grade, n in sorted(grades.items())))
    say(f"Version {name}, judged by {judge.name}, rubric {judge.rubric}")
    if settings.judge.calibration is None:
        note("this judge has no calibration: what it is worth nobody knows, see tidegate judge calibrate")
    return Code.DONE
