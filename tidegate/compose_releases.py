"""Settings to what watches and moves versions: observations, the moves of the pointer, the look at a canary.

Nothing here can change an answer, so none of it is part of what a decision is bound to (code.py). What answers is
compose.py.
"""

from pathlib import Path

from domain.canary import Ramp
from domain.releasing import Releases
from retrieval.observations import FolderObservations
from tidegate.bound import served_by
from tidegate.compose import make_registry
from tidegate.settings import Settings
from tidegate.watching import Lookout


def make_observations(settings: Settings) -> FolderObservations:
    """What is observed live about canaries, below the data folder."""
    return FolderObservations(settings.data_dir / "observations")


def make_releases(settings: Settings, questions: Path | None = None) -> Releases:
    """The moves of the pointer, admitted by decisions on this question set, else on that of the settings."""
    registry = make_registry(settings)
    return Releases(registry, served_by(settings, registry, questions))


def make_lookout(settings: Settings, observations: FolderObservations | None = None) -> Lookout:
    """What sees how the canary does. It remembers what it has weighed, so one is kept and asked again.

    With the `observations` that this process writes to it knows of those it lost, even when no disk takes the count.
    """
    from eval.canary import LiveRules, Weighing

    chosen = settings.canary
    return Lookout(
        make_registry(settings),
        observations or make_observations(settings),
        Weighing(LiveRules(max_drop=chosen.max_drop, alpha=chosen.alpha)),
        Ramp(shares=chosen.shares, min_requests=chosen.min_requests, timeout_s=chosen.timeout_s),
    )
