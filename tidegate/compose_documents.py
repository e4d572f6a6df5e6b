"""Settings to what changes documents that are in a version already."""

from domain.amending import Amending
from retrieval.holdings import Holdings
from tidegate.compose import make_registry
from tidegate.settings import Settings

# Replicas ask the registry every second, and reading takes a moment: after this an acknowledged deletion is one.
SETTLE_S = 2.0


def make_amending(settings: Settings) -> Amending:
    """The amendments of this data folder's registry."""
    registry = make_registry(settings)
    return Amending(registry, Holdings(registry).tenant_of)
