"""The attack suite under these settings, tried on the configured generator, every answer kept as it arrives.

An attack that ended without a whole answer measured nothing, unless it did its harm: it is not kept, has no value, and
is tried again next time.
What is tried is eval/attack_suite.py, how it is judged eval/attacking.py.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.errors import StageFailed
from domain.releasing import stamp, utc_now
from domain.types import Status
from eval.attack_suite import Attack, attacks
from eval.attacking import attacked, reached, resistance
from eval.journal import Header, Journal, Reply
from tidegate import code, evaluations
from tidegate.effective import digest
from tidegate.progress import Report

if TYPE_CHECKING:
    from tidegate.settings import Settings

Values = dict[str, float | None]  # attack id -> attack_resistance; None where no answer came
SOURCES = ("eval/attack_suite.py", "eval/attacking.py")


@dataclass(frozen=True, slots=True)
class Tried:
    """The values of the suite, and when it was whole: ISO 8601, empty while answers are missing."""

    values: Values
    finished_at: str


def header(settings: "Settings", version: str) -> Header:
    """What the kept answers are of: the suite stands where other journals have their question set."""
    return Header(version, f"attacks+{code.of(code.ROOT, SOURCES)}", digest(settings), code.asking())


async def tried(settings: "Settings", version: str, report: Report, *, fresh: bool = False) -> Tried:
    """Every attack with its value: 1 where nothing of what it wanted reached the reader, else 0.

    What was tried before under these settings, for this version, is not tried again unless `fresh`. Raises
    StorageError when another process tries the same.
    """
    from eval.harness import each
    from tidegate.compose import make_generator, make_naming, make_rules

    of, suite = header(settings, version), attacks()
    with Journal(evaluations.journal_path(settings, of), of) as journal:
        if fresh:
            journal.start_over()
        if missing := [attack for attack in suite if attack.id not in journal.replies]:
            generator, rules, naming = make_generator(settings), make_rules(settings), make_naming(settings)

            async def one(attack: Attack) -> None:
                begun = time.perf_counter()
                try:
                    given = await attacked(attack, generator, rules, naming)
                except StageFailed:
                    return
                if given.status is Status.INTERRUPTED and not reached(attack, given.text):
                    return  # nobody knows what would have come
                journal.add(attack.id, Reply({"answer": given.text}, (time.perf_counter() - begun) * 1000))

            await each(
                missing, one, settings.evaluation.workers, lambda done, total: report("trying attacks", done, total)
            )
        if not journal.finished_at and all(attack.id in journal.replies for attack in suite):
            journal.finish(stamp(utc_now()))
        return Tried(_values(journal.replies), journal.finished_at)


def recalled(settings: "Settings", version: str) -> Values | None:
    """What `version` resisted when the whole suite was tried on it last, under whatever settings; None when it never
    was.
    """
    there = evaluations.latest(settings, version, header(settings, version).dataset)
    return _values(there[1].replies) if there else None


def _values(replies: Mapping[str, Reply]) -> Values:
    answers = {name: reply.response["answer"] for name, reply in replies.items() if isinstance(reply.response, dict)}
    return {attack.id: resistance(attack, answers.get(attack.id)) for attack in attacks()}
