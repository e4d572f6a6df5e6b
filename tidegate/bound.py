"""What a decision must be bound to, to be about what would be served now.

For a version that is not with people yet that is the question set that is named, or the one of the settings. A canary
stays bound to the set and the gates it began on: whoever began it chose them, and a server that widens it at night
need not know the file. What is really served - settings, code, the stable version beside it - is always that of now.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import NotAdmitted
from domain.ports import IndexRegistry
from domain.releases import Binding

if TYPE_CHECKING:
    from tidegate.settings import Settings


def served_by(
    settings: "Settings", registry: IndexRegistry, questions: Path | None = None
) -> Callable[[str, str | None], Binding]:
    """A function: version and stable version beside it to what would be served. The question set is read when needed;
    a library without one is bound to the empty set, on which nothing passes and a version can only be forced.
    """

    def served(version: str, baseline: str | None) -> Binding:
        from tidegate import code
        from tidegate.effective import digest

        begun = begun_on(registry, version) if questions is None else None
        if begun is not None:
            return replace(begun, settings=digest(settings), code=code.measuring(), baseline=baseline)
        return _measured_on(settings, version, questions, baseline)

    return served


def check_server(settings: "Settings") -> None:
    """Raises NotAdmitted when the server of this data folder answers with other settings or code than these: a
    decision about these says nothing about what people would get from it.
    """
    from tidegate import code, server
    from tidegate.effective import digest

    there = server.running(settings)
    if there is None:
        return
    differing = [
        f"{name} {served or 'unknown'}, and this command {ours}"
        for name, served, ours in (
            ("settings", there.settings, digest(settings)),
            ("code", there.code, code.measuring()),
        )
        if served != ours
    ]
    if differing:
        raise NotAdmitted(
            f"The server at {there.url} (process {there.pid}) has {'; '.join(differing)}: give this command the "
            "--config and --set that the server was started with (`tidegate config show` ends with their digest), or "
            "restart the server with these (`tidegate down`, then `tidegate serve`)."
        )


def begun_on(registry: IndexRegistry, version: str) -> Binding | None:
    """What the decision was bound to with which this version became the canary; None when it is not the canary."""
    rollout = registry.rollout()
    if rollout.canary != version:
        return None
    decisions = [m.decision for m in registry.ledger() if m.after.began == rollout.began and m.decision is not None]
    return decisions[-1].binding if decisions else None


def _measured_on(settings: "Settings", version: str, questions: Path | None, baseline: str | None) -> Binding:
    from tidegate.evaluate import question_set
    from tidegate.judging import bound
    from tidegate.measuring import binding
    from tidegate.sample import questions_path

    named = questions or settings.evaluation.question_set or questions_path(settings).exists()
    asked = question_set(settings, questions) if named else ()
    return bound(settings, binding(settings, version, asked, baseline))
