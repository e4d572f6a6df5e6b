"""The fact graph itself: entities, what is true of them, and which document tells which fact.

Every version of every fact is told by exactly one document, so the gold evidence of a question is unambiguous.
Superseded versions stay in the graph with their dates. No prose here: factgraph_rendering.py writes it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import product
from random import Random

from eval import factgraph_vocabulary as words
from eval.factgraph_vocabulary import day, dice, millions, spoken

HOME = "harbour"
NEIGHBOUR = "northshore"
PUBLIC = frozenset({"public"})
SERIES = frozenset({"chief", "price", "budget", "completion", "limit"})  # relations whose value changes over time

# How many of each there are per 300 documents; incident reports fill the rest.
HOME_COUNTS = {"holding": 4, "company": 16, "site": 18, "product": 28, "service": 9, "code": 17, "project": 14,
               "policy": 6, "contract": 5}  # fmt: skip
NEIGHBOUR_COUNTS = {"holding": 1, "company": 3, "site": 3, "product": 4, "service": 0, "code": 0, "project": 2,
                    "policy": 0, "contract": 0}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entity:
    """Something the library speaks of. `noun` is what a stranger would call it: a pump, a yard, a rule."""

    id: str
    kind: str
    name: str
    noun: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Fact:
    """`subject` `relation` `value`, as of `when` (ISO). `object` is the entity meant by the value, if it is one.

    `quantity` makes values comparable (a number, a date's ordinal); None means that they are not. `period` is the
    year an annual figure belongs to, and empty for everything else.
    """

    subject: str
    relation: str
    value: str
    when: str
    groups: frozenset[str]
    tenant: str
    quantity: float | None = None
    object: str = ""
    period: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A document to be written: its layout, whom it is about, when and for whom, and the facts only it tells."""

    layout: str
    subject: Entity
    published: date
    groups: frozenset[str]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A fact before it has a subject, a date and readers."""

    relation: str
    value: str
    quantity: float | None = None
    object: str = ""
    period: str = ""


@dataclass(slots=True)
class World:
    """The graph while it grows, and for reading afterwards."""

    seed: int
    entities: dict[str, Entity] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    people: Iterator[str] = field(default_factory=lambda: iter(()))

    @property
    def facts(self) -> list[Fact]:
        return [fact for plan in self.plans for fact in plan.facts]

    def add(self, kind: str, name: str, noun: str, tenant: str) -> Entity:
        number = sum(entity.kind == kind for entity in self.entities.values()) + 1
        entity = Entity(f"{kind}-{number}", kind, name, noun, tenant)
        self.entities[entity.id] = entity
        return entity

    def tell(self, layout: str, subject: Entity, when: date, groups: frozenset[str], *said: Said) -> None:
        facts = tuple(
            Fact(subject.id, s.relation, s.value, when.isoformat(), groups, subject.tenant, s.quantity, s.object,
                 s.period)
            for s in said
        )  # fmt: skip
        self.plans.append(Plan(layout, subject, when, groups, facts))


def build(seed: int, documents: int) -> World:
    """The graph of exactly `documents` documents in two tenants, reproducible from `seed`."""
    world = World(seed)
    names = [f"{first} {last}" for first, last in product(words.FIRST_NAMES, words.LAST_NAMES)]
    rng = dice(seed, "people")
    rng.shuffle(names)
    for name in words.WHOLE_NAMES:  # among the first ones dealt, so that a small library has some too
        names.insert(rng.randrange(documents // 3), name)
    world.people = iter(names)
    names_of = decks(seed, documents)
    scale = documents / 300
    sides = [(HOME, HOME_COUNTS), (NEIGHBOUR, NEIGHBOUR_COUNTS)]
    sites_and_products = {}
    for tenant, counts in sides:
        sites_and_products[tenant] = _tenant(world, tenant, counts, scale, names_of)
    left = documents - len(world.plans)
    abroad = max(2, left // 12)
    _incidents(world, HOME, left - abroad, names_of, *sites_and_products[HOME])
    _incidents(world, NEIGHBOUR, abroad, names_of, *sites_and_products[NEIGHBOUR])
    return world


def decks(seed: int, documents: int) -> dict[str, Iterator[str]]:
    """Names of each kind in dealing order. Few stems per deck, so that near-identical names meet each other."""
    rng = dice(seed, "decks")

    def clustered(stems: Sequence[str], kinds: Sequence[str], wanted: int, form: str) -> Iterator[str]:
        stems = rng.sample(list(stems), min(len(stems), max(4, math.ceil(wanted / 2.5))))
        pairs = [form.format(stem, kind) for stem, kind in product(stems, kinds)]
        rng.shuffle(pairs)
        return iter(pairs)

    n = documents / 300
    birds = [f"Project {bird}{half}" for half in ("", " North", " Deep", " Two") for bird in words.BIRDS]
    incidents = [f"INC-{number}" for number in rng.sample(range(2000, 2000 + 6 * documents), documents)]
    contracts = [f"CT-{number}" for number in rng.sample(range(400, 400 + 4 * documents), documents)]
    series = rng.sample(list(words.PRODUCT_SERIES), min(10, max(4, math.ceil(5 * n))))
    models = [f"{letters}-{number}" for letters, number in product(series, words.PRODUCT_NUMBERS)]
    rng.shuffle(models)
    return {
        "holding": iter(words.HOLDINGS),
        "company": clustered(words.COMPANY_STEMS, words.COMPANY_TRADES, math.ceil(22 * n), "{} {}"),
        "site": clustered(words.SITE_STEMS, words.SITE_KINDS, math.ceil(24 * n), "{} {}"),
        "product": iter(models),
        "service": clustered(words.SERVICE_FIRST, words.SERVICE_SECOND, math.ceil(10 * n), "{} {}"),
        "code": clustered(words.CODE_FIRST, words.CODE_SECOND, math.ceil(20 * n), "ERR_{}_{}"),
        "project": iter(birds),
        "incident": iter(incidents),
        "contract": iter(contracts),
    }


def _tenant(
    world: World, tenant: str, counts: dict[str, int], scale: float, names_of: dict[str, Iterator[str]]
) -> tuple[list[Entity], list[Entity], list[Entity]]:
    """Fill one tenant; its sites, products and error codes come back, for incidents to happen to."""
    number = {kind: max(1, int(n * scale)) if n else 0 for kind, n in counts.items()}
    number["holding"] = counts["holding"]
    rng = dice(world.seed, tenant)
    holdings = [world.add("company", next(names_of["holding"]), "group", tenant) for _ in range(number["holding"])]
    companies = [world.add("company", next(names_of["company"]), "company", tenant) for _ in range(number["company"])]
    for i, holding in enumerate(holdings):
        _company(world, rng, holding, None, i)
    for i, company in enumerate(companies):
        _company(world, rng, company, rng.choice(holdings), i)
    sites = [_site(world, rng, next(names_of["site"]), companies, i, tenant) for i in range(number["site"])]
    products = [_product(world, rng, next(names_of["product"]), companies, i, tenant) for i in range(number["product"])]
    services = [_service(world, rng, next(names_of["service"]), sites, i, tenant) for i in range(number["service"])]
    codes = [_code(world, rng, next(names_of["code"]), services[i % len(services)], tenant)
             for i in range(number["code"])]  # fmt: skip
    for i in range(number["project"]):
        _project(world, rng, next(names_of["project"]), sites, companies, i, tenant)
    for policy in rng.sample(words.POLICIES, min(number["policy"], len(words.POLICIES))):
        _policy(world, rng, policy, tenant)
    for _ in range(number["contract"]):
        _contract(world, rng, next(names_of["contract"]), companies, tenant)
    return sites, products, codes


def _dated(relation: str, when: date) -> Said:
    return Said(relation, spoken(when), float(when.toordinal()))


def _company(world: World, rng: Random, company: Entity, parent: Entity | None, i: int) -> None:
    year = rng.randrange(1891, 2009)
    known = [Said("founded", str(year), float(year)), Said("headquarters", rng.choice(words.TOWNS))]
    if parent:
        known.append(Said("parent", parent.name, object=parent.id))
    known.append(Said("chief", next(world.people)))
    world.tell("profile", company, day(rng, 2019, 2020), PUBLIC, *known)
    if i % 4 != 3:
        world.tell("appointment", company, day(rng, 2022, 2024), PUBLIC, Said("chief", next(world.people)))
    if not parent:
        return
    staff, turnover = rng.randrange(140, 4200), rng.uniform(40, 900)
    for y in (2023, 2024):
        staff = int(staff * rng.uniform(0.9, 1.15))
        turnover *= rng.uniform(0.88, 1.22)
        debt, capex = turnover * rng.uniform(0.2, 0.9), turnover * rng.uniform(0.05, 0.2)
        said = [Said("revenue", millions(turnover), round(turnover, 1), period=str(y)),
                Said("headcount", f"{staff:,} people", float(staff), period=str(y)),
                Said("debt", millions(debt), round(debt, 1), period=str(y)),
                Said("capex", millions(capex), round(capex, 1), period=str(y))]  # fmt: skip
        if y == 2024:
            said.append(Said("auditor", rng.choice(words.AUDITORS)))
        world.tell("annual", company, date(y + 1, 3, rng.randrange(3, 29)), PUBLIC, *said)
    if i % 2 == 0:
        backlog, target = rng.uniform(60, 1400), rng.randrange(20, 400)
        world.tell("call", company, date(2025, 5, rng.randrange(2, 28)), PUBLIC,
                   Said("backlog", millions(backlog), round(backlog, 1)),
                   Said("hiring", f"{target} people", float(target)),
                   Said("finance_chief", next(world.people)))  # fmt: skip
    if i % 3 == 1:
        margin, cash = rng.uniform(3, 24), rng.uniform(4, 160)
        world.tell("accounts", company, date(2025, 2, rng.randrange(3, 27)), frozenset({"finance"}),
                   Said("margin", f"{margin:.1f} per cent", round(margin, 1)),
                   Said("cash", millions(cash), round(cash, 1)))  # fmt: skip


def _site(world: World, rng: Random, name: str, companies: list[Entity], i: int, tenant: str) -> Entity:
    noun = name.split()[-1].lower()
    site = world.add("site", name, noun, tenant)
    operator, opened = rng.choice(companies), day(rng, 2021, 2023)
    capacity = rng.randrange(4, 96)
    world.tell("opening", site, opened + timedelta(days=rng.randrange(1, 5)), PUBLIC,
               Said("operator", operator.name, object=operator.id), Said("town", rng.choice(words.TOWNS)),
               Said("capacity", f"{capacity} megawatts", float(capacity)), _dated("opened", opened))  # fmt: skip
    if i % 2 == 0:
        depth, jobs = rng.randrange(50, 310) / 10, rng.randrange(18, 420)
        world.tell("hearing", site, day(rng, 2024, 2024), PUBLIC,
                   Said("depth", f"{depth} metres", depth), Said("manager", next(world.people)),
                   Said("jobs", f"{jobs} jobs", float(jobs)))  # fmt: skip
    return site


def _product(world: World, rng: Random, name: str, companies: list[Entity], i: int, tenant: str) -> Entity:
    item = world.add("product", name, words.PRODUCT_SERIES[name.split("-")[0]], tenant)
    maker, released = rng.choice(companies), day(rng, 2020, 2023)
    weight, rating, price = rng.randrange(8, 900), rng.randrange(2, 400), rng.randrange(120, 9800) * 10
    world.tell("release", item, released + timedelta(days=rng.randrange(1, 12)), PUBLIC,
               Said("maker", maker.name, object=maker.id), _dated("released", released),
               Said("weight", f"{weight} kilograms", float(weight)),
               Said("rating", f"{rating} kilowatts", float(rating)),
               Said("price", f"{price:,} crowns", float(price)))  # fmt: skip
    if i % 5 < 3:
        months, hours = rng.choice((12, 18, 24, 30, 36, 48, 60)), rng.randrange(4, 60) * 100
        world.tell("care", item, day(rng, 2023, 2024), PUBLIC,
                   Said("warranty", f"{months} months", float(months)),
                   Said("interval", f"{hours:,} running hours", float(hours)),
                   Said("seal", f"SK-{rng.randrange(1000, 9999)}"))  # fmt: skip
    if i % 3 == 0:
        price = round(price * rng.uniform(0.8, 1.35), -1)
        world.tell("pricing", item, day(rng, 2024, 2025), PUBLIC, Said("price", f"{price:,.0f} crowns", price))
    return item


def _service(world: World, rng: Random, name: str, sites: list[Entity], i: int, tenant: str) -> Entity:
    service = world.add("service", name, "service", tenant)
    host, port, wait = rng.choice(sites), rng.randrange(1100, 9900), rng.randrange(2, 120)
    groups = frozenset({"engineering"}) if i % 3 == 2 else PUBLIC
    world.tell("service_note", service, day(rng, 2022, 2024), groups,
               Said("team", rng.choice(words.TEAMS)), Said("language", rng.choice(words.LANGUAGES)),
               Said("port", str(port), float(port)), Said("timeout", f"{wait} seconds", float(wait)),
               Said("hosted", host.name, object=host.id))  # fmt: skip
    return service


def _code(world: World, rng: Random, name: str, service: Entity, tenant: str) -> Entity:
    code = world.add("code", name, "error", tenant)
    groups = frozenset({"engineering"}) if rng.random() < 0.2 else PUBLIC
    since = f"{rng.randrange(1, 9)}.{rng.randrange(0, 20)}"
    world.tell("error_article", code, day(rng, 2023, 2025), groups,
               Said("service", service.name, object=service.id), Said("code_cause", rng.choice(words.CODE_CAUSES)),
               Said("remedy", rng.choice(words.CODE_REMEDIES)), Said("since", f"release {since}"))  # fmt: skip
    return code


def _project(
    world: World, rng: Random, name: str, sites: list[Entity], companies: list[Entity], i: int, tenant: str
) -> None:
    project = world.add("project", name, "project", tenant)
    site, contractor, budget = rng.choice(sites), rng.choice(companies), rng.uniform(3, 240)
    groups, done = (frozenset({"staff"}) if i % 6 == 5 else PUBLIC), day(rng, 2025, 2026)
    world.tell("start", project, day(rng, 2022, 2023), groups,
               Said("site", site.name, object=site.id), Said("contractor", contractor.name, object=contractor.id),
               Said("budget", millions(budget), round(budget, 1)), _dated("completion", done),
               Said("leader", next(world.people)))  # fmt: skip
    budget *= rng.uniform(1.05, 1.6)
    layout = ("update", "site_meeting")[i % 2]
    world.tell(layout, project, day(rng, 2024, 2024), groups, Said("budget", millions(budget), round(budget, 1)),
               _dated("completion", done + timedelta(days=rng.randrange(40, 500))))  # fmt: skip


def _policy(world: World, rng: Random, policy: tuple[str, str, str, int, int, str], tenant: str) -> None:
    name, _, unit, low, high, group = policy
    rule = world.add("policy", f"{name} rule", "rule", tenant)
    old, new = rng.sample(range(low, high + 1), 2)
    owner = Said("owner", next(world.people))
    world.tell("policy", rule, day(rng, 2021, 2022), frozenset({group}), Said("limit", f"{old} {unit}", float(old)))
    world.tell("policy", rule, day(rng, 2024, 2025), frozenset({group}), Said("limit", f"{new} {unit}", float(new)),
               owner)  # fmt: skip


def _contract(world: World, rng: Random, name: str, companies: list[Entity], tenant: str) -> None:
    contract = world.add("contract", name, "contract", tenant)
    party, worth = rng.choice(companies), rng.uniform(0.4, 60)
    world.tell("contract", contract, day(rng, 2022, 2024), frozenset({"legal"}),
               Said("party", party.name, object=party.id), Said("worth", millions(worth), round(worth, 1)),
               Said("venue", rng.choice(words.VENUES)), _dated("expires", day(rng, 2026, 2029)))  # fmt: skip


def _incidents(
    world: World, tenant: str, number: int, names_of: dict[str, Iterator[str]],
    sites: list[Entity], products: list[Entity], codes: list[Entity],
) -> None:  # fmt: skip
    rng = dice(world.seed, tenant, "incidents")
    for i in range(number):
        incident = world.add("incident", next(names_of["incident"]), "incident", tenant)
        when, minutes, online = day(rng, 2023, 2025), rng.randrange(6, 900), bool(codes) and i % 3 == 2
        said = [Said("duration", f"{minutes} minutes", float(minutes)), Said("commander", next(world.people)),
                _dated("happened", when)]  # fmt: skip
        if online:
            code = rng.choice(codes)
            said.append(Said("code", code.name, object=code.id))
            groups = frozenset({"engineering"}) if i % 2 else PUBLIC
        else:
            site, device = rng.choice(sites), rng.choice(products)
            said += [Said("place", site.name, object=site.id), Said("device", device.name, object=device.id),
                     Said("cause", rng.choice(words.INCIDENT_CAUSES))]  # fmt: skip
            groups = frozenset({"staff"}) if i % 7 == 3 else PUBLIC
        layout = "outage" if online else "failure"
        world.tell(layout, incident, when + timedelta(days=rng.randrange(1, 9)), groups, *said)
