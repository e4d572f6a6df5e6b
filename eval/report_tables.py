"""The tables of a report: what was compared, every metric, every verdict, every failure."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.evaluation import Estimate
from domain.releases import Outcome, Verdict
from eval.comparing import Line
from eval.markup import Markup, element

TOLD_FAILURES = 100


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is so about either version, as text. `marked` says that a difference is worth a look."""

    name: str
    before: str
    after: str
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """A question that a version gave no answer to, and the code of the failure; empty for the version that did."""

    question: str
    before: str
    after: str


def word(outcome: Outcome | None, *, advisory: bool = False) -> Markup:
    """An outcome as a word in its colour; a dash where no gate asks."""
    if outcome is None:
        return element("span", "no gate", class_="none")
    told = element("span", outcome.name, class_=f"word {outcome.name}")
    return element("span", told, " advisory", class_="soft") if advisory else told


def facts_table(facts: Sequence[Fact], before: str, after: str, caption: str = "") -> Markup:
    """Facts about both versions beside each other; what differs is marked, for the eye and for a reader of screens."""
    rows = []
    for fact in facts:
        differs = fact.marked and fact.before != fact.after
        name = element(
            "th", fact.name, element("span", " (differs)", class_="unseen") if differs else None, scope="row"
        )
        cells = (element("td", element("bdi", told or "none")) for told in (fact.before, fact.after))
        rows.append(element("tr", name, *cells, class_="differs" if differs else ""))
    return _table(caption or "Both versions; what differs is marked", ["", before, after], rows, looks="scroll facts")


def lines_table(lines: Sequence[Line], before: str, after: str) -> Markup:
    """One row per metric and slice: both means, the difference with its interval, and how many questions it is of."""
    numbers = [before, after, "Difference", "Interval", "Pairs", "Better", "Worse", "Equal", "Not eligible"]
    gated = any(line.outcome is not None for line in lines)
    heads = ["Metric", *(["Gate"] if gated else []), *numbers]
    rows = [element("tr", *_cells(line, gated)) for line in lines]
    return _table(f"{after} less {before}, question by question", heads, rows, numbers)


def verdicts_table(verdicts: Sequence[Verdict]) -> Markup:
    """What every gate says, with its numbers."""
    rows = []
    for verdict in verdicts:
        told = element("td", element("b", verdict.gate), " ", element("span", verdict.reason, class_="reason"))
        rows.append(element("tr", element("td", word(verdict.outcome, advisory=verdict.advisory)), told))
    return _table("Gate by gate; nothing of this was recorded", ["Verdict", "Gate and numbers"], rows)


def failed_table(failed: Sequence[Failed], before: str, after: str) -> Markup:
    """The questions that a version gave no answer to. They count as zero where they are eligible."""
    rows = [
        element(
            "tr",
            element("th", one.question, scope="row", class_="id"),
            *(element("td", code or "answered") for code in (one.before, one.after)),
        )
        for one in failed[:TOLD_FAILURES]
    ]
    more = f", of which {TOLD_FAILURES} are listed" if len(failed) > TOLD_FAILURES else ""
    return _table(f"{len(failed)} failed{more}; they score zero", ["Question", before, after], rows)


def _cells(line: Line, gated: bool) -> list[Markup | None]:
    part = element("bdi", line.slice, class_="part") if line.slice else None
    name = element("th", line.metric, " " if part else None, part, scope="row")
    asked = element("td", word(line.outcome, advisory=line.advisory)) if gated else None
    alone = _number(f"{line.ineligible}" + (f", {line.one_sided} in one" if line.one_sided else ""))
    found = line.difference
    if found is None:
        return [name, asked, element("td", "not measured: no question is eligible in both", colspan="8"), alone]
    sure = found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)
    direction = f"number sure {'PASS' if found.mean > 0 else 'FAIL'}" if sure else "number"
    counts = (line.n, line.better, line.worse, line.equal)
    means = (_number(f"{mean:.3f}") for mean in (line.before, line.after))
    difference = element("td", signed(found.mean), class_=direction)
    return [name, asked, *means, difference, _number(bounds(found)), *(_number(str(n)) for n in counts), alone]


def signed(value: float) -> str:
    """A difference; zero has no sign."""
    return f"{value:+.3f}" if round(value, 3) else "0.000"


def bounds(estimate: Estimate) -> str:
    """The interval of a difference."""
    if estimate.low is None or estimate.high is None:
        return "no interval"
    return f"{signed(estimate.low)} to {signed(estimate.high)}"


def value(of: float | None) -> str:
    """The value of one question; None is not eligible, which is not zero."""
    return "not eligible" if of is None else f"{round(of, 2):g}"


def _number(text: str) -> Markup:
    return element("td", text, class_="number")


def _table(
    caption: str, heads: Sequence[str], rows: Sequence[Markup], numbers: Sequence[str] = (), looks: str = "scroll"
) -> Markup:
    """A table that scrolls by itself where the page is narrow, by keyboard too."""
    row = (element("th", head, scope="col", class_="number" if head in numbers else "") for head in heads)
    table = element(
        "table", element("caption", caption), element("thead", element("tr", *row)), element("tbody", *rows)
    )
    return element("div", table, class_=looks, role="region", aria_label=caption, tabindex="0")
