"""Progress on stderr: a moving bar for a person at a terminal, one line per step for a log. Results never pass here."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str, int, int], None]  # (what is being done, done, total); total 0 when it is not known


@contextmanager
def progress() -> Iterator[Report]:
    """A function to report with, while the block runs."""
    if sys.stderr is None or not sys.stderr.isatty():  # None when it was closed before the start
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    # Results printed meanwhile go where they belong, not through the bar's own stream.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bars:
        tasks = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield report


def _lines() -> Report:
    begun: set[str] = set()

    def report(what: str, _done: int, _total: int) -> None:
        if what not in begun and sys.stderr is not None:
            begun.add(what)
            print(f"{what} ...", file=sys.stderr, flush=True)  # noqa: T201 - this is the terminal's edge

    return report
