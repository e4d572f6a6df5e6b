"""`tidegate gate`: may this version reach people? Measures what is missing, judges every gate, records the decision."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import TidegateError
from domain.releases import Decision, Outcome
from tidegate.config import AnyVersion, AsJson
from tidegate.console import Code, complain, exit_code, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from tidegate.deciding import Compared

OUTCOME_CODES = {
    Outcome.PASS: Code.DONE,
    Outcome.INCONCLUSIVE: Code.INCONCLUSIVE,
    Outcome.ERROR: Code.NOT_MEASURED,
    Outcome.FAIL: Code.REFUSED,
}
NEXT = {
    Outcome.PASS: "let people try it with tidegate canary {version} --auto{questions}, or give it to all with tidegate "
    "promote {version}{questions}",
    Outcome.INCONCLUSIVE: "ask more questions (evaluation.questions, or a larger set): nobody can tell from these",
    Outcome.ERROR: "mend what kept it from being measured and decide again",
    Outcome.FAIL: "people keep what they have: see what changed with tidegate compare {baseline} {version}{questions}",
}
# With nothing to compare it with, there is nothing for a canary to stand beside either.
FIRST = NEXT | {
    Outcome.PASS: "give it to people with tidegate promote {version}{questions}",
    Outcome.FAIL: "nobody gets it: mend the corpus, the settings or the questions, and decide again",
}


def gate(
    ctx: typer.Context,
    version: AnyVersion = "",
    questions: Annotated[
        Path | None, typer.Option(help="Question set; the one of the settings, or the sample library's, when left out.")
    ] = None,
    as_json: AsJson = False,
) -> Code:
    """Decide whether a version may reach people.

    It is held against the gates of the settings and against the version people have now, on the same questions under
    the same settings; what was measured before is not asked again. The decision is recorded. Exit code 0 PASS, 1 FAIL,
    3 INCONCLUSIVE (nobody can tell from these questions), 4 when it could not be measured.
    """
    from tidegate.deciding import gate as decide
    from tidegate.evaluate import newest, question_set

    settings = loaded(ctx).settings
    try:
        asked = question_set(settings, questions)
        name = newest(settings, version)
        with progress() as report:
            decision, compared = decide(
                settings, name, asked, report, tell=(lambda _: None) if as_json else say, note=note
            )
    except TidegateError as error:
        if exit_code(error) is not Code.REFUSED:
            raise
        complain(str(error))
        return Code.NOT_MEASURED  # 1 says that the version is not good enough, and nothing else
    if as_json:
        say_json(_as_json(decision, compared, len(asked)))
    else:
        _say(decision, len(asked), questions)
    return OUTCOME_CODES[decision.outcome]


def _say(decision: Decision, n: int, questions: Path | None) -> None:
    bound, outcome = decision.binding, decision.outcome
    for verdict in decision.verdicts:
        say(f"{verdict.outcome.name:<12} {verdict.gate}: {verdict.reason}{' (advisory)' if verdict.advisory else ''}")
    versus = f" against {bound.baseline}" if bound.baseline else ", the first"
    run = f", run {decision.run_id}" if decision.run_id else ""
    say(f"{outcome.name}: version {bound.version}{versus}, {n} questions of set {bound.dataset}{run}")
    named = f" --questions {shlex.quote(str(questions))}" if questions else ""  # or the move is about another set
    to_do = (NEXT if bound.baseline else FIRST)[outcome]
    say(f"Next: {to_do.format(version=bound.version, baseline=bound.baseline, questions=named)}")


def _as_json(decision: Decision, compared: "Compared | None", n: int) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "version": decision.binding.version,
        "baseline": decision.binding.baseline,
        "questions": decision.binding.dataset,
        "n": n,
        "failed": dict(compared.candidate.failures) if compared else {},
        "detectable": [asdict(line) for line in compared.detectable] if compared else [],
        "verdicts": [asdict(v) | {"outcome": v.outcome.name} for v in decision.verdicts],
        "outcome": decision.outcome.name,
        "binding": asdict(decision.binding),
        "run_id": decision.run_id,
    }
