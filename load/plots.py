"""Pictures of a load run: latencies over time, and their distribution. The only file of load/ with matplotlib."""

from collections.abc import Sequence
from pathlib import Path

from load.samples import Sample

COLOURS = {"answer": "#3b6ea8", "follow_up": "#7a5ba6", "stream": "#2f8f6b", "search": "#b07b2c"}
FAILED = "#c0392b"


def draw(samples: Sequence[Sample], folder: Path) -> list[str]:
    """The names of the pictures drawn into a folder; none of a run without a single success."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    kinds = [kind for kind in COLOURS if any(s.kind == kind and not s.failure for s in samples)]
    if not kinds:
        return []
    figure, axes = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    for kind in kinds:
        ok = [s for s in samples if s.kind == kind and s.complete_ms is not None]
        times = [s.complete_ms for s in ok if s.complete_ms is not None]
        axes.scatter([s.due_s for s in ok], times, s=9, alpha=0.6, color=COLOURS[kind], label=kind)
    top = max(s.complete_ms for s in samples if s.complete_ms is not None)
    failed = [s.due_s for s in samples if s.failure]
    axes.scatter(failed, [top * 1.06] * len(failed), marker="x", s=22, color=FAILED, label=f"failed ({len(failed)})")
    axes.set(
        xlabel="seconds into the run, when the request was due", ylabel="ms to the end of the reply", ylim=(0, None)
    )
    axes.legend(frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    _save(figure, folder / "over_time.png")

    figure, axes = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    for kind in kinds:
        for measure, style in (("complete_ms", "-"), ("first_ms", ":")):
            ms = sorted(v for s in samples if s.kind == kind and (v := getattr(s, measure)) is not None)
            if ms:
                label = kind if style == "-" else f"{kind}, first text"
                shares = [(i + 1) / len(ms) for i in range(len(ms))]
                axes.step(ms, shares, style, where="post", color=COLOURS[kind], label=label)
    for share in (0.5, 0.95, 0.99):
        axes.axhline(share, color="#bbbbbb", linewidth=0.6, zorder=0)
    axes.set(xlabel="ms", ylabel="share of the requests that succeeded", xscale="log", ylim=(0, 1.01))
    axes.legend(frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    _save(figure, folder / "distribution.png")
    return ["over_time.png", "distribution.png"]


def _save(figure: object, path: Path) -> None:
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    if isinstance(figure, Figure):
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=110)
        pyplot.close(figure)
