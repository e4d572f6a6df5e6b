"""Fills the fact graph: settles two tenants on an invented coast and plans which document tells what of whom.

How many there are of each kind follows from the number of documents; incident reports take what is left. Numbers are
drawn freely, names come from the decks of factgraph_vocabulary.py, where near-identical ones lie close together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import product
from random import Random

from eval import factgraph_vocabulary as words
from eval.factgraph_vocabulary import day, decks, dice, millions, spoken
from eval.factgraph_world import HOME, NEIGHBOUR, Entity, Said, World

PUBLIC, STAFF, ENGINEERING = frozenset({"public"}), frozenset({"staff"}), frozenset({"engineering"})
FINANCE, LEGAL = frozenset({"finance"}), frozenset({"legal"})

# How many per 300 documents, in the order of settling: what others name comes before them. Holdings are fixed.
HOLDINGS = {HOME: 4, NEIGHBOUR: 1}
COUNTS: dict[str, dict[str, int]] = {
    HOME: {"company": 16, "site": 18, "product": 28, "service": 9, "code": 17, "project": 14}
    | {"policy": 6, "contract": 5, "notice": 6},
    NEIGHBOUR: {"company": 3, "site": 3, "product": 4, "project": 2},
}


def build(seed: int, documents: int) -> World:
    """The graph of exactly `documents` documents in two tenants, reproducible from `seed`."""
    names = [f"{first} {last}" for first, last in product(words.FIRST_NAMES, words.LAST_NAMES)]
    rng = dice(seed, "people")
    rng.shuffle(names)
    for name in words.WHOLE_NAMES:  # among the first ones dealt, so that a small library has some too
        names.insert(rng.randrange(documents // 3), name)
    world, names_of = World(seed, iter(names)), decks(seed, documents)
    home, neighbour = (Coast(world, tenant, names_of, dice(seed, tenant)) for tenant in (HOME, NEIGHBOUR))
    for coast in (home, neighbour):
        coast.settle(documents / 300)
    left = documents - len(world.plans)
    abroad = max(2, left // 12)
    for coast, number in ((home, left - abroad), (neighbour, abroad)):
        for i in range(number):
            coast.incident(i)
    return world


@dataclass(slots=True)
class Coast:
    """One tenant while it is settled. Each method adds the i-th entity of a kind and plans its documents."""

    world: World
    tenant: str
    names_of: dict[str, Iterator[str]]
    rng: Random
    holdings: list[Entity] = field(default_factory=list)
    companies: list[Entity] = field(default_factory=list)
    sites: list[Entity] = field(default_factory=list)
    products: list[Entity] = field(default_factory=list)
    services: list[Entity] = field(default_factory=list)
    codes: list[Entity] = field(default_factory=list)

    def settle(self, scale: float) -> None:
        """Add everything but the incidents."""
        for i in range(HOLDINGS[self.tenant]):
            self.holdings.append(self._add("company", "holding", "group"))
            self._portrait(self.holdings[-1], None, i)
        for kind, count in COUNTS[self.tenant].items():
            for i in range(max(1, int(count * scale))):
                SETTLERS[kind](self, i)

    def _add(self, kind: str, deck: str, noun: str) -> Entity:
        return self.world.add(kind, next(self.names_of[deck]), noun, self.tenant)

    def _person(self, relation: str) -> Said:
        return Said(relation, next(self.world.people))

    # ------------------------------------------------------------------------------------------ companies

    def company(self, i: int) -> None:
        company = self._add("company", "company", "company")
        self.companies.append(company)
        self._portrait(company, self.rng.choice(self.holdings), i)
        staff, turnover = self.rng.randrange(140, 4200), self.rng.uniform(40, 900)
        for year in ("2023", "2024"):
            staff = int(staff * self.rng.uniform(0.9, 1.15))
            turnover *= self.rng.uniform(0.88, 1.22)
            said = [
                _money("revenue", turnover, year),
                Said("headcount", f"{staff:,} people", float(staff), period=year),
                _money("debt", turnover * self.rng.uniform(0.2, 0.9), year),
                _money("capex", turnover * self.rng.uniform(0.05, 0.2), year),
            ]
            if year == "2024":
                said.append(Said("auditor", self.rng.choice(words.AUDITORS)))
            self.world.tell("annual", company, date(int(year) + 1, 3, self.rng.randrange(3, 29)), PUBLIC, *said)
        if i % 2 == 0:
            backlog, hires = (
                _money("backlog", self.rng.uniform(60, 1400)),
                _count("hiring", self.rng, 20, 400, "people"),
            )
            when = date(2025, 5, self.rng.randrange(2, 28))
            self.world.tell("call", company, when, PUBLIC, backlog, hires, self._person("finance_chief"))
        if i % 3 == 1:
            margin = self.rng.randrange(30, 240) / 10
            said = [Said("margin", f"{margin} per cent", margin), _money("cash", self.rng.uniform(4, 160))]
            self.world.tell("accounts", company, date(2025, 2, self.rng.randrange(3, 27)), FINANCE, *said)

    def _portrait(self, company: Entity, parent: Entity | None, i: int) -> None:
        year = self.rng.randrange(1891, 2009)
        said = [Said("founded", str(year), float(year)), Said("headquarters", self.rng.choice(words.TOWNS))]
        if parent:
            said.append(_link("parent", parent))
        self.world.tell("profile", company, day(self.rng, 2019, 2020), PUBLIC, *said, self._person("chief"))
        if i % 4 != 3:
            self.world.tell("appointment", company, day(self.rng, 2022, 2024), PUBLIC, self._person("chief"))

    # ------------------------------------------------------------------------------------------ sites and products

    def site(self, i: int) -> None:
        site = self._add("site", "site", "site")
        self.sites.append(site)
        opened = day(self.rng, 2021, 2023)
        self.world.tell(
            "opening",
            site,
            opened + timedelta(days=self.rng.randrange(1, 5)),
            PUBLIC,
            _link("operator", self.rng.choice(self.companies)),
            Said("town", self.rng.choice(words.TOWNS)),
            _count("capacity", self.rng, 4, 96, "megawatts"),
            _dated("opened", opened),
        )
        if i % 2 == 0:
            depth = self.rng.randrange(50, 310) / 10
            said = (Said("depth", f"{depth} metres", depth), _count("jobs", self.rng, 18, 420, "jobs"))
            self.world.tell("hearing", site, day(self.rng, 2024, 2024), PUBLIC, *said, self._person("manager"))

    def notice(self, i: int) -> None:
        """A notice to mariners about one of the sites, in another language than English."""
        language = ("de", "ja", "el")[i % 3]
        unit = {"de": "Kronen", "ja": "クローネ", "el": "κορώνες"}[language]
        berths, fee = self.rng.randrange(3, 60), self.rng.randrange(12, 95)
        said = (
            Said(f"berths_{language}", str(berths), float(berths)),
            Said(f"fee_{language}", f"{fee} {unit}", float(fee)),
        )
        site = self.sites[i % len(self.sites)]
        self.world.tell(f"notice_{language}", site, day(self.rng, 2024, 2025), PUBLIC, *said)

    def product(self, i: int) -> None:
        name = next(self.names_of["product"])
        item = self.world.add("product", name, words.PRODUCT_SERIES[name[:2]], self.tenant)
        self.products.append(item)
        released, price = day(self.rng, 2020, 2023), self.rng.randrange(120, 9800) * 10
        self.world.tell(
            "release",
            item,
            released + timedelta(days=self.rng.randrange(1, 12)),
            PUBLIC,
            _link("maker", self.rng.choice(self.companies)),
            _dated("released", released),
            _count("weight", self.rng, 8, 900, "kilograms"),
            _count("rating", self.rng, 2, 400, "kilowatts"),
            Said("price", f"{price:,} crowns", float(price)),
        )
        if i % 5 < 3:
            hours, months = self.rng.randrange(4, 60) * 100, self.rng.choice((12, 18, 24, 30, 36, 48, 60))
            self.world.tell(
                "care",
                item,
                day(self.rng, 2023, 2024),
                PUBLIC,
                Said("warranty", f"{months} months", float(months)),
                Said("interval", f"{hours:,} running hours", float(hours)),
                Said("seal", f"SK-{self.rng.randrange(1000, 9999)}"),
            )
        if i % 3 == 0:
            price += self.rng.choice((-1, 1, 1)) * self.rng.randrange(3, 30) * 10
            said = Said("price", f"{price:,} crowns", float(price))
            self.world.tell("pricing", item, day(self.rng, 2024, 2025), PUBLIC, said)

    # ------------------------------------------------------------------------------------------ software

    def service(self, i: int) -> None:
        service = self._add("service", "service", "service")
        self.services.append(service)
        port = self.rng.randrange(1100, 9900)
        self.world.tell(
            "service_note",
            service,
            day(self.rng, 2022, 2024),
            ENGINEERING if i % 3 == 2 else PUBLIC,
            Said("team", self.rng.choice(words.TEAMS)),
            Said("language", self.rng.choice(words.LANGUAGES)),
            Said("port", str(port), float(port)),
            _count("timeout", self.rng, 2, 120, "seconds"),
            _link("hosted", self.rng.choice(self.sites)),
        )

    def code(self, i: int) -> None:
        code = self._add("code", "code", "error")
        self.codes.append(code)
        self.world.tell(
            "error_article",
            code,
            day(self.rng, 2023, 2025),
            ENGINEERING if self.rng.random() < 0.2 else PUBLIC,
            _link("service", self.services[i % len(self.services)]),
            Said("code_cause", self.rng.choice(words.CODE_CAUSES)),
            Said("remedy", self.rng.choice(words.CODE_REMEDIES)),
            Said("since", f"release {self.rng.randrange(1, 9)}.{self.rng.randrange(0, 20)}"),
        )

    # ------------------------------------------------------------------------------------------ projects and paper

    def project(self, i: int) -> None:
        project = self._add("project", "project", "project")
        groups, budget, done = STAFF if i % 6 == 5 else PUBLIC, self.rng.uniform(3, 240), day(self.rng, 2025, 2026)
        self.world.tell(
            "start",
            project,
            day(self.rng, 2022, 2023),
            groups,
            _link("site", self.rng.choice(self.sites)),
            _link("contractor", self.rng.choice(self.companies)),
            _money("budget", budget),
            _dated("completion", done),
            self._person("leader"),
        )
        raised = _money("budget", budget * self.rng.uniform(1.05, 1.6))
        moved = _dated("completion", done + timedelta(days=self.rng.randrange(40, 500)))
        layout = ("update", "site_meeting")[i % 2]
        self.world.tell(layout, project, day(self.rng, 2024, 2024), groups, raised, moved)

    def policy(self, i: int) -> None:
        name, unit, low, high, group = words.POLICIES[(5 * i) % len(words.POLICIES)]
        edition = f" {1 + i // len(words.POLICIES)}" if i >= len(words.POLICIES) else ""
        rule = self.world.add("policy", f"{name} rule{edition}", "rule", self.tenant)
        old, new = (Said("limit", f"{n} {unit}", float(n)) for n in self.rng.sample(range(low, high + 1), 2))
        self.world.tell("policy", rule, day(self.rng, 2021, 2022), frozenset({group}), old)
        self.world.tell("policy", rule, day(self.rng, 2024, 2025), frozenset({group}), new, self._person("owner"))

    def contract(self, i: int) -> None:
        contract = self._add("contract", "contract", "contract")
        self.world.tell(
            "contract",
            contract,
            day(self.rng, 2022, 2024),
            LEGAL if i % 4 else LEGAL | FINANCE,
            _link("party", self.rng.choice(self.companies)),
            _money("worth", self.rng.uniform(0.4, 60)),
            Said("venue", self.rng.choice(words.VENUES)),
            _dated("expires", day(self.rng, 2026, 2029)),
        )

    # ------------------------------------------------------------------------------------------ incidents

    def incident(self, i: int) -> None:
        incident = self._add("incident", "incident", "incident")
        when = day(self.rng, 2023, 2025)
        said = [_count("duration", self.rng, 6, 900, "minutes"), self._person("commander"), _dated("happened", when)]
        closed = when + timedelta(days=self.rng.randrange(1, 9))
        if self.codes and i % 3 == 2:
            said.append(_link("code", self.rng.choice(self.codes)))
            self.world.tell("outage", incident, closed, ENGINEERING if i % 2 else PUBLIC, *said)
            return
        said += [_link("place", self.rng.choice(self.sites)), _link("device", self.rng.choice(self.products))]
        said.append(Said("cause", self.rng.choice(words.INCIDENT_CAUSES)))
        self.world.tell("failure", incident, closed, STAFF if i % 7 == 3 else PUBLIC, *said)


def _link(relation: str, entity: Entity) -> Said:
    return Said(relation, entity.name, object=entity.id)


def _dated(relation: str, when: date) -> Said:
    return Said(relation, spoken(when), float(when.toordinal()))


def _money(relation: str, amount: float, period: str = "") -> Said:
    return Said(relation, millions(amount), round(amount, 1), period=period)


def _count(relation: str, rng: Random, low: int, high: int, unit: str) -> Said:
    number = rng.randrange(low, high)
    return Said(relation, f"{number} {unit}", float(number))


SETTLERS = {
    "company": Coast.company,
    "site": Coast.site,
    "product": Coast.product,
    "service": Coast.service,
    "code": Coast.code,
    "project": Coast.project,
    "policy": Coast.policy,
    "contract": Coast.contract,
    "notice": Coast.notice,
}
