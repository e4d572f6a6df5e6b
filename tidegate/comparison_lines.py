"""A comparison as lines of a terminal: a table where there is room for one, and each metric by itself where not."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eval.report import alike, said
from eval.report_tables import bounds, signed, value
from tidegate.columns import beside, padded, wrapped

if TYPE_CHECKING:
    from eval.apart import Apart, Side
    from eval.comparing import Change, Line
    from eval.report import Report

TABLE_CELLS = 110  # what the table takes; narrower terminals get a metric in three lines
BESIDE_CELLS = 80  # two answers beside each other are readable from here on
TOLD_FAILURES = 10


def lines(report: "Report", width: int) -> Iterator[str]:
    """All that is told, in lines of at most `width` cells where it can be broken."""
    found = report.comparison
    yield f"V1 {found.baseline}"
    yield f"V2 {found.candidate}"
    yield from _facts(report, width)
    yield ""
    for told in found.detectable:
        yield str(told)
    yield ""
    yield from _table(found.lines, width)
    if found.slices:
        yield ""
        yield "Slices that differ most, the surest first; many are looked at, and some differ by luck:"
        yield from _table(found.slices, width)
    yield ""
    yield from _whole(report)
    for verdict in found.verdicts:
        yield f"{verdict.outcome.name:<12} {verdict.gate}: {verdict.reason}{' (advisory)' if verdict.advisory else ''}"
    yield f"{found.outcome.name}: {said(found)} Nothing was recorded."
    if plainly := alike(found):
        yield plainly
    yield from _failed(report)
    yield from _changed(report, width)


# ---------------------------------------------------------------------------------------------- what, and numbers


def _facts(report: "Report", width: int) -> Iterator[str]:
    """What is the same in one line; what differs, one line each."""
    same = [f"{fact.name.lower()} {fact.before}" for fact in report.facts if fact.before == fact.after]
    yield from wrapped(f"{report.comparison.questions} questions; both: {', '.join(same)}", width)
    for fact in report.facts:
        if fact.before != fact.after:
            yield f"{fact.name}: V1 {fact.before}, V2 {fact.after}"


def _whole(report: "Report") -> Iterator[str]:
    for fact in report.whole:
        yield f"{fact.name}: {fact.before} -> {fact.after}"


def _table(rows: "Sequence[Line]", width: int) -> Iterator[str]:
    name = max(len(_name(row)) for row in rows)
    if width < TABLE_CELLS - 28 + name:
        for row in rows:
            yield from _stacked(row)
        return
    yield f"{'':<{name}}     V1     V2  difference [interval]      pairs better worse  equal  gate"
    for row in rows:
        yield f"{padded(_name(row), name)}  {_numbers(row)}  {_word(row)}".rstrip()


def _numbers(row: "Line") -> str:
    if row.difference is None or row.before is None or row.after is None:
        return f"not measured: no question is eligible in both ({row.one_sided} in one)"
    return (
        f"{row.before:5.3f}  {row.after:5.3f}  {signed(row.difference.mean):>6} {_interval(row):<18}  {row.n:>5} "
        f"{row.better:>6} {row.worse:>5} {row.equal:>6}"
    )


def _stacked(row: "Line") -> Iterator[str]:
    yield f"{_name(row)}{f': {word}' if (word := _word(row)) else ''}"
    if row.difference is None or row.before is None or row.after is None:
        yield f"  not measured: no question is eligible in both ({row.one_sided} in one)"
        return
    yield f"  {row.before:.3f} -> {row.after:.3f}, difference {signed(row.difference.mean)} {_interval(row)}"
    yield f"  {row.n} pairs: {row.better} better, {row.worse} worse, {row.equal} equal"


def _interval(row: "Line") -> str:
    return f"[{bounds(row.difference).replace(' to ', ', ')}]" if row.difference else ""


def _name(row: "Line") -> str:
    return f"{row.metric} [{row.slice}]" if row.slice else row.metric


def _word(row: "Line") -> str:
    """What the gates say; nothing where no gate asks."""
    return "" if row.outcome is None else f"{row.outcome.name}{' (advisory)' if row.advisory else ''}"


# ---------------------------------------------------------------------------------------------- questions


def _failed(report: "Report") -> Iterator[str]:
    for each in report.failed[:TOLD_FAILURES]:
        yield f"No answer to {each.question}: V1 {each.before or 'answered'}, V2 {each.after or 'answered'}"
    if len(report.failed) > TOLD_FAILURES:
        yield f"... and {len(report.failed) - TOLD_FAILURES} more without an answer"


def _changed(report: "Report", width: int) -> Iterator[str]:
    found = report.comparison
    yield (
        f"{len(found.changes)} of {found.questions} questions changed in a metric, {report.reworded} in the words of "
        f"the answer{'; most:' if report.shown else ''}"
    )
    for number, (change, answers) in enumerate(report.shown, 1):
        yield ""
        yield from _question(number, change, answers, width)


def _question(number: int, change: "Change", answers: "Apart", width: int) -> Iterator[str]:
    values = (f"{value(old)} -> {value(new)} {', '.join(names)}" for (old, new), names in change.grouped.items())
    yield from wrapped(f"{number}. {answers.question}: {'; '.join(values)}", width)
    if not answers.visible:
        yield "   not for the anonymous reader: --all-text shows it"
        return
    yield from wrapped(f"Q: {answers.query}", width)
    yield from wrapped(f"Expected: {answers.gold or 'that it is not covered'}", width)
    before, after = _side("V1", answers.before), _side("V2", answers.after)
    if width < BESIDE_CELLS:
        yield from wrapped(before, width)
        yield from wrapped(after, width)
    else:
        yield from beside(before, after, width)


def _side(name: str, side: "Side") -> str:
    if side.failure:
        return f"{name} no answer: {side.failure}"
    cited = "\n".join(f"[{each.marker}] {each.title or each.doc_id}" for each in side.citations)
    return f"{name} {side.status}, {side.grounding}\n{side.text}\n{cited or 'cites nothing'}"
