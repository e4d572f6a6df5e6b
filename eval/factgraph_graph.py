"""The fact graph indexed for asking: who asks, what a draft of a question holds, and how to walk from fact to fact."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from random import Random

from domain.types import Scope, Turn
from eval.factgraph_vocabulary import MONTHS
from eval.factgraph_world import HOME, NEIGHBOUR, Entity, Fact, Said, World

# Personas from the least to the most that they may read; the first that can read the evidence usually asks.
PERSONAS: dict[str, Scope] = {
    "visitor": Scope(HOME, frozenset({"public"})),
    "staff": Scope(HOME, frozenset({"public", "staff"})),
    "engineer": Scope(HOME, frozenset({"public", "staff", "engineering"})),
    "controller": Scope(HOME, frozenset({"public", "staff", "finance"})),
    "counsel": Scope(HOME, frozenset({"public", "staff", "legal"})),
    "partner": Scope(NEIGHBOUR, frozenset({"public"})),
}

DATED = frozenset({"opened", "released", "completion", "happened", "expires"})  # relations whose value is a date


@dataclass(frozen=True, slots=True)
class Absence:
    """What a null question is about: no fact the persona may read has this subject, relation and period."""

    subject: str
    relation: str
    period: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before it has an id and a slice. `facts` answer it; `absent` says what does not."""

    query: str
    type: str
    persona: str
    answer: str = ""
    facts: tuple[Fact, ...] = ()
    aliases: tuple[str, ...] = ()
    history: tuple[Turn, ...] = ()
    absent: Absence | None = None


@dataclass(slots=True)
class Graph:
    """The world indexed for walking. The versions of a fact stand oldest first."""

    world: World
    documents: int
    texts: str  # every document in one string, to make sure that an invented name is really unknown
    by_key: dict[tuple[str, str, str], list[Fact]] = field(default_factory=dict)
    about: dict[str, list[tuple[str, str, list[Fact]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fact in sorted(self.world.facts, key=lambda fact: fact.when):
            self.by_key.setdefault((fact.subject, fact.relation, fact.period), []).append(fact)
        for (subject, relation, period), versions in self.by_key.items():
            self.about.setdefault(subject, []).append((relation, period, versions))

    @property
    def current(self) -> list[Fact]:
        """The latest version of every fact."""
        return [versions[-1] for versions in self.by_key.values()]

    def name(self, subject: str) -> str:
        """What an entity id is called inside a question."""
        return called(self.world.entities[subject])

    def get(self, subject: str, relation: str, period: str = "") -> Fact | None:
        """The latest version of one fact, or None when the world holds none."""
        versions = self.by_key.get((subject, relation, period))
        return versions[-1] if versions else None

    def links(self, subject: str) -> list[Fact]:
        """What the subject points to: the facts whose value is an entity."""
        return [versions[-1] for _, _, versions in self.about.get(subject, ()) if versions[-1].object]


def called(entity: Entity) -> str:
    """The entity as it is called inside a question."""
    return f"the {entity.name}" if entity.kind in ("product", "policy") else entity.name


def persona_for(facts: Sequence[Fact], rng: Random) -> str:
    """Who asks: mostly the persona with the least access that may read all `facts`. "" when nobody may."""
    able = [name for name, scope in PERSONAS.items() if all(scope.may_read(f.tenant, f.groups) for f in facts)]
    if not able:
        return ""
    return able[0] if rng.random() < 0.88 else rng.choice(able)


def spellings(fact: Fact) -> tuple[str, ...]:
    """Other accepted spellings of a value: dates as ISO or month first, numbers without separators or unit."""
    if fact.relation == "since":
        return (fact.value.removeprefix("release "),)
    if fact.quantity is None:
        return ()
    if fact.relation in DATED:
        when = date.fromordinal(int(fact.quantity))
        return when.isoformat(), f"{MONTHS[when.month - 1]} {when.day}, {when.year}"
    return numbers(fact)


def numbers(fact: Said) -> tuple[str, ...]:
    """Other spellings of an amount: without separators, and without its unit when that leaves three signs or more."""
    number = fact.value.split()[0]
    found = [fact.value.replace(",", "")]
    if len(number) > 2:  # a bare 7 would also be found in the date of any answer
        found += [number, number.replace(",", "")]
    return tuple(text for text in dict.fromkeys(found) if text != fact.value)
