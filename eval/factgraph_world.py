"""The fact graph's own glossary: entities, facts with their versions, and the documents planned to tell them.

Every version of every fact is told by exactly one document, so the gold evidence of a question is unambiguous.
Superseded versions stay in the graph with their dates. factgraph_coast.py fills it, factgraph_rendering.py writes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

HOME = "harbour"
NEIGHBOUR = "northshore"
SERIES = frozenset({"chief", "price", "budget", "completion", "limit"})  # relations whose value changes over time


@dataclass(frozen=True, slots=True)
class Entity:
    """Something the library speaks of. `noun` is what a stranger would call it: a pump, a yard, a rule."""

    id: str
    kind: str
    name: str
    noun: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of something: `relation` is `value`. `object` is the id of the entity meant by the value, if one.

    `quantity` makes values comparable (a number, a date's ordinal); None means that they are not. `period` is the
    year an annual figure belongs to, and empty for everything else.
    """

    relation: str
    value: str
    quantity: float | None = None
    object: str = ""
    period: str = ""


@dataclass(frozen=True, slots=True)
class Fact(Said):
    """Something said of `subject` (an entity id), as of `when` (ISO), for readers in `groups` of `tenant`."""

    subject: str = ""
    when: str = ""
    groups: frozenset[str] = frozenset()
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A document to be written: its layout, whom it is about, when and for whom, and the facts only it tells."""

    layout: str
    subject: Entity
    published: date
    groups: frozenset[str]
    facts: tuple[Fact, ...]


@dataclass(slots=True)
class World:
    """The graph while it grows, and for reading afterwards. `people` deals out names nobody bears yet."""

    seed: int
    people: Iterator[str]
    entities: dict[str, Entity] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)

    @property
    def facts(self) -> list[Fact]:
        """Every version of every fact, in the order of the documents that tell them."""
        return [fact for plan in self.plans for fact in plan.facts]

    def add(self, kind: str, name: str, noun: str, tenant: str) -> Entity:
        """A new entity of this kind."""
        number = sum(entity.kind == kind for entity in self.entities.values()) + 1
        entity = Entity(f"{kind}-{number}", kind, name, noun, tenant)
        self.entities[entity.id] = entity
        return entity

    def tell(self, layout: str, subject: Entity, when: date, groups: frozenset[str], *said: Said) -> None:
        """Plan a document in which all this is said of the subject."""
        facts = tuple(
            Fact(
                s.relation,
                s.value,
                s.quantity,
                s.object,
                s.period,
                subject.id,
                when.isoformat(),
                groups,
                subject.tenant,
            )
            for s in said
        )
        self.plans.append(Plan(layout, subject, when, groups, facts))
