"""A rollout with a past, for the page: promotions, a canary that was turned back, refused and forced versions, and a
canary that runs, with evidence weighed as it is served.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from domain.canary import Advice, Ramp, advise
from domain.releases import Binding, Decision, Evidence, IndexVersion, Observation, Outcome, Verdict
from domain.releasing import Releases, stamp
from eval.canary import LiveRules, weigh
from serving.schemas import Limits
from serving.service import Service
from tests.fakes import MemoryRegistry
from tests.serving.service import service

KEY = "k" * 40
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WATCH = "tidegate watch"


def served(version: str, baseline: str | None) -> Binding:
    """What every version here would be served as."""
    return Binding(version, "c0a57e11d9b2", "5e77a1b2c3d4", "9a7e5f00d1e2", "c0de4b1d77aa", baseline)


def passed(gate: str, reason: str, advisory: bool = False) -> Verdict:
    """A verdict that went well."""
    return Verdict(gate, Outcome.PASS, reason, advisory)


WELL = (
    passed("recall@6 floor", "0.8312 [0.8091, 0.8520] over 900 questions, floor 0.7000"),
    passed(
        "recall@6 max_drop",
        "0.8312 against 0.8247, difference +0.0065 [-0.0049, +0.0181] over 900 questions, max_drop 0.0200",
    ),
    passed("citation_precision floor", "0.9104 [0.8930, 0.9262] over 900 questions, floor 0.8000"),
    Verdict(
        "abstention max_drop",
        Outcome.INCONCLUSIVE,
        "1.0000 against 1.0000, difference +0.0000 [-0.0951, +0.0951] over 30 questions, max_drop 0.0500; "
        "fewer than the 50 it asks for",
        advisory=True,
    ),
)
WORSE = (
    Verdict(
        "recall@6 max_drop",
        Outcome.FAIL,
        "0.7514 against 0.8247, difference -0.0733 [-0.0912, -0.0561] over 900 questions, max_drop 0.0200",
    ),
    *WELL[2:3],
)
OPEN = (
    Verdict(
        "recall@6 max_drop",
        Outcome.INCONCLUSIVE,
        "0.8190 against 0.8247, difference -0.0057 [-0.0231, +0.0118] over 310 questions, max_drop 0.0200; "
        "about 560 questions would settle it",
    ),
)
UNMEASURED = (Verdict("citation_recall floor", Outcome.ERROR, "not measured: no eligible question was answered"),)


@dataclass
class Past:
    """The registry of this rollout, the clock it was moved by, and what was observed of the canary that runs."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    now: datetime = NOON
    observed: tuple[Observation, ...] = ()

    @property
    def releases(self) -> Releases:
        """The moves, at the time of this clock."""
        return Releases(self.registry, served, lambda: self.now)

    def build(self, name: str, day: int, verdicts: tuple[Verdict, ...] | None, baseline: str | None) -> None:
        """A version built in February 2026, and what was decided about it, if anything."""
        built = datetime(2026, 2, day, 9, 20, tzinfo=UTC)
        about = IndexVersion(name, baseline, "windows-160", "a3", "hash-256", 400 + day, 6100 + 31 * day, stamp(built))
        self.registry.publish(Path(name), about)
        if verdicts is not None:
            when = stamp(built + timedelta(minutes=14))
            self.registry.record(Decision(served(name, baseline), verdicts, f"run{day:02}c41e", when))

    def at(self, moment: datetime) -> Releases:
        """The moves, made then."""
        self.now = moment
        return self.releases

    def live(self) -> tuple[Evidence, Advice] | None:
        """What is known of the canary, as served."""
        rollout = self.registry.rollout()
        if rollout.canary is None:
            return None
        evidence = weigh(self.observed, rollout, NOON.timestamp() - 1200, LiveRules())
        return evidence, advise(rollout, evidence, 2400.0, Ramp())

    def service(self, **changes: Any) -> Service:
        """A service over it, whose admin key is KEY."""
        whole: dict[str, Any] = {"registry": self.registry, "releases": self.releases, "live": self.live}
        whole |= {"admin_key": KEY, "limits": Limits(wrong_key_s=0.0)}
        return service(**(whole | changes))


def past() -> Past:
    """va, then vb are promoted; vc is forced and turned back; vd, ve and vf stay built; vg is the canary; vh waits."""
    told = Past()
    told.build("va31c07e52", 2, WELL, None)
    told.at(datetime(2026, 2, 2, 10, tzinfo=UTC)).promote("va31c07e52", "operator on harbour-1", "first version")
    told.build("vb84e9d3f0", 9, WELL, "va31c07e52")
    began = datetime(2026, 2, 9, 11, tzinfo=UTC)
    told.at(began).begin("vb84e9d3f0", 0.05, "operator on harbour-1", auto=True, reason="shorter windows")
    for minutes, share in ((31, 0.25), (47, 0.5)):
        told.at(began + timedelta(minutes=minutes)).widen(share, WATCH, "As good as stable in every metric that binds.")
    told.at(began + timedelta(minutes=66)).promote("vb84e9d3f0", WATCH, "As good as stable in every metric that binds.")
    told.build("vc5a0f6b17", 16, WORSE, "vb84e9d3f0")
    began = datetime(2026, 2, 16, 15, tzinfo=UTC)
    told.at(began).force("vc5a0f6b17", "the legal texts must be in today")
    told.at(began + timedelta(minutes=1)).begin("vc5a0f6b17", 0.05, "operator on harbour-1")
    noticed = began + timedelta(minutes=9)
    told.at(noticed + timedelta(milliseconds=412)).roll_back(
        WATCH, "found: -0.081 over 214 questions asked of both: worse, and by 0.05 or more.", noticed_at=stamp(noticed)
    )
    for name, day, verdicts in (("vd10b2e8c4", 20, WORSE), ("ve77d4a096", 22, OPEN), ("vf29c8e1b3", 23, UNMEASURED)):
        told.build(name, day, verdicts, "vb84e9d3f0")
    told.build("vg6d1f5a88", 26, WELL, "vb84e9d3f0")
    told.build("vh40c7b9e2", 27, WELL, "vb84e9d3f0")
    told.build("vj93e0d5f1", 28, None, "vb84e9d3f0")
    began = NOON - timedelta(minutes=40)
    told.at(began).begin("vg6d1f5a88", 0.05, "operator on harbour-1", auto=True, reason="a better analyser for codes")
    told.at(NOON - timedelta(minutes=20)).widen(0.25, WATCH, "As good as stable in every metric that binds.")
    told.now = NOON
    told.observed = tuple(observations("vg6d1f5a88", "vb84e9d3f0"))
    return told


def observations(canary: str, stable: str, seed: int = 7) -> Iterator[Observation]:
    """1,600 requests of the last 40 minutes, a quarter of them on the canary, which answers as well but not faster."""
    chance = random.Random(seed)
    for number in range(1600):
        on_canary = number % 4 == 0
        values = {
            "success": float(chance.random() < 0.995),
            "within_slo": float(chance.random() < (0.93 if on_canary else 0.96)),
            "citations_resolved": 1.0 if chance.random() < 0.8 else None,
            "answered": float(chance.random() < 0.94),
            "grounded": float(chance.random() < 0.9),
        }
        covered = chance.betavariate(8, 2)
        overlap = chance.betavariate(6, 3)
        paired = {"found": (1.0, 1.0), "coverage": (covered, covered), "overlap": (overlap, 1.0)}
        at = NOON.timestamp() - 2400 + 1.5 * number
        version = canary if on_canary else stable
        yield Observation(f"t{number}", at, version, values, paired if on_canary else {})
