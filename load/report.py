"""The report of a load run: one page with what was asked, the verdicts, every series with its percentiles, and plots.

The page loads nothing but the pictures beside it. Whatever a server said reaches it escaped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from load.plots import draw
from load.samples import Sample, percentile
from load.slo import KINDS, TIMES, Outcome, Verdict, worst

SHARES = (0.5, 0.9, 0.95, 0.99)
NAMES = {
    "first_ms": "first visible text, ms",
    "complete_ms": "complete, ms",
    "token_ms": "time a token, ms",
    "citations_ms": "last citation, ms",
}
LOOKS = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1d2730 }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .3rem .8rem; text-align: right }
th { font-weight: 600; border-bottom: 1px solid #9aa7b2 } td { border-bottom: 1px solid #e3e8ec }
th:first-child, td:first-child { text-align: left } img { max-width: 100% }
.held { color: #1b7a4b } .missed { color: #b3261e; font-weight: 600 } .not-measured { color: #8a6100; font-weight: 600 }
@media (prefers-color-scheme: dark) {
  body { background: #14191e; color: #dfe6ec } th { border-color: #5c6b78 } td { border-color: #2b343c }
  .held { color: #6fcf97 } .missed { color: #ff8a80 } .not-measured { color: #f2c94c } img { background: #fff }
}
"""


def write(folder: Path, samples: Sequence[Sample], verdicts: Sequence[Verdict], asked: str) -> Path:
    """The page, written with its pictures into a folder that is there. `asked` says what the run was, in one line."""
    pictures = draw(samples, folder)
    parts = [
        f"<h1>Load: {_outcome(worst(verdicts))}</h1>",
        f"<p>{escape(asked)}</p>",
        _table(("threshold", "measured", "over", "outcome"), _verdict_rows(verdicts)),
        "<h2>Times</h2>",
        "<p>From when a request was due to what it waited for. Requests that failed are in none of them.</p>",
        _table(("series", "requests", *(f"p{share * 100:g}" for share in SHARES)), _time_rows(samples)),
        *(f'<img src="{name}" alt="{name.removesuffix(".png").replace("_", " ")}">' for name in pictures),
        "<h2>Tokens, cost and citations</h2>",
        _table(("kind", "tokens in", "tokens out", "dollars", "citations complete"), _spent_rows(samples)),
        "<h2>Failures</h2>",
        _table(("why", "how many"), _failure_rows(samples)) if any(s.failure for s in samples) else "<p>None.</p>",
    ]
    page = folder / "report.html"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Load report</title><style>{LOOKS}</style>'
    page.write_text(head + "\n".join(parts) + "</html>\n", "utf-8")
    return page


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells of its rows are HTML."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _outcome(outcome: Outcome) -> str:
    return f'<span class="{outcome.value.replace(" ", "-")}">{outcome.value}</span>'


def _verdict_rows(verdicts: Sequence[Verdict]) -> Iterable[Sequence[str]]:
    for one in verdicts:
        yield escape(one.threshold.text), number(one.value), str(one.count), _outcome(one.outcome)


def _time_rows(samples: Sequence[Sample]) -> Iterable[Sequence[str]]:
    for kind in KINDS:
        for measure in TIMES:
            values = [v for s in samples if s.kind == kind and (v := getattr(s, measure)) is not None]
            if values:
                row = (number(percentile(values, share)) for share in SHARES)
                yield f"{kind}: {NAMES[measure]}", str(len(values)), *row


def _spent_rows(samples: Sequence[Sample]) -> Iterable[Sequence[str]]:
    for kind in KINDS:
        told = [s for s in samples if s.kind == kind and s.citations_complete is not None]
        if not told:
            continue
        sums: list[str] = []
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            known = [v for s in told if (v := getattr(s, name)) is not None]
            part = "" if len(known) == len(told) else f" ({len(known)} of {len(told)})"
            sums.append(f"{number(sum(known))}{part}" if known else "not measured")
        yield kind, *sums, f"{sum(bool(s.citations_complete) for s in told)} of {len(told)}"


def _failure_rows(samples: Sequence[Sample]) -> Iterable[Sequence[str]]:
    for why, count in Counter(f"{s.kind}: {s.failure}" for s in samples if s.failure).most_common():
        yield escape(why[:200]), str(count)


def number(value: float | None) -> str:
    """A number as people read it; words for none."""
    if value is None:
        return "not measured"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
