"""A comparison as one page: a file that loads nothing, runs nothing and can be printed; report.css has its looks.

Every text goes through markup.py, which escapes it. What may stand here was decided before: the comparison is
scrubbed, the answers are cut down to what the reader may see. The sections with tables are report_tables.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.evaluation import Estimate
from domain.releases import Outcome
from eval.apart import Apart, Side, excerpt
from eval.comparing import Change, Comparison
from eval.markup import Markup, element, joined
from eval.report_tables import Fact, Failed, facts_table, failed_table, lines_table, value, verdicts_table, word

# A failed escape would still run nothing and fetch nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is told about a comparison.

    `facts` say what was compared, `whole` what is said of a whole set and of no single question. `shown` are the
    questions that changed most, with their answers. `metrics` are those with a gate, of the candidate by slice, and
    `metrics_before` the same of the baseline; `curves` recall by cutoff and `times_ms` the time of every answer, both
    by version. `alpha` is the chance of the true difference to lie beyond one bound of an interval.
    """

    comparison: Comparison
    facts: tuple[Fact, ...]
    whole: tuple[Fact, ...]
    reworded: int  # answers that are not the same word for word
    shown: tuple[tuple[Change, Apart], ...]
    failed: tuple[Failed, ...]
    metrics: Mapping[str, Mapping[str, Estimate]]
    metrics_before: Mapping[str, Mapping[str, Estimate]]
    floors: Mapping[str, float]
    curves: Mapping[str, Mapping[int, Estimate]]
    times_ms: Mapping[str, Sequence[float]]
    alpha: float
    all_text: bool

    @property
    def hidden(self) -> int:
        """How many of the questions shown are shown without their text."""
        return sum(not answers.visible for _, answers in self.shown)


def page(report: Report) -> str:
    """The report as HTML."""
    found = report.comparison
    title = f"{found.candidate} against {found.baseline}"
    sections = list(_sections(report))
    contents = [element("li", element("a", name, href=f"#{anchor}")) for anchor, name, _ in sections]
    body = (
        element("a", "Skip to the verdict", class_="skip", href="#verdict"),
        element("header", element("h1", title), element("p", _scope(report), class_=_scope_class(report))),
        element("nav", element("ul", *contents), aria_label="Contents"),
        element("main", *(_section(anchor, name, parts) for anchor, name, parts in sections)),
        element("footer", element("p", "Made by tidegate compare. Nothing was recorded as a decision.", class_="soft")),
    )
    head = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{title} - Tidegate"),
        element("style", Markup(Path(__file__).with_suffix(".css").read_text("utf-8"))),
    )
    whole = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!doctype html>\n{whole.html}\n"


Section = tuple[str, str, tuple[Markup, ...]]  # anchor, title, parts


def _sections(report: Report) -> Iterator[Section]:
    found = report.comparison
    yield "verdict", "What the gate would say", tuple(_verdict(report))
    yield "compared", "What was compared", (facts_table(report.facts, found.baseline, found.candidate),)
    yield "metrics", "Metrics", tuple(_metrics(report))
    if found.slices:
        yield "slices", "Where they differ most", tuple(_slices(report))
    yield "changed", "Questions that changed most", tuple(_changed(report))
    if report.failed:
        yield "failed", "Questions without an answer", (failed_table(report.failed, found.baseline, found.candidate),)
    yield "plots", "Plots", tuple(_plots(report))


def _section(anchor: str, title: str, parts: Sequence[Markup]) -> Markup:
    heading = element("h2", title, id=f"{anchor}-title")
    return element("section", heading, *parts, id=anchor, aria_labelledby=f"{anchor}-title")


def _scope(report: Report) -> str:
    if report.all_text:
        return (
            "Holds all text, also of questions and answers that only some readers may see: pass it on only to those "
            "who may read the whole library."
        )
    hidden = f" {_questions(report.hidden)} below without text." if report.hidden else ""
    return f"Holds only text that the anonymous reader may see.{hidden}"


def _scope_class(report: Report) -> str:
    return "scope all" if report.all_text else "scope"


# ---------------------------------------------------------------------------------------------- verdict, metrics


SAID = {
    Outcome.PASS: "would pass.",
    Outcome.INCONCLUSIVE: "would be left open: nobody can tell from these questions.",
    Outcome.ERROR: "could not be judged.",
    Outcome.FAIL: "would be refused.",
}


def said(found: Comparison) -> str:
    """The outcome in a sentence."""
    return f"With {found.baseline} as what people have, {found.candidate} {SAID[found.outcome]}"


def alike(found: Comparison) -> str:
    """Zero differences said plainly; empty when there are some."""
    if not found.alike:
        return ""
    if found.baseline == found.candidate:
        return f"{found.candidate} is compared with itself: every difference is zero, as it must be."
    return f"No value of any metric differs in any of {_questions(found.questions)}."


def _verdict(report: Report) -> Iterator[Markup]:
    found = report.comparison
    yield element("p", word(found.outcome), " ", said(found), class_="verdict")
    if plainly := alike(found):
        yield element("p", plainly)
    if found.detectable:
        yield element("p", "What these questions can tell apart, known before any verdict:")
        yield element("ul", *(element("li", str(line)) for line in found.detectable), class_="soft")
    yield verdicts_table(found.verdicts)


def _metrics(report: Report) -> Iterator[Markup]:
    from eval.plots import differences, svg

    found = report.comparison
    yield element(
        "p",
        f"Over the questions that are eligible in both versions. The true difference is beyond each bound of an "
        f"interval with a chance of at most {report.alpha:.0%}. Not eligible is not zero: such a question is in no "
        "mean.",
    )
    yield lines_table(found.lines, found.baseline, found.candidate)
    if drawn := [line.drawn for line in found.lines if line.drawn]:
        yield _figure(
            "all", svg(differences(drawn, found.candidate, found.baseline)), "Paired differences, every metric."
        )
    yield facts_table(report.whole, found.baseline, found.candidate, "Of the whole set, without an interval")


def _slices(report: Report) -> Iterator[Markup]:
    from eval.plots import differences, svg

    found = report.comparison
    yield element(
        "p",
        "The parts of the question set that differ most, the surest first. Many parts are looked at, and some differ "
        "by luck; the verdict on slices allows for that, these intervals do not.",
    )
    yield lines_table(found.slices, found.baseline, found.candidate)
    drawn = [line.drawn for line in found.slices if line.drawn]
    yield _figure(
        "parts", svg(differences(drawn, found.candidate, found.baseline)), "Paired differences in these slices."
    )


# ---------------------------------------------------------------------------------------------- plots


def _plots(report: Report) -> Iterator[Markup]:
    from eval.plots import answer_times, by_slice, recall_curve, svg

    found = report.comparison
    if report.curves:
        yield _figure(
            "recall", svg(recall_curve(report.curves)), "Recall by the number of passages, with its interval."
        )
    if all(report.times_ms.values()):
        told = "Time of an answer on the machine that measured it; a busy one takes longer."
        yield _figure("times", svg(answer_times(report.times_ms)), told)
    for place, (metric, slices) in enumerate(report.metrics.items()):
        before = None if found.baseline == found.candidate else report.metrics_before.get(metric)
        told = f"{metric} of {found.candidate}, with its interval{f'; grey: {found.baseline}' if before else ''}."
        yield _figure(f"slices-{place}", svg(by_slice(metric, slices, report.floors.get(metric), before)), told)


def _figure(name: str, drawn: str, caption: str) -> Markup:
    """A plot, as SVG, with its colours taken from the page, and ids that no other plot has."""
    from eval.plots import AMBER, BLUE, FAINT, GREEN, GREY, GRID, INK, RED

    shades = {
        INK: "ink", FAINT: "soft", GRID: "line", BLUE: "blue", GREY: "grey", GREEN: "pass", AMBER: "open", RED: "fail",
        "#ffffff": "card",
    }  # fmt: skip
    for colour, shade in shades.items():
        drawn = drawn.replace(f"fill: {colour}", f"fill: var(--{shade})")
        drawn = drawn.replace(f"stroke: {colour}", f"stroke: var(--{shade})")
    drawn = re.sub(r'\bid="', f'id="{name}-', drawn)
    drawn = re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", drawn)
    named = f'<svg role="img" aria-labelledby="{name}-told"'
    scroll = element("div", Markup(drawn.replace("<svg", named, 1)), class_="scroll", tabindex="0")
    return element("figure", scroll, element("figcaption", caption, id=f"{name}-told"))


# ---------------------------------------------------------------------------------------------- questions


def _changed(report: Report) -> Iterator[Markup]:
    found = report.comparison
    if not found.changes:
        yield element("p", "No question changed in any metric.")
    else:
        yield element(
            "p",
            f"{len(found.changes)} of {_questions(found.questions)} changed in a metric, {report.reworded} in the "
            f"words of the answer; the {len(report.shown)} with the largest sum of differences follow. ",
            element("span", element("del", "Words only here"), class_="answer"),
            f" in {found.baseline}, ",
            element("span", element("ins", "words only here"), class_="answer"),
            f" in {found.candidate}.",
        )
    for change, answers in report.shown:
        yield _article(change, answers, found)


def _article(change: Change, answers: Apart, found: Comparison) -> Markup:
    parts = [f"{dimension} {value}" for dimension, value in answers.parts.items() if dimension != "slice"]
    heading = element("h3", element("bdi", answers.query or answers.question))
    about = element("p", element("span", answers.question, class_="id"), f" · {', '.join(parts)}", class_="soft")
    values = element("ul", *(_chip(*pair, metrics) for pair, metrics in change.grouped.items()), class_="chips")
    if not answers.visible:
        why = "Asked by a reader who may see more than the anonymous one: shown without text (--all-text shows it)."
        return element("article", heading, about, values, element("p", why, class_="soft"))
    gold = element("p", f"Expected: {answers.gold}" if answers.gold else "Expected: that it is not covered.")
    sides = element(
        "div",
        _side(found.baseline, answers.before, "del"),
        _side(found.candidate, answers.after, "ins"),
        class_="sides",
    )
    return element("article", heading, about, values, gold, sides)


def _chip(before: float | None, after: float | None, metrics: Sequence[str]) -> Markup:
    direction = "" if before is None or after is None else "up" if after > before else "down"
    return element("li", f"{value(before)} → {value(after)}  {', '.join(metrics)}", class_=direction)


def _side(version: str, side: Side, mark: str) -> Markup:
    ended = " · ".join(part for part in (version, side.status.replace("_", " "), side.grounding) if part)
    heading = element("h4", ended)
    if side.failure:
        return element("div", heading, element("p", f"No answer: {side.failure}", class_="trouble"), class_="side")
    words = joined(*(element(mark, piece.text) if piece.own else piece.text for piece in side.pieces))
    cited = [
        element(
            "li",
            element("span", each.marker, class_="marker"),
            element("span", element("bdi", each.title or each.doc_id), " ", element("span", each.doc_id, class_="id")),
            element("q", excerpt(each.quote, side.text), dir="auto"),
        )
        for each in side.citations
    ]
    sources = element("ul", *cited, class_="cited") if cited else element("p", "Cites nothing.", class_="soft")
    return element("div", heading, element("p", words, class_="answer", dir="auto"), sources, class_="side")


def _questions(n: int) -> str:
    return f"{n} question{'s' if n != 1 else ''}"
