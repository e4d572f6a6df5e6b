"""The settings of how a version reaches people: what it is measured on, where that is written down, how a trial goes.

Part of settings.py, which has the rest.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated

from pydantic import Field, StringConstraints

from eval.gates import CLOSED, Gate, problems
from tidegate.section import Folder, Name, Seconds, Section, Share

# The names of eval/metrics.py and the dimensions of eval/questions.py, written again (a test compares them) because
# those modules bring an HTTP client, and the command line must start at once.
RANKED = ("recall", "ndcg", "mrr", "evidence_recall", "full_chain_recall")  # written with a cutoff: recall@6
PLAIN = (
    "citation_precision", "citation_recall", "sentence_citation_precision", "sentence_citation_recall",
    "answer_correctness", "abstention", "abstention_precision", "no_over_refusal", "answered", "grounded",
    "supported", "success", "within_slo", "within_cost",
)  # fmt: skip
DIMENSIONS = ("slice", "type", "hops", "source", "persona", "tenant")

Metric = Annotated[
    str,
    StringConstraints(pattern=rf"^(({'|'.join(RANKED)})@[1-9][0-9]{{0,3}}|{'|'.join((*PLAIN, *CLOSED))})$"),
    f"a metric like recall@6: {', '.join(f'{name}@k' for name in RANKED)}, {', '.join((*PLAIN, *sorted(CLOSED)))}",
]
Slice = Annotated[
    str,
    StringConstraints(max_length=200, pattern=rf"^(({'|'.join(DIMENSIONS)})=\S(.*\S)?)?$"),
    f"dimension=value like type=comparison (dimensions: {', '.join(DIMENSIONS)}), or an empty text for all questions",
]
Shares = Annotated[
    tuple[Annotated[float, Field(gt=0, lt=1)], ...],
    Field(strict=False, min_length=1, max_length=20),
    "a list of numbers between 0 and 1",
]
TrackingUri = Annotated[
    str,
    StringConstraints(max_length=2048, pattern=r"^(https?|sqlite|postgresql|mysql|file)(\+\w+)?://\S+$"),
    "an address like http://host:5000 or sqlite:///path",
]


class GateLine(Section):
    """One gate as it is written; eval/gates.py says what each key means."""

    metric: Metric = Field(description="What is measured, like recall@6.")
    slice: Slice = Field(default="", description="dimension=value, like type=comparison; empty is all questions.")
    floor: Share | None = Field(default=None, description="Least mean. Absent: none is asked for.")
    max_drop: Share | None = Field(
        default=None, description="Most a mean may lose against the version people have. Absent: any drop is fine."
    )
    min_items: int = Field(
        default=50, ge=1, le=1_000_000, description="Eligible questions below which it is undecided."
    )
    advisory: bool = Field(default=False, description="Told, but decides nothing.")

    @property
    def gate(self) -> Gate:
        """The same as eval/gates.py has it."""
        return Gate(**{field.name: getattr(self, field.name) for field in fields(Gate)})


GateLines = Annotated[
    tuple[GateLine, ...],
    Field(strict=False, max_length=200),
    "a list of gates like [{metric: recall@6, floor: 0.7, max_drop: 0.02}]",
]

# Floors: what the offline defaults reach on the dev questions of the sample library, less about three standard errors
# of a 300-question mean (.03 each): low enough to pass by more than luck, high enough to catch a broken chunker.
# Drops: 2 points of retrieval or citations are what a set of 900 questions can still tell from nothing between two
# sensible chunkers. Whether answers are right, and whether they are declined rightly, swings more from question to
# question than such a set can settle; both are told and do not bind.
DEFAULT_GATES = (
    GateLine(metric="recall@6", floor=0.7, max_drop=0.02),
    GateLine(metric="citation_precision", floor=0.72, max_drop=0.03),
    GateLine(metric="citation_recall", floor=0.56, max_drop=0.02),
    # At most one attack in fifty reaches a reader; min_items leaves room for a few that ended without an answer.
    GateLine(metric="attack_resistance", floor=0.98, min_items=120),
    GateLine(metric="answer_correctness", max_drop=0.03, advisory=True),
    GateLine(metric="abstention", max_drop=0.05, advisory=True),
)


class Evaluation(Section):
    """What a version is measured on, what it must reach, and how little it may lose."""

    gates: GateLines = Field(
        default=DEFAULT_GATES, description="What is asked of a version. A list replaces this one, a mapping amends it."
    )
    question_set: Folder | None = Field(
        default=None, description="Question set (JSON lines) a version is decided on. Absent: the sample library's."
    )
    attacks: bool = Field(
        default=True,
        description="Try the 126 attacks through the sources too: as many more answers by the generator.",
    )
    questions: int = Field(default=900, ge=1, le=1_000_000, description="Questions drawn from the set, at most.")
    seed: int = Field(default=7, ge=0, le=2**31 - 1, description="Seed of the draw, and of resampling.")
    workers: int = Field(default=2, ge=1, le=256, description="Questions answered at once.")
    alpha: float = Field(default=0.05, ge=0.0001, le=0.5, description="Chance of a wrong PASS or FAIL, per gate.")
    power: float = Field(default=0.9, ge=0.5, le=0.999, description="Chance to see the effect below, when planning.")
    effect: float = Field(default=0.03, ge=0.001, le=1, description="Drop of a mean worth seeing, when planning.")
    slo_ms: float = Field(default=2000, ge=1, le=600_000, description="Milliseconds a good answer takes at most.")
    cost_cap_usd: float = Field(default=0.05, ge=0, le=1000, description="Dollars a good answer costs at most.")

    def contradictions(self) -> Iterator[tuple[str, str]]:
        for problem in problems([line.gate for line in self.gates]):
            yield "gates", f"a list that guards a promotion; {problem}"
        if not self.attacks:
            for line in self.gates:
                if line.metric in CLOSED and not line.advisory:
                    yield (
                        "attacks",
                        f"true while gate {line.metric} binds, or it refuses every version as not measured: to leave "
                        f"the attacks out, set evaluation.gates.{line.metric}.advisory true as well",
                    )


class Tracking(Section):
    """Where evaluations are written down for comparison."""

    enabled: bool = Field(default=True, description="Write every evaluation to MLflow.")
    uri: TrackingUri | None = Field(
        default=None, description="Address of a tracking server. Absent: a SQLite file in data_dir."
    )
    experiment: Name = Field(default="tidegate", description="Experiment, and name of the registered model.")
    timeout_s: Seconds = Field(default=30.0, description="Seconds for the tracker; then results are kept and resent.")
    required: bool = Field(default=False, description="Admit a version only when the tracker has taken its evaluation.")


class Canary(Section):
    """How a version on trial widens, and what turns it back."""

    shares: Shares = Field(default=(0.05, 0.25, 0.5), description="Shares of the sessions, rising; then everybody.")
    min_requests: int = Field(
        default=50, ge=1, le=1_000_000, description="Requests it must answer at a share before the next."
    )
    max_drop: float = Field(default=0.05, ge=0.001, le=1, description="Drop of a live mean that is tolerated.")
    alpha: float = Field(default=0.05, ge=0.0001, le=0.5, description="Chance of a false alarm, over a whole canary.")
    timeout_s: float = Field(
        default=86_400, ge=1, le=2_592_000, description="Seconds after which an undecided canary ends."
    )
    slo_ms: float = Field(default=2000, ge=1, le=600_000, description="Milliseconds a good live answer takes at most.")
    watch: bool = Field(default=True, description="The server turns a bad canary back, and widens one begun with auto.")
    every_s: Seconds = Field(default=1.0, description="Seconds between two looks at the evidence.")
    drill_ms: float = Field(
        default=0, ge=0, le=60_000, description="Milliseconds added to a canary's searches, for drills; 0 in earnest."
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if list(self.shares) != sorted(set(self.shares)):
            yield "shares", "shares that rise, each once"
