"""The code that answers, and the code that measures it, as digests of their source.

A version number says what was meant to be installed; the digest says what is. A decision is bound to it, so that a
changed prompt or metric is a changed measurement even when nobody thought of a new number.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # where the packages lie beside each other, installed or not

# What can change the reply to a question, the asking included.
ASKING = (
    "domain", "retrieval", "generation", "serving", "tidegate/compose.py",
    "tidegate/compose_calibration.py", "tidegate/compose_graph.py", "tidegate/compose_sessions.py",
    "eval/client.py", "eval/harness.py",
)  # fmt: skip
# What can change a number as well: metrics, intervals, gates.
MEASURING = (*ASKING, "eval")

# What can change a grade: what a judge is asked, what it goes by, and how its verdict is read.
JUDGING = (
    "domain", "eval/citations.py", "eval/judging.py", "eval/metrics.py", "eval/model_judge.py", "eval/rules_judge.py",
    "generation/rendering.py",
)  # fmt: skip


@cache
def asking() -> str:
    """The installed version and eight hex digits that change with any file which can change a reply.

    Read once per process: what is on disk later is not what runs here.
    """
    return _digest(ASKING)


@cache
def measuring() -> str:
    """As `asking`, over what can change a decision too. This is what a Binding calls the code."""
    return _digest(MEASURING)


@cache
def judging() -> str:
    """Eight hex digits over what can change a judge's grade, whatever version is installed: the judge's own digest."""
    return of(ROOT, JUDGING)


def of(root: Path, parts: Iterable[str]) -> str:
    """Eight hex digits over the names and bytes of the files and folders named by `parts`, compiled files left out.

    Raises OSError for a part that is not there: a digest of nothing would equal any other digest of nothing.
    """
    whole = hashlib.sha256()
    for path in sorted({path for part in parts for path in _files(root / part)}):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()[:8]


def _digest(parts: Iterable[str]) -> str:
    return f"{installed('tidegate')}+{of(ROOT, parts)}"


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        path.stat()
        yield path
        return
    for inner in path.iterdir():
        if inner.is_dir() and inner.name != "__pycache__":
            yield from _files(inner)
        elif inner.is_file() and not inner.name.startswith("."):  # editors leave hidden files beside the source
            yield inner
