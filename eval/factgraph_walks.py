"""Questions the library answers: walks over the graph that compare, follow links, and look back in time.

Every generator yields drafts of one kind in an order that depends on the graph and the dice alone.
"""

from collections.abc import Iterator
from datetime import date
from itertools import combinations, pairwise
from random import Random

from domain.types import Role, Turn
from eval import factgraph_contrasts as contrasts
from eval import factgraph_phrases as phrases
from eval.factgraph_graph import Draft, Graph, called, numbers, persona_for, spellings
from eval.factgraph_vocabulary import MONTHS
from eval.factgraph_world import SERIES, Entity, Fact, Said


def chains(graph: Graph, rng: Random, hops: int) -> Iterator[Draft]:
    """Follow `hops - 1` links from an entity, then ask for something about where they lead."""
    for start in graph.world.entities.values():
        for path, phrase in _paths(graph, start, hops - 1, rng):
            end = path[-1].object if path else start.id
            for relation, period, versions in graph.about.get(end, ()):
                if path and relation in phrases.LOCAL:
                    continue
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
        if fact.relation in contrasts.COMPARE and fact.quantity is not None:
            groups.setdefault((fact.relation, fact.period, fact.tenant), []).append(fact)
    for facts in groups.values():
        pairs = [pair for pair in combinations(facts, 2) if pair[0].quantity != pair[1].quantity]
        yield from rng.sample(pairs, min(len(pairs), 3 * len(facts)))


def _versus(one: Fact, other: Fact, a: str, b: str, rng: Random) -> tuple[str, Fact]:
    """The question which of two is ahead, and the fact that wins it."""
    more = rng.random() < 0.5
    template = contrasts.COMPARE[one.relation][0 if more else 1]
    best = max if more else min
    winner = best((one, other), key=lambda fact: fact.quantity or 0.0)
    return template.format(a=a, b=b, y=one.period), winner


# ---------------------------------------------------------------------------------------------- temporal


def as_of(graph: Graph, rng: Random) -> Iterator[Draft]:
    """What held before a later version replaced it."""
    for (subject, relation, _), versions in graph.by_key.items():
        persona = persona_for(versions, rng)
        if len(versions) < 2 or relation not in contrasts.AS_OF or not persona:
            continue
        old, new = versions[0], versions[1]
        start, end = (date.fromisoformat(version.when).toordinal() for version in (old, new))
        # The middle of the span keeps clear of the months in which the change itself happened.
        when = date.fromordinal((start + end) // 2)
        spoken = f"{MONTHS[when.month - 1]} {when.year}"
        query = rng.choice(contrasts.AS_OF[relation]).format(s=graph.name(subject), d=spoken)
        yield Draft(query, "temporal", persona, old.value, (old,), spellings(old))


def changes(graph: Graph, rng: Random) -> Iterator[Draft]:
    """How two versions of a fact differ."""
    for (subject, relation, _), versions in graph.by_key.items():
        persona = persona_for(versions, rng)
        if len(versions) < 2 or relation not in contrasts.CHANGE or not persona:
            continue
        old, new = versions
        query = rng.choice(contrasts.CHANGE[relation]).format(s=graph.name(subject), new=new.value)
        if relation == "chief":
            yield Draft(query, "temporal", persona, old.value, (old, new))
            continue
        number = abs((new.quantity or 0.0) - (old.quantity or 0.0))
        unit = {"price": "crowns", "budget": "million crowns", "completion": "days"}[relation]
        amount = f"{number:,.1f}" if relation == "budget" else f"{number:,.0f}"
        if number:
            difference = Said(relation, f"{amount} {unit}", number)
            yield Draft(query, "temporal", persona, difference.value, (old, new), numbers(difference))


def orders(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Which of two dated events came first, or last."""
    events = [fact for fact in graph.current if fact.relation in contrasts.EVENTS]
    for _ in range(2):
        rng.shuffle(events)
        for one, other in pairwise(events):
            persona = persona_for([one, other], rng)
            if persona and one.quantity != other.quantity:
                earlier = rng.random() < 0.5
                best = min if earlier else max
                winner = best((one, other), key=lambda fact: fact.quantity or 0.0)
                a, b = (rng.choice(contrasts.EVENTS[f.relation]).format(s=graph.name(f.subject)) for f in (one, other))
                query = rng.choice(contrasts.FIRST if earlier else contrasts.LAST).format(a=a, b=b)
                yield Draft(query, "temporal", persona, graph.world.entities[winner.subject].name, (one, other))


def leaders(graph: Graph, rng: Random) -> Iterator[Draft]:
    """Who led the company behind something when something happened to it: three facts, four behind an incident."""
    for event in graph.current:
        if event.relation not in contrasts.WHEN:
            continue
        when = date.fromordinal(int(event.quantity or 0)).isoformat()
        paths: list[tuple[Fact, ...]] = [(link,) for link in graph.links(event.subject)]
        paths += [(link, further) for link in graph.links(event.subject) for further in graph.links(link.object)]
        for path in paths:
            chiefs = [chief for chief in graph.by_key.get((path[-1].object, "chief", ""), ()) if chief.when <= when]
            phrase = graph.name(event.subject)
            for link in path:
                phrase = rng.choice(phrases.THE[link.relation]).format(s=phrase)
            facts = (*path, event, *chiefs[-1:])
            persona = persona_for(facts, rng)
            if chiefs and persona and path[-1].relation != "parent":
                clause = contrasts.WHEN[event.relation].format(s=graph.name(event.subject))
                query = rng.choice(contrasts.LED).format(c=phrase, e=clause)
                yield Draft(query, "temporal", persona, chiefs[-1].value, facts)
