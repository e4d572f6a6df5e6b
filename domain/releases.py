"""The glossary of releases: a version, what was measured about it, who moved the pointer, and what people then saw.

Frozen, slotted dataclasses like types.py, which has the words of questions and answers. Rules about them live in
rollout.py (which moves are legal), releasing.py (how a move is made) and canary.py (what live evidence asks for).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

# ---------------------------------------------------------------------------------------------- versions


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """An immutable index folder, named by its content: equal inputs give an equal `id`.

    `parent` names the version whose vectors were re-used; like `built_at` it is not part of the identity.
    """

    id: str
    parent: str | None
    chunker: str
    analyser: str
    embedder: str
    documents: int
    chunks: int
    built_at: str


@dataclass(frozen=True, slots=True)
class Rollout:
    """The pointer: which version people get. `share` (0..1) of the sessions go to `canary`.

    `revision` grows by one with every move and is what compare-and-set compares. `began` is the revision with which
    this canary began, 0 without one: a version that is a canary for the second time starts with no evidence. `auto`
    says that the canary may widen and be promoted by itself; turning back by itself needs no such leave.
    """

    stable: str | None = None
    canary: str | None = None
    share: float = 0.0
    previous: str | None = None
    revision: int = 0
    began: int = 0
    auto: bool = False


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that work which was killed or given up left behind, and that nobody needs. `place` is where it is."""

    place: str
    bytes: int
    why: str


class State(StrEnum):
    """Where a version is on its way to people. Derived from folder, decisions, pointer and ledger, never stored."""

    BUILT = "built"
    ADMITTED = "admitted"
    CANARY = "canary"
    STABLE = "stable"
    RETIRED = "retired"


# ---------------------------------------------------------------------------------------------- measured, decided


class Outcome(IntEnum):
    """Ordered: the worst of several outcomes decides. "Could not tell" and "could not measure" are never "fine"."""

    PASS = 0
    INCONCLUSIVE = 1
    ERROR = 2
    FAIL = 3


@dataclass(frozen=True, slots=True)
class Scorecard:
    """Metric values per question first; means are derived. None is "not eligible", which is not zero."""

    version: str
    dataset: str
    values: dict[str, dict[str, float | None]]  # metric -> question id -> value in [0, 1]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one gate said, with the numbers in `reason`."""

    gate: str
    outcome: Outcome
    reason: str
    advisory: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """What a measurement was a measurement *of*. A promotion whose binding differs from what is served is refused."""

    version: str
    dataset: str  # fingerprint of the question set
    settings: str  # digest of the served configuration
    gates: str  # digest of the gate list
    code: str  # digest of the code that answers
    baseline: str | None = None  # the stable version it was compared with; None: there was nothing to compare with


@dataclass(frozen=True, slots=True)
class Decision:
    """A recorded verdict over all gates, bound to what was measured. `forced` is the reason somebody overrode it.

    `run_id` names the run in the experiment tracker, empty while the tracker has not taken it.
    """

    binding: Binding
    verdicts: tuple[Verdict, ...]
    run_id: str
    decided_at: str
    forced: str = ""

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of the gates that bind; a decision without one could not be measured."""
        return max((v.outcome for v in self.verdicts if not v.advisory), default=Outcome.ERROR)

    @property
    def admits(self) -> bool:
        """True when its version may reach people on it, as long as it is about exactly what would be served."""
        return self.outcome is Outcome.PASS or bool(self.forced)


# ---------------------------------------------------------------------------------------------- the ledger


class Verb(StrEnum):
    """What a move did."""

    CANARY = "canary"
    WIDEN = "widen"
    PROMOTE = "promote"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Move:
    """One line of the ledger: who moved the pointer and when, from where to where, on which decision and why.

    Times are ISO 8601 in UTC. `noticed_at` is when the evidence that led to the move was complete, so that the time
    from seeing to having acted can be read off; empty for a move that a person asked for.
    """

    verb: Verb
    at: str
    who: str
    before: Rollout
    after: Rollout
    reason: str = ""
    decision: Decision | None = None
    noticed_at: str = ""


# ---------------------------------------------------------------------------------------------- live evidence

FEEDBACK = "feedback"  # the one value of an observation that a reader makes, not the service


@dataclass(frozen=True, slots=True)
class Observation:
    """One live request while a canary ran: numbers only, nothing that anybody wrote.

    `version` is the one that really answered. `values` are about that answer, `paired` about the same question on
    both versions, (canary, stable); all are in [0, 1], higher is better, and None is "not eligible".
    """

    trace_id: str
    at: float  # seconds since 1970
    version: str
    values: Mapping[str, float | None]
    paired: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def is_feedback(self) -> bool:
        """True for what a reader said later about the answer with this trace id, which is an observation of its own."""
        return FEEDBACK in self.values


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of what happened can be read in a log of observations. Of the answers one in `one_in` is kept by now: a
    log that has grown long is a sample. At least `lost` observations could not be kept although they should have been.
    """

    one_in: int = 1
    lost: int = 0


@dataclass(frozen=True, slots=True)
class LiveMetric:
    """One live metric, canary against stable. `low` and `high` bound the difference (canary less stable) at every
    moment at once, so looking often is safe. Means are None where nothing was eligible yet. `max_drop` is what the
    canary may lose, None for a metric that is no judgement. `more` is about how many more comparisons would exclude
    such a drop if they go on as so far, None where nobody can say or none is wanted.
    """

    metric: str
    paired: bool
    canary_n: int
    stable_n: int
    canary_mean: float | None
    stable_mean: float | None
    low: float
    high: float
    outcome: Outcome
    reason: str
    advisory: bool = False
    max_drop: float | None = None
    more: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known live about the canary that began with revision `began`: how many requests each version answered,
    and every metric. The worst metric that binds decides: FAIL is "worse", PASS "as good as promised", INCONCLUSIVE
    "cannot tell yet". `since_widened` counts the canary's own requests since its share last grew. All counts are of
    requests that were kept; `kept` says how much that is of what happened.
    """

    canary: str
    stable: str
    began: int
    canary_n: int
    stable_n: int
    since_widened: int
    metrics: tuple[LiveMetric, ...] = ()
    kept: Kept = Kept()

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of the metrics that bind; without one nothing is known."""
        return max((m.outcome for m in self.metrics if not m.advisory), default=Outcome.INCONCLUSIVE)
