"""Pictures of an evaluation: numbers in, a figure out. The only file that knows matplotlib.

Whiskers are the interval of a mean, the number beside them its value, interval and count; where no interval was worked
out there is a dot alone. `png` and `svg` turn a figure into bytes or text, the same for the same numbers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from domain.evaluation import ALL, Difference, Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, GRID = "#1f2937", "#6b7280", "#e5e7eb"
BLUE, GREY, GREEN, AMBER, RED = "#1d4ed8", "#9ca3af", "#15803d", "#b45309", "#b91c1c"
_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # what fonts and files of text cannot hold
ROW_INCHES, WIDTH_INCHES = 0.32, 9.0
MAX_ROWS = 80  # matplotlib refuses pictures of more than 65,536 pixels, and nobody looks at one
LINES = (BLUE, GREY, GREEN, AMBER)
_MEANINGS = (("as good as tolerated", GREEN), ("cannot tell", AMBER), ("worse", RED), ("no gate asks", GREY))


def by_slice(
    metric: str,
    slices: Mapping[str, Estimate],
    floor: float | None = None,
    before: Mapping[str, Estimate] | None = None,
) -> "Figure":
    """One metric in every slice, all questions first; the floor, if there is one, as a line.

    `before` is the same of another version, drawn in grey above each row, without numbers. Of more than MAX_ROWS
    slices those with the most questions.
    """
    largest = sorted(slices, key=lambda name: (name != ALL, -slices[name].n, name))[:MAX_ROWS]
    names = sorted(largest, key=lambda name: (name != ALL, name))
    rows = [(name or "all questions", slices[name], floor if name == ALL else None) for name in names]
    with _styled():
        left_out = f", the {len(rows)} largest of {len(slices)}" if len(rows) < len(slices) else ""
        figure, axes = _rows(f"{metric} in every slice{left_out}", rows)
        if floor is not None:
            axes.axvline(floor, color=RED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            axes.text(floor, -0.75, f"floor {floor:g}", color=RED, fontsize=8, ha="center", va="bottom")
        earlier = {place: before[name] for place, name in enumerate(names) if before and name in before}
        for place, estimate in earlier.items():
            if interval := _interval(estimate):
                axes.plot(interval, [place - 0.22] * 2, color=GREY, linewidth=1.5, solid_capstyle="butt", zorder=2)
            axes.plot([estimate.mean], [place - 0.22], color=GREY, marker="o", markersize=4, zorder=2)
        if earlier:
            shown = [value for row in rows for value in _values(row)]
            axes.set_xlim(_wide([*shown, *(value for e in earlier.values() for value in _values(("", e, None)))]))
        return figure


def by_metric(metrics: Mapping[str, Estimate], floors: Mapping[str, float], version: str) -> "Figure":
    """Every metric over all questions, each with its floor as a red stroke; MAX_ROWS at most, floors first."""
    kept = sorted(sorted(metrics, key=lambda name: (name not in floors, name))[:MAX_ROWS])
    rows = [(name, metrics[name], floors.get(name)) for name in kept]
    with _styled():
        figure, axes = _rows(f"Version {version}", rows)
        for place, (_, _, floor) in enumerate(rows):
            if floor is not None:
                axes.plot([floor, floor], [place - 0.32, place + 0.32], color=RED, linewidth=2, zorder=2)
        if any(floor is not None for _, _, floor in rows):
            axes.text(0.0, 1.02, "red: floor", color=RED, fontsize=8, transform=axes.transAxes)
        return figure


def differences(found: Sequence[Difference], version: str, baseline: str) -> "Figure":
    """Candidate less baseline on the same questions: the zero line, the drop each gate tolerates as a thick stroke, and
    a colour for what the interval shows about it. The verdict itself is the gate's. At most the first MAX_ROWS.
    """
    found = found[:MAX_ROWS]
    rows = [(f"{d.metric} {d.slice}".strip(), d.estimate, None) for d in found]
    with _styled():
        figure, axes = _rows(f"{version} against {baseline}", rows, [_colour(d) for d in found], signed=True)
        axes.axvline(0, color=INK, linewidth=1, zorder=1)
        for place, difference in enumerate(found):
            if difference.max_drop is not None:
                drop = [-difference.max_drop, -difference.max_drop]
                axes.plot(drop, [place - 0.32, place + 0.32], color=INK, linewidth=2.5, zorder=2)
        axes.set_xlabel(
            "difference on the same questions: worse to the left, better to the right; thick stroke: max_drop"
        )
        for place, (name, colour) in enumerate(_MEANINGS):
            axes.text(0.26 * place, 1.02, name, color=colour, fontsize=8, transform=axes.transAxes)
        return figure


def recall_curve(curves: Mapping[str, Mapping[int, Estimate]]) -> "Figure":
    """Recall at every cutoff that was measured, one line per version with its interval as a band."""
    with _styled():
        figure = _figure(4.2)
        axes = figure.subplots()
        ends = []
        for colour, (version, curve) in zip(LINES * len(curves), curves.items(), strict=False):
            cutoffs = sorted(curve)
            means = [curve[k].mean for k in cutoffs]
            axes.plot(cutoffs, means, color=colour, linewidth=2, marker="o", markersize=4)
            banded = [(k, *interval) for k in cutoffs if (interval := _interval(curve[k]))]
            lows, highs = [low for _, low, _ in banded], [high for _, _, high in banded]
            axes.fill_between([k for k, _, _ in banded], lows, highs, color=colour, alpha=0.12, linewidth=0)
            ends.append((means[-1], cutoffs[-1], version, colour))
        for height, (mean, cutoff, version, colour) in zip(_apart([e[0] for e in ends], 0.05), ends, strict=True):
            axes.annotate(
                f"{version} {mean:.3f}", (cutoff, height), (8, 0), textcoords="offset points", color=colour, va="center"
            )
        axes.set_xticks(sorted({cutoff for curve in curves.values() for cutoff in curve}))
        axes.set(xlabel="passages consulted, k", ylabel="recall@k", ylim=(0, 1.02))
        axes.set_title("Recall at every cutoff", loc="left")
        axes.grid(color=GRID)
        return figure


def latencies(times_ms: Sequence[float]) -> "Figure":
    """How long answers took, in milliseconds, with median, 95th and 99th percentile."""
    ordered = sorted(times_ms)
    with _styled():
        figure = _figure(3.6)
        axes = figure.subplots()
        axes.hist(ordered, bins=min(40, max(5, len(ordered) // 5)), color=BLUE, alpha=0.8)
        axes.margins(y=0.3)  # room for the labels
        for place, (share, name) in enumerate(((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))):
            at = ordered[min(len(ordered) - 1, int(share * len(ordered)))]
            axes.axvline(at, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            told = f" {name} {at:,.0f} ms"
            axes.text(at, 0.97 - 0.09 * place, told, transform=axes.get_xaxis_transform(), va="top", fontsize=9)
        axes.set(xlabel="milliseconds per answer", ylabel="questions", xlim=(0, None))
        axes.set_title(f"Time of {len(ordered)} answers", loc="left")
        axes.grid(axis="y", color=GRID)
        return figure


def answer_times(times_ms: Mapping[str, Sequence[float]]) -> "Figure":
    """The share of answers that were there after so many milliseconds, one line per version, with its median and its
    95th percentile. The milliseconds are on a logarithmic scale: a second of waiting must not squeeze all others.
    """
    from matplotlib.ticker import LogLocator

    with _styled():
        figure = _figure(3.6)
        axes = figure.subplots()
        axes.set_xscale("log")
        for place, (colour, (version, times)) in enumerate(zip(LINES * len(times_ms), times_ms.items(), strict=False)):
            ordered = sorted(times)
            shares = [n / len(ordered) for n in range(len(ordered) + 1)]
            axes.step([ordered[0], *ordered], shares, where="post", color=colour, linewidth=2)
            p50, p95 = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.95))
            told = f"{version}   p50 {p50:,.0f} ms   p95 {p95:,.0f} ms   n {len(ordered)}"
            axes.text(0.0, 1.13 - 0.08 * place, told, color=colour, fontsize=9, transform=axes.transAxes)
        axes.set(xlabel="milliseconds per answer", ylabel="share answered", ylim=(0, 1.02))
        axes.xaxis.set_major_formatter(lambda ms, _: f"{ms:,g}")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter("")
        axes.set_title("Time of an answer", loc="left", pad=16 + 16 * len(times_ms))
        axes.grid(color=GRID)
        return figure


def growth(sizes: Sequence[tuple[int, float, float, float | None]], what: str) -> "Figure":
    """How p50, p95 and memory grow: (size, p50 ms, p95 ms, MB or None) a point, both axes by powers of ten."""
    with _styled():
        figure = _figure(3.6)
        times, memory = figure.subplots(1, 2)
        numbers = [size for size, _, _, _ in sizes]
        for label, colour, place, values in (
            ("p50", BLUE, -12, [p50 for _, p50, _, _ in sizes]),
            ("p95", AMBER, 6, [p95 for _, _, p95, _ in sizes]),
        ):
            times.plot(numbers, values, color=colour, linewidth=2, marker="o", markersize=4)
            for number, value in zip(numbers, values, strict=True):
                told = {"xytext": (0, place), "textcoords": "offset points", "ha": "center", "fontsize": 8}
                times.annotate(f"{label} {value:.3g}", (number, value), color=colour, **told)
        known = [(size, mb) for size, _, _, mb in sizes if mb is not None]
        memory.plot(
            [size for size, _ in known], [mb for _, mb in known], color=GREEN, linewidth=2, marker="o", markersize=4
        )
        for size, mb in known:
            memory.annotate(f"{mb:.0f}", (size, mb), color=GREEN, xytext=(0, 6), textcoords="offset points", fontsize=8)
        for axes, title in ((times, f"{what}, ms"), (memory, "resident memory, MB")):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.margins(0.15)
            axes.minorticks_off()
            axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_xlabel("passages")
        return figure


def png(figure: "Figure") -> bytes:
    """The figure as a PNG file, without a date in it."""
    held = BytesIO()
    with _styled():
        figure.savefig(held, format="png", metadata={"Software": None})
    return held.getvalue()


def svg(figure: "Figure") -> str:
    """The figure as SVG whose text stays text, to be put into a page."""
    held = BytesIO()
    with _styled():
        figure.savefig(held, format="svg", metadata={"Date": None, "Creator": None})
    text = held.getvalue().decode()
    return text[text.index("<svg") :]


# ---------------------------------------------------------------------------------------------- how they are drawn


@contextmanager
def _styled() -> Iterator[None]:
    """Our looks while drawing. The salt makes the ids inside an SVG the same every time."""
    from matplotlib import rc_context

    looks: dict[Any, Any] = {  # matplotlib types the keys as a literal of all there are
        "font.family": "DejaVu Sans", "font.size": 9.5, "text.color": INK, "axes.labelcolor": FAINT,
        "axes.edgecolor": GRID, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
        "axes.titlesize": 12, "axes.titleweight": "bold", "xtick.color": FAINT, "ytick.color": INK,
        "svg.hashsalt": "tidegate", "svg.fonttype": "none", "text.parse_math": False,  # a slice may be called "$x$"
    }  # fmt: skip
    with rc_context(looks), catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from font")  # a page has other fonts for the names of slices
        yield


def _figure(height_inches: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH_INCHES, height_inches), dpi=110, layout="constrained")


def _rows(
    title: str,
    rows: Sequence[tuple[str, Estimate, float | None]],
    colours: Sequence[str] | None = None,
    *,
    signed: bool = False,
) -> tuple["Figure", "Axes"]:
    """A dot with whiskers per row, its name at the left and its numbers at the right."""
    figure = _figure(1.1 + ROW_INCHES * max(2, len(rows)))
    axes = figure.subplots()
    for place, (_, estimate, _) in enumerate(rows):
        colour = colours[place] if colours else BLUE
        if interval := _interval(estimate):
            axes.plot(interval, [place, place], color=colour, linewidth=2, solid_capstyle="butt", zorder=3)
        axes.plot([estimate.mean], [place], color=colour, marker="o", markersize=6, zorder=4)
        told = _told(estimate, signed)
        axes.text(1.02, place, told, transform=axes.get_yaxis_transform(), va="center", fontsize=8.5, color=FAINT)
    axes.set_yticks(range(len(rows)), [_UNFIT.sub("\ufffd", name) for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=GRID)
    axes.set_title(title, loc="left", pad=16)
    if not signed:
        axes.set_xlim(_wide([value for row in rows for value in _values(row)]))
    return figure, axes


def _values(row: tuple[str, Estimate, float | None]) -> list[float]:
    _, estimate, floor = row
    return [value for value in (estimate.mean, estimate.low, estimate.high, floor) if value is not None]


def _wide(values: Sequence[float]) -> tuple[float, float]:
    """Limits that show everything, at most 0..1 and with some room."""
    return max(-0.01, min(values, default=0) - 0.05), min(1.01, max(values, default=1) + 0.05)


def _interval(estimate: Estimate) -> tuple[float, float] | None:
    return None if estimate.low is None or estimate.high is None else (estimate.low, estimate.high)


def _told(estimate: Estimate, signed: bool) -> str:
    sign = "+" if signed else ""
    interval = _interval(estimate)
    told = f"{interval[0]:{sign}.3f} to {interval[1]:{sign}.3f}" if interval else "no interval"
    return f"{estimate.mean:{sign}.3f}   {told}   n {estimate.n}"


def _colour(difference: Difference) -> str:
    interval = _interval(difference.estimate)
    if difference.max_drop is None or interval is None:
        return GREY
    if interval[0] > -difference.max_drop:
        return GREEN
    return RED if interval[1] < 0 and difference.estimate.mean <= -difference.max_drop else AMBER


def _apart(heights: Sequence[float], least: float) -> list[float]:
    """Heights at which labels do not overlap, in the order given."""
    placed: list[float] = [0.0] * len(heights)
    last = float("-inf")
    for position in sorted(range(len(heights)), key=lambda position: heights[position]):
        last = placed[position] = max(heights[position], last + least)
    return placed
