"""Writes a planned document as Markdown and says which sentence of it tells which fact.

The form comes from factgraph_layouts.py, the words from factgraph_sentences.py and factgraph_background.py. A told
sentence is never broken by a line end, so that it stands in the document exactly as it stands in the question set.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from urllib.parse import quote

from domain.types import Document
from eval import factgraph_vocabulary as words
from eval.factgraph_background import BACKGROUND
from eval.factgraph_layouts import LAYOUTS, Section
from eval.factgraph_sentences import STATEMENTS
from eval.factgraph_vocabulary import dice, spoken
from eval.factgraph_world import SERIES, Fact, Plan, World
from eval.questions import Anchor


@dataclass(slots=True)
class Scribe:
    """Draws words for one document, and never the same background sentence twice within it."""

    world: World
    plan: Plan
    rng: Random
    people: list[str]
    names: dict[str, list[str]]  # of everything in the tenant, by kind
    used: set[str] = field(default_factory=set)

    def fill(self, template: str, **given: str) -> str:
        """The template with its choices made and its slots filled; the subject never stands in for another."""
        text = re.sub(r"\[([^][]+)\]", lambda found: self.rng.choice(found[1].split("|")), template)
        slots = {name: given[name] if name in given else self.draw(name) for name in re.findall(r"{(\w)}", text)}
        filled = text.format_map(slots)
        return filled[0].upper() + filled[1:]

    def draw(self, slot: str) -> str:
        """A word for one slot of a template, see factgraph_background.py."""
        subject = self.plan.subject
        draws: dict[str, Callable[[], str]] = {
            "s": lambda: subject.name,
            "n": lambda: subject.noun,
            "o": lambda: self.other(subject.kind),
            "c": lambda: self.other("company"),
            "d": lambda: self.other("product"),
            "i": lambda: self.other("site"),
            "p": lambda: self.rng.choice(self.people),
            "t": lambda: self.rng.choice(words.TOWNS),
            "m": lambda: self.rng.choice(words.MONTHS),
            "x": lambda: str(self.rng.randrange(2, 29)),
        }
        return draws[slot]()

    def other(self, kind: str) -> str:
        """Somebody else of this kind, often one whose name begins like the subject's."""
        own = self.plan.subject.name
        names = [name for name in self.names.get(kind, ()) if name != own]
        if self.rng.random() < 0.5:
            stem = re.split(r"[ _-]", own)[0]
            names = [name for name in names if name.startswith(stem)] or names
        return self.rng.choice(names or ["another house"])

    def talk(self, pool: str, number: int) -> list[str]:
        """So many background sentences, or as many as the pool still holds for this document."""
        fresh = [template for template in BACKGROUND[pool] if template not in self.used]
        chosen = self.rng.sample(fresh, min(number, len(fresh)))
        self.used.update(chosen)
        return [self.fill(template) for template in chosen]

    def state(self, fact: Fact, later: bool) -> str:
        """The sentence that tells a fact; a later version of a changing fact is told as news."""
        key = f"{fact.relation}+" if later and f"{fact.relation}+" in STATEMENTS else fact.relation
        return self.fill(self.rng.choice(STATEMENTS[key]), v=fact.value, y=fact.period)


def render(world: World) -> tuple[list[Document], dict[Fact, Anchor]]:
    """All documents of the graph in plan order, and for each fact the document and the sentence that tell it."""
    documents, told = [], {}
    seen: set[tuple[str, str]] = set()
    fictional = {
        tenant: [next(world.people) for _ in range(40)]
        for tenant in dict.fromkeys(p.subject.tenant for p in world.plans)
    }
    names: dict[str, dict[str, list[str]]] = {}
    for entity in world.entities.values():
        names.setdefault(entity.tenant, {}).setdefault(entity.kind, []).append(entity.name)
    for number, plan in enumerate(world.plans, 1):
        tenant = plan.subject.tenant
        rng = dice(world.seed, "document", number)
        scribe = Scribe(world, plan, rng, list(fictional[tenant]), names[tenant])
        document, sentences = _document(scribe, number, seen)
        documents.append(document)
        told.update({fact: Anchor(document.doc_id, sentence) for fact, sentence in sentences.items()})
        seen.update((fact.subject, fact.relation) for fact in plan.facts)
    return documents, told


def _document(scribe: Scribe, number: int, seen: set[tuple[str, str]]) -> tuple[Document, dict[Fact, str]]:
    plan, layout = scribe.plan, LAYOUTS[scribe.plan.layout]
    period = next((fact.period for fact in plan.facts if fact.period), str(plan.published.year))
    title = scribe.fill(scribe.rng.choice(layout.titles), y=period)
    sentences = {
        fact: scribe.state(fact, fact.relation in SERIES and (fact.subject, fact.relation) in seen)
        for fact in plan.facts
    }
    assigned = {relation for section in layout.sections for relation in section.relations}
    blocks = [f"# {title}"]
    if layout.opening:
        blocks.append(OPENINGS[layout.opening](scribe))
    for i, section in enumerate(layout.sections):
        here = [
            fact
            for fact in plan.facts
            if fact.relation in section.relations or (i == 0 and fact.relation not in assigned)
        ]
        blocks += _section(scribe, section, [sentences[fact] for fact in here], layout.source == "transcript")
    text = "\n\n".join(blocks) + "\n"
    slug = quote(re.sub(r"\W+", "-", title.casefold()).strip("-"))
    tenant = plan.subject.tenant
    uri = f"https://{tenant}.example/{layout.source}/{plan.published.year}/{slug}"
    doc_id = f"{layout.source}-{number:04d}"
    digest = sha256(f"{title}\0{text}".encode()).hexdigest()
    document = Document(
        doc_id, title, text, uri, layout.source, plan.published.isoformat(), plan.groups, tenant, digest
    )
    return document, sentences


def _section(scribe: Scribe, section: Section, told: list[str], spoken_aloud: bool) -> list[str]:
    """The blocks of one section: facts scattered among the talk, as running text or as turns of speakers."""
    sentences = scribe.talk(section.pool, section.talk)
    for sentence in told:
        sentences.insert(scribe.rng.randrange(len(sentences) + 1), sentence)
    blocks = [f"## {section.heading}"] if section.heading else []
    if section.extra == "list":
        return [*blocks, "\n".join(f"- {sentence}" for sentence in sentences)]
    if spoken_aloud:
        return blocks + _turns(scribe, sentences, section.extra)
    middle = (len(sentences) + 1) // 2 if len(sentences) > 5 else len(sentences)
    blocks += [" ".join(part) for part in (sentences[:middle], sentences[middle:]) if part]
    if section.extra:
        blocks.append(EXTRAS[section.extra](scribe))
    return blocks


def _turns(scribe: Scribe, sentences: list[str], questions: str) -> list[str]:
    """Speaker turns of one to three sentences; with a pool of `questions`, somebody asks before each."""
    speakers = scribe.people[:3]
    blocks: list[str] = []
    while sentences:
        size = scribe.rng.randrange(1, 4)
        if questions:
            blocks += [f"**{scribe.people[4 + len(blocks) % 3]}:** {ask}" for ask in scribe.talk(questions, 1)]
        blocks.append(f"**{scribe.rng.choice(speakers)}:** {' '.join(sentences[:size])}")
        sentences = sentences[size:]
    return blocks


# ---------------------------------------------------------------------------------------------- openings and extras


def _dateline(scribe: Scribe) -> str:
    town = scribe.rng.choice(words.TOWNS)
    first = scribe.talk(LAYOUTS[scribe.plan.layout].sections[0].pool, 1)
    return f"{town.upper()}, {spoken(scribe.plan.published)} - {first[0]}"


def _speakers(scribe: Scribe) -> str:
    scribe.rng.shuffle(scribe.people)
    present = ", ".join(scribe.people[:7])
    return f"Held on {spoken(scribe.plan.published)} in {scribe.rng.choice(words.TOWNS)}. Present: {present}."


def _quarters(scribe: Scribe) -> str:
    rows = [f"| {q} | {scribe.rng.randrange(90, 900)} | {scribe.rng.randrange(4, 80)} |" for q in ("1", "2", "3", "4")]
    return "\n".join(["| Quarter | Enquiries | Hours lost to weather |", "|---|---|---|", *rows])


def _bench(scribe: Scribe) -> str:
    rows = [
        f"| {c} degrees | {scribe.rng.randrange(60, 99)} % | {scribe.rng.randrange(2, 30)} mm |" for c in (2, 8, 15, 22)
    ]
    return "\n".join(["| Water | Efficiency | Drift after a week |", "|---|---|---|", *rows])


def _torque(scribe: Scribe) -> str:
    rows = [f"| M{size} | {scribe.rng.randrange(size, 9 * size)} Nm |" for size in (6, 8, 10, 12)]
    return "\n".join(["| Bolt | Torque |", "|---|---|", *rows])


def _timeline(scribe: Scribe) -> str:
    minute, rows = scribe.rng.randrange(0, 600), []
    events = ("Alarm on the north bus", "Duty officer reached", "Second crew on site", "Part isolated",
              "First retry without result", "Spare fetched from store", "Load moved to the south bus",
              "Readings back within bounds", "Coast station informed")  # fmt: skip
    for event in sorted(scribe.rng.sample(range(len(events)), 5)):
        rows.append(f"| {minute // 60:02d}:{minute % 60:02d} | {events[event]} |")
        minute += scribe.rng.randrange(1, 90)
    return "\n".join(["| Time | Event |", "|---|---|", *rows])


def _config(scribe: Scribe) -> str:
    name = scribe.plan.subject.name.casefold().replace(" ", "-")
    return f"```yaml\n{name}:\n  retries: {scribe.rng.randrange(1, 6)}\n  workers: {scribe.rng.randrange(2, 65)}\n```"


def _log(scribe: Scribe) -> str:
    rng = scribe.rng
    stamp = f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"
    line = f"{stamp} berth={rng.randrange(1, 40)} level=error {scribe.plan.subject.name} try={rng.randrange(1, 5)}"
    return f"```\n{line}\n```"


OPENINGS: dict[str, Callable[[Scribe], str]] = {
    "dateline": _dateline,
    "speakers": _speakers,
    "filing": lambda scribe: f"Published on {spoken(scribe.plan.published)}. Amounts are in crowns unless stated.",
    "confidential": lambda scribe: f"Confidential. As of {spoken(scribe.plan.published)}. Not for circulation.",
    "article": lambda scribe: f"Last edited on {spoken(scribe.plan.published)}.",
    "report": lambda scribe: f"Report closed on {spoken(scribe.plan.published)}. Times are local.",
}
EXTRAS: dict[str, Callable[[Scribe], str]] = {
    "quarters": _quarters,
    "bench": _bench,
    "torque": _torque,
    "timeline": _timeline,
    "config": _config,
    "log": _log,
}
