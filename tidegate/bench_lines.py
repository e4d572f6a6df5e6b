"""What a bench says: one figure a line, with its unit, its peers in the same run, and the aim that it meets or misses.

A figure that could not be taken is None and is told as "not measured"; it is neither 0 nor a missed aim.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.console import Code, complain, say, say_json_line


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `ratio` is ours to each peer, above 1 where we are better; `aim` says what was to be reached,
    `met` whether it was (None: no aim, or nothing measured)."""

    name: str
    value: float | None
    unit: str
    peers: Mapping[str, float | None] = field(default_factory=dict)
    ratio: Mapping[str, float | None] = field(default_factory=dict)
    aim: str = ""
    met: bool | None = None


def told(figures: Sequence[Figure], as_json: bool) -> Code:
    """Prints the figures. DONE when no aim was missed, REFUSED when one was, NOT_MEASURED when a value is missing."""
    for figure in figures:
        if as_json:
            say_json_line(
                {
                    "name": figure.name,
                    "value": figure.value,
                    "unit": figure.unit,
                    "peers": dict(figure.peers),
                    "ratio": dict(figure.ratio),
                    "aim": figure.aim,
                    "met": figure.met,
                }
            )
        else:
            say(_line(figure))
    for figure in figures:
        if figure.met is False:
            complain(f"{figure.name} is {_number(figure.value)} {figure.unit}, the aim is {figure.aim}")
    if any(figure.value is None for figure in figures):
        return Code.NOT_MEASURED
    return Code.REFUSED if any(figure.met is False for figure in figures) else Code.DONE


def _line(figure: Figure) -> str:
    peers = ", ".join(f"{name} {_number(value)}" for name, value in figure.peers.items())
    ratios = ", ".join(f"{_number(value)}x {name}" for name, value in figure.ratio.items())
    told_aim = f"aim {figure.aim}: {'reached' if figure.met else 'missed'}" if figure.met is not None else ""
    extra = "; ".join(part for part in (peers, ratios, told_aim) if part)
    return f"{figure.name:<28} {_number(figure.value):>12} {figure.unit}" + (f"   ({extra})" if extra else "")


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4g}"
