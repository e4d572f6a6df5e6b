"""Questions the library does not answer for who asks: unknown names, unsaid things, closed papers, other years.

Each draft says in `absent` what it is about, so that a test can check that no readable fact is.
"""

from collections.abc import Iterator
from itertools import islice
from random import Random

from eval import factgraph_contrasts as contrasts
from eval import factgraph_phrases as phrases
from eval.factgraph_graph import PERSONAS, Absence, Draft, Graph, called
from eval.factgraph_vocabulary import decks
from eval.factgraph_world import HOME


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
        if entity.tenant == HOME and entity.kind in contrasts.UNSTATED:
            word, template = rng.choice(contrasts.UNSTATED[entity.kind])
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


def outside(_: Graph, rng: Random) -> Iterator[Draft]:
    """Questions about the world at large."""
    for query in contrasts.OUTSIDE:
        yield Draft(query, "null", _stranger(rng), absent=Absence(query, "anything"))


def _stranger(rng: Random) -> str:
    return "visitor" if rng.random() < 0.7 else rng.choice(sorted(PERSONAS))
