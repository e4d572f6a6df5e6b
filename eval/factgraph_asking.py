"""Walks the fact graph and asks: every draft knows the facts that answer it, or that no readable fact does.

Each bucket below yields drafts of one kind, in an order that depends on the seed alone. factgraph.py deals them out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations, islice, pairwise
from random import Random

from domain.types import Role, Scope, Turn
from eval import factgraph_phrases as phrases
from eval import factgraph_vocabulary as words
from eval.factgraph_vocabulary import dice
from eval.factgraph_world import HOME, NEIGHBOUR, SERIES, Entity, Fact, World, decks

# Personas from the least to the most that they may read; the first that can read the evidence usually asks.
PERSONAS: dict[str, Scope] = {
    "visitor": Scope(HOME, frozenset({"public"})),
    "staff": Scope(HOME, frozenset({"public", "staff"})),
    "engineer": Scope(HOME, frozenset({"public", "staff", "engineering"})),
    "controller": Scope(HOME, frozenset({"public", "staff", "finance"})),
    "counsel": Scope(HOME, frozenset({"public", "staff", "legal"})),
    "partner": Scope(NEIGHBOUR, frozenset({"public"})),
}


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
        return [versions[-1] for versions in self.by_key.values()]

    def name(self, subject: str) -> str:
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
    """Other accepted spellings of a value: numbers without separators or units, dates as ISO or month first."""
    if fact.quantity is None:
        return (fact.value.removeprefix("release "),) if fact.relation == "since" else ()
    if 1 <= fact.quantity - 700_000 <= 60_000:  # a date's ordinal
        when = date.fromordinal(int(fact.quantity))
        return when.isoformat(), f"{words.MONTHS[when.month - 1]} {when.day}, {when.year}"
    number = fact.value.split()[0]
    plain = fact.value.replace(",", "")
    return tuple(dict.fromkeys(text for text in (plain, number, number.replace(",", "")) if text != fact.value))


# ---------------------------------------------------------------------------------------------- inference


def chains(graph: Graph, rng: Random, hops: int) -> Iterator[Draft]:
    """Follow `hops - 1` links from an entity, then ask for something about where they lead."""
    for start in graph.world.entities.values():
        for path, phrase in _paths(graph, start, hops - 1, rng):
            end = path[-1].object if path else start.id
            for relation, period, versions in graph.about.get(end, ()):
                facts = (*path, versions[-1])
                query = rng.choice(phrases.ASK[relation]).format(s=phrase, y=period)
                persona = persona_for(facts, rng)
                if persona and (hops == 1 or rng.random() < 0.5):
                    kind = "temporal" if len(versions) > 1 else "inference"
                    yield Draft(query, kind, persona, versions[-1].value, facts, spellings(versions[-1]))


def _paths(graph: Graph, start: Entity, links: int, rng: Random) -> Iterator[tuple[tuple[Fact, ...], str]]:
    """Every walk of so many links, with the noun phrase for where it ends."""
    if links == 0:
        yield (), called(start)
        return
    for path, phrase in _paths(graph, start, links - 1, rng):
        for link in graph.links(path[-1].object if path else start.id):
            yield (*path, link), rng.choice(phrases.THE[link.relation]).format(s=phrase)


def follow_ups(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Questions that only the conversation before them makes clear."""
    for fact in graph.current:
        persona = persona_for([fact], rng)
        if fact.relation in phrases.FOLLOW_UP and persona:
            name = graph.name(fact.subject)
            opening = Turn(Role.USER, f"What is there to read about {name}?")
            reply = Turn(Role.ASSISTANT, f"The library has some papers on {name}. What would you like to know?")
            kind = "temporal" if fact.relation in SERIES else "inference"
            query = rng.choice(phrases.FOLLOW_UP[fact.relation])
            yield Draft(query, kind, persona, fact.value, (fact,), spellings(fact), (opening, reply))


# ---------------------------------------------------------------------------------------------- comparison


def comparisons(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Which of two entities has more or less of something: two facts."""
    for one, other in _rivals(graph, rng):
        query, winner = _versus(one, other, graph.name(one.subject), graph.name(other.subject), rng)
        persona = persona_for([one, other], rng)
        if persona:
            name = graph.world.entities[winner.subject].name
            yield Draft(query, "comparison", persona, name, (one, other))


def winners(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Something about the winner of a comparison: three facts."""
    for one, other in _rivals(graph, rng):
        a, b = graph.name(one.subject), graph.name(other.subject)
        question, winner = _versus(one, other, a, b, rng)
        for link in graph.links(winner.subject):
            facts = (one, other, link)
            persona = persona_for(facts, rng)
            if persona and link.relation in ("maker", "operator", "contractor", "parent", "hosted"):
                asked = rng.choice(phrases.ASK[link.relation]).format(s="that one")
                yield Draft(f"{question} And {asked[0].lower()}{asked[1:]}", "comparison", persona, link.value, facts)


def comparisons_behind(graph: Graph, rng: Random) -> Iterator[Draft]:
    """A comparison of the two companies behind two things: four facts."""
    links = [fact for fact in graph.current if fact.relation in ("maker", "operator", "contractor")]
    rng.shuffle(links)
    for one, other in pairwise(links):
        relation, period = rng.choice((("founded", ""), ("headcount", "2024"), ("revenue", "2024"), ("debt", "2023")))
        left, right = (graph.get(link.object, relation, period) for link in (one, other))
        if not left or not right or left.subject == right.subject or left.quantity == right.quantity:
            continue
        a, b = (phrases.THE[link.relation][0].format(s=graph.name(link.subject)) for link in (one, other))
        query, winner = _versus(left, right, a, b, rng)
        facts = (one, other, left, right)
        persona = persona_for(facts, rng)
        if persona:
            yield Draft(query, "comparison", persona, graph.world.entities[winner.subject].name, facts)


def _rivals(graph: Graph, rng: Random) -> Iterator[tuple[Fact, Fact]]:
    """Pairs of facts whose quantities differ, of entities that one could compare."""
    groups: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in graph.current:
        if fact.relation in phrases.COMPARE and fact.quantity is not None:
            groups.setdefault((fact.relation, fact.period, fact.tenant), []).append(fact)
    for facts in groups.values():
        pairs = [pair for pair in combinations(facts, 2) if pair[0].quantity != pair[1].quantity]
        yield from rng.sample(pairs, min(len(pairs), 3 * len(facts)))


def _versus(one: Fact, other: Fact, a: str, b: str, rng: Random) -> tuple[str, Fact]:
    """The question which of two is ahead, and the fact that wins it."""
    more = rng.random() < 0.5
    template = phrases.COMPARE[one.relation][0 if more else 1]
    best = max if more else min
    winner = best((one, other), key=lambda fact: fact.quantity or 0.0)
    return template.format(a=a, b=b, y=one.period), winner


# ---------------------------------------------------------------------------------------------- temporal


def as_of(graph: Graph, rng: Random) -> Iterator[Draft]:
    """What held before a later version replaced it."""
    for (subject, relation, _), versions in graph.by_key.items():
        persona = persona_for(versions, rng)
        if len(versions) < 2 or relation not in phrases.AS_OF or not persona:
            continue
        old, new = versions[0], versions[1]
        start, end = (date.fromisoformat(version.when).toordinal() for version in (old, new))
        # The middle of the span keeps clear of the months in which the change itself happened.
        when = date.fromordinal((start + end) // 2)
        spoken = f"{words.MONTHS[when.month - 1]} {when.year}"
        query = rng.choice(phrases.AS_OF[relation]).format(s=graph.name(subject), d=spoken)
        yield Draft(query, "temporal", persona, old.value, (old,), spellings(old))


def changes(graph: Graph, rng: Random) -> Iterator[Draft]:
    """How two versions of a fact differ."""
    for (subject, relation, _), versions in graph.by_key.items():
        persona = persona_for(versions, rng)
        if len(versions) < 2 or relation not in phrases.CHANGE or not persona:
            continue
        old, new = versions
        query = rng.choice(phrases.CHANGE[relation]).format(s=graph.name(subject), new=new.value)
        if relation == "chief":
            yield Draft(query, "temporal", persona, old.value, (old, new))
            continue
        number = abs((new.quantity or 0.0) - (old.quantity or 0.0))
        unit = {"price": "crowns", "budget": "million crowns", "completion": "days"}[relation]
        amount = f"{number:,.1f}" if relation == "budget" else f"{number:,.0f}"
        if number:
            yield Draft(query, "temporal", persona, f"{amount} {unit}", (old, new), (amount, amount.replace(",", "")))


def orders(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Which of two dated events came first, or last."""
    events = [fact for fact in graph.current if fact.relation in phrases.EVENTS]
    for _ in range(2):
        rng.shuffle(events)
        for one, other in pairwise(events):
            persona = persona_for([one, other], rng)
            if persona and one.quantity != other.quantity:
                earlier = rng.random() < 0.5
                best = min if earlier else max
                winner = best((one, other), key=lambda fact: fact.quantity or 0.0)
                a, b = (rng.choice(phrases.EVENTS[f.relation]).format(s=graph.name(f.subject)) for f in (one, other))
                query = rng.choice(phrases.FIRST if earlier else phrases.LAST).format(a=a, b=b)
                yield Draft(query, "temporal", persona, graph.world.entities[winner.subject].name, (one, other))


def leaders(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Who led the company behind something when something happened to it: three facts, four behind an incident."""
    for event in graph.current:
        if event.relation not in phrases.WHEN:
            continue
        when = date.fromordinal(int(event.quantity or 0)).isoformat()
        paths = [(link,) for link in graph.links(event.subject)]
        paths += [(link, further) for (link,) in paths for further in graph.links(link.object)]
        for path in paths:
            chiefs = [chief for chief in graph.by_key.get((path[-1].object, "chief", ""), ()) if chief.when <= when]
            phrase = graph.name(event.subject)
            for link in path:
                phrase = rng.choice(phrases.THE[link.relation]).format(s=phrase)
            facts = (*path, event, *chiefs[-1:])
            persona = persona_for(facts, rng)
            if chiefs and persona and path[-1].relation != "parent":
                clause = phrases.WHEN[event.relation].format(s=graph.name(event.subject))
                query = rng.choice(phrases.LED).format(c=phrase, e=clause)
                yield Draft(query, "temporal", persona, chiefs[-1].value, facts)


# ---------------------------------------------------------------------------------------------- null


def near_misses(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Things that sound like ours and do not exist."""
    names_of = decks(graph.world.seed, graph.documents)
    relations: dict[str, list[str]] = {}
    for fact in graph.current:
        relations.setdefault(graph.world.entities[fact.subject].kind, []).append(fact.relation)
    for kind in ("product", "company", "site", "code", "service", "project", "incident"):
        unknown = (name for name in names_of[kind] if name not in graph.texts)
        for name in islice(unknown, graph.documents // 6 if kind in relations else 0):
            relation = rng.choice(sorted(set(relations[kind])))
            thing = f"the {name}" if kind == "product" else name
            query = rng.choice(phrases.ASK[relation]).format(s=thing, y="2024")
            yield Draft(query, "null", _stranger(rng), absent=Absence(name, relation))


def unstated(graph: Graph, rng: Random) -> Iterator[Draft]:
    """What the library never says about things it knows well."""
    for entity in graph.world.entities.values():
        if entity.tenant == HOME and entity.kind in phrases.UNSTATED:
            word, template = rng.choice(phrases.UNSTATED[entity.kind])
            absent = Absence(entity.name, word)
            yield Draft(template.format(s=called(entity)), "null", _stranger(rng), absent=absent)


def hidden(graph: Graph, rng: Random) -> Iterator[Draft]:
    """What stands in the library but not for this persona: other groups, or another tenant."""
    for fact in graph.current:
        able = [name for name, scope in PERSONAS.items() if scope.may_read(fact.tenant, fact.groups)]
        barred = [name for name in ("visitor", "staff", "partner") if name not in able]
        if barred and "visitor" not in able:
            query = rng.choice(phrases.ASK[fact.relation]).format(s=graph.name(fact.subject), y=fact.period)
            absent = Absence(graph.world.entities[fact.subject].name, fact.relation, fact.period)
            yield Draft(query, "null", barred[0] if rng.random() < 0.7 else rng.choice(barred), absent=absent)


def other_years(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Annual figures of years that no filing covers."""
    for fact in graph.current:
        if fact.period == "2024":
            year = rng.choice(("2017", "2019", "2027"))
            query = rng.choice(phrases.ASK[fact.relation]).format(s=graph.name(fact.subject), y=year)
            absent = Absence(graph.world.entities[fact.subject].name, fact.relation, year)
            yield Draft(query, "null", _stranger(rng), absent=absent)


def outside(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Questions about the world at large."""
    for query in phrases.OUTSIDE:
        yield Draft(query, "null", _stranger(rng), absent=Absence(query, "anything"))


def _stranger(rng: Random) -> str:
    return "visitor" if rng.random() < 0.7 else rng.choice(sorted(PERSONAS))


Bucket = Callable[[Graph, Random], Iterator[Draft]]

# Which drafts one round of forty questions takes from each bucket; together they make the mix of the whole set.
BUCKETS: dict[str, tuple[int, Bucket]] = {
    "one": (9, lambda graph, rng: chains(graph, rng, 1)),
    "two": (6, lambda graph, rng: chains(graph, rng, 2)),
    "three": (4, lambda graph, rng: chains(graph, rng, 3)),
    "four": (2, lambda graph, rng: chains(graph, rng, 4)),
    "follow_up": (1, follow_ups),
    "comparison": (4, comparisons),
    "winner": (1, winners),
    "behind": (1, comparisons_behind),
    "as_of": (1, as_of),
    "change": (1, changes),
    "order": (2, orders),
    "leader": (1, leaders),
    "near_miss": (2, near_misses),
    "unstated": (2, unstated),
    "hidden": (1, hidden),
    "year": (1, other_years),
    "outside": (1, outside),
}


def deal(graph: Graph) -> Iterator[tuple[int, Draft]]:
    """Drafts without end of kinds, each with the number of its round; ends when every bucket is empty.

    The order does not depend on how many are taken, so a longer set begins with the shorter one.
    """
    seen: set[tuple[str, tuple[Turn, ...]]] = set()
    piles: dict[str, list[Draft]] = {}
    for name, (_, bucket) in BUCKETS.items():
        drafts = list(bucket(graph, dice(graph.world.seed, "ask", name)))
        dice(graph.world.seed, "deal", name).shuffle(drafts)
        piles[name] = drafts
    order = dice(graph.world.seed, "rounds")
    number = 0
    while any(piles.values()):
        turn = [name for name, (share, _) in BUCKETS.items() for _ in range(share)]
        order.shuffle(turn)
        for name in turn:
            while piles[name]:
                draft = piles[name].pop()
                if (draft.query, draft.history) not in seen:
                    seen.add((draft.query, draft.history))
                    yield number, draft
                    break
        number += 1
