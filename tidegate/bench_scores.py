"""The sample library's own scorecards, for benchmarks that draw from them: real values of real versions.

The library is cut in several ways, and each version answers all questions as it would be served. Replies are kept in
the data folder, so only the first benchmark waits for them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidegate.progress import Report

if TYPE_CHECKING:
    from domain.releases import Scorecard
    from tidegate.settings import Settings

# Two ways of cutting that do about equally well, question by question differently, and one that does worse.
CHUNKINGS: Mapping[str, Mapping[str, object]] = {
    "heading-200": {"strategy": "heading", "tokens": 200},
    "sentence-200": {"strategy": "sentence", "tokens": 200},
    "fixed-60": {"strategy": "fixed", "tokens": 60},
}


def scorecards(
    given: "Settings",
    chunkings: Mapping[str, Mapping[str, object]],
    metrics: Sequence[str],
    report: Report,
    questions: int | None = None,
) -> "dict[str, Scorecard]":
    """A scorecard for each way of cutting the sample library, under the same names.

    All of its questions are asked, or so many of them drawn by its seed. Raises StageFailed when all of one fail.
    """
    from eval.harness import score
    from eval.questions import load
    from tidegate.build import build_version
    from tidegate.measuring import draw, measure
    from tidegate.sample import corpus_path, make_sample, questions_path

    # Attacks are no questions: nothing is drawn from them here, and a hosted generator would be paid for each.
    evaluation = given.evaluation.model_copy(update={"attacks": False})
    home = at_home(given.model_copy(update={"evaluation": evaluation}))
    make_sample(home)
    there = load(questions_path(home))
    asked = there if questions is None else draw(there, questions, home.sample.seed)
    cards = {}
    for name, changes in chunkings.items():
        settings = home.model_copy(update={"chunking": home.chunking.model_copy(update=dict(changes))})
        version = build_version(settings, corpus_path(settings), report).version.id
        measured = asyncio.run(measure(settings, version, asked, report))
        cards[name] = score(measured.observed, metrics)
    return cards


def at_home(given: "Settings") -> "Settings":
    """The settings over the data folder in which all of this is kept."""
    return given.model_copy(update={"data_dir": given.data_dir / "bench" / "scores"})
