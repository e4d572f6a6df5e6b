"""The judge of the settings over the replies of an evaluation, and the rule that lets it decide anything.

A judge gates when `judge.floor` or `judge.max_drop` is set, and only then with a calibration on record that is of this
judge and this rubric and passes. What a model said of a reply is kept, so that deciding again asks nobody again.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import ConfigError, StorageError
from domain.judging import Grade, Judgement, Submission
from domain.releases import Binding, Scorecard
from eval.gates import Gate
from tidegate.compose_judge import check_kin, check_known, judge_name, make_judge, make_rubric
from tidegate.judge_records import AGAIN, read
from tidegate.progress import Report

if TYPE_CHECKING:
    from domain.ports import Judge
    from eval.observed import Observed
    from tidegate.settings import Settings

Note = Callable[[str], None]


def check_gating(settings: "Settings") -> None:
    """Raises ConfigError when the judge is to gate and may not: not calibrated, not well enough, not as this judge by
    this rubric, of the generator's family, or of nobody knows whose.
    """
    chosen = settings.judge
    if not chosen.gates:
        return
    check_kin(settings)
    check_known(settings)
    if chosen.calibration is None:  # settings refuse it as well; a decision must not depend on that alone
        raise ConfigError(f"No judge may gate before its calibration is recorded: {AGAIN}.")
    record, rubric = read(chosen.calibration), make_rubric(settings).tag
    for what, recorded, now in (("judge", record.judge, judge_name(settings)), ("rubric", record.rubric, rubric)):
        if recorded != now:
            raise ConfigError(
                f"judge.calibration {chosen.calibration} is of the {what} {recorded}, these settings have {now}: "
                f"{AGAIN}."
            )
    if record.problems:
        raise ConfigError(
            f"The judge {record.judge} may not gate, its calibration {chosen.calibration} does not pass: "
            f"{'; '.join(record.problems)}. Choose another judge, or remove judge.floor and judge.max_drop."
        )


def judge_gates(settings: "Settings") -> tuple[Gate, ...]:
    """What the judge's grades have to reach; nothing where it decides nothing."""
    from eval.judging import METRIC

    chosen = settings.judge
    if not chosen.gates:
        return ()
    return (Gate(METRIC, floor=chosen.floor, max_drop=chosen.max_drop, min_items=chosen.min_items),)


def bound(settings: "Settings", binding: Binding) -> Binding:
    """The binding with the judge in what it calls the gates: judge, rubric, calibration and bounds; unchanged where the
    judge decides nothing.
    """
    chosen = settings.judge
    if not chosen.gates:
        return binding
    calibration = chosen.calibration.name if chosen.calibration else ""
    parts = [binding.gates, judge_name(settings), make_rubric(settings).tag, calibration]
    parts += [repr(chosen.floor), repr(chosen.max_drop), repr(chosen.min_items)]
    return replace(binding, gates=hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12])


def graded(settings: "Settings", scorecard: Scorecard, observed: "Sequence[Observed]", report: Report) -> Scorecard:
    """The scorecard with what the judge makes of every answer as one more metric.

    Raises ConfigError for a judge of the generator's family, StageFailed when too few answers could be judged.
    """
    from eval.judging import METRIC, counted

    said = judgements(settings, make_judge(settings), observed, report)
    values = counted(observed, said, make_rubric(settings))
    return Scorecard(scorecard.version, scorecard.dataset, {**scorecard.values, METRIC: values})


def judgements(
    settings: "Settings", judge: "Judge", observed: "Sequence[Observed]", report: Report
) -> dict[str, Judgement]:
    """What the judge says of every reply, by question id; asked is only about what it was not asked before."""
    from eval.judging import judgements as ask
    from eval.judging import submission

    submitted = {o.question.id: s for o in observed if (s := submission(o)) is not None}
    path, digests = _path(settings, judge), {name: _digest(s) for name, s in submitted.items()}
    kept = _kept(path)
    missing = {name: s for name, s in submitted.items() if digests[name] not in kept}
    said = asyncio.run(
        ask(
            judge,
            missing,
            workers=settings.evaluation.workers,
            progress=lambda done, total: report("judging", done, total),
        )
    )
    # Who could not be asked may be asked again; what was said stays, also where it cannot be read.
    told = {digests[name]: each.judgement for name, each in said.items() if each.asked}
    if told and settings.judge.backend != "rules":
        _keep(path, kept | told)
    return {name: said[name].judgement if name in said else kept[digests[name]] for name in submitted}


# ---------------------------------------------------------------------------------------------- what was said


def _path(settings: "Settings", judge: "Judge") -> Path:
    key = hashlib.sha256(f"{judge.name}\n{judge.rubric}".encode()).hexdigest()[:16]
    return settings.data_dir / "judgements" / f"{key}.json"


def _digest(submission: Submission) -> str:
    return hashlib.sha256(json.dumps(asdict(submission), sort_keys=True).encode()).hexdigest()[:32]


def _kept(path: Path) -> dict[str, Judgement]:
    """What was said before, by digest of the submission; nothing where the file is not there or is damaged."""
    try:
        told = json.loads(path.read_text("utf-8"))
        return {name: Judgement(Grade(grade) if grade else None, reason) for name, (grade, reason) in told.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _keep(path: Path, told: Mapping[str, Judgement]) -> None:
    from retrieval.jsonrecords import replace_file

    content = json.dumps({name: [each.grade, each.reason] for name, each in told.items()}).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content + b"\n")
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written ({error.strerror}): make room, or let this user write."
        ) from error
