"""The words of an invented coast: names, numbers and dates that the fact graph deals out.

Everything here is made up. Stems and numbers repeat on purpose: AR-7 next to AR-70, two yards that share a name,
error codes that differ in one word. A retriever that confuses them should lose points for it.
Read next: factgraph_coast.py, which deals the words out.
"""

import math
import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import product


def listed(words: str) -> tuple[str, ...]:
    """The words of a comma-separated line."""
    return tuple(words.split(", "))


FIRST_NAMES = listed(
    "Ada, Anselm, Beatrix, Bruno, Catrin, Dagny, Edda, Elif, Émile, Fenna, Gareth, Halvard, Ines, Ivo, Jocasta, "
    "Joris, Katya, Leoni, Lúcia, Magnus, Marit, Mercy, Nils, Noor, Odile, Osric, Petra, Quentin, Rhona, Søren, "
    "Tamsin, Tomasz, Una, Viggo, Wanda, Yusuf, Zoë, Łucja"
)

LAST_NAMES = listed(
    "Abernethy, Ångström, Barrow, Brightwater, Çelik, Coldstream, Corrigan, Dahl, Drummond, Eastlake, Ferreira, "
    "Fairweather, Gallow, Grønvold, Hallam, Haverstock, Ibsworth, Jelinek, Kettering, Lindqvist, Lockyer, Mallory, "
    "Marchetti, Møller, Nakagawa, Nightingale, Okafor, Ormsby, Pascoe, Pendry, Quayle, Renshaw, Rowntree, "
    "Sandoval, Škoda-Reyes, Stannard, Thorne, Treloar, Ulverston, Vantongeren, Wexley, Whitlock, Yarrow, Żuraw"
)

# Names that keep their own script; a reader must be able to type them.
WHOLE_NAMES = (
    "Ольга Ветрова",
    "Αγάθη Παππά",
    "中村 遥",
    "Лев Бережной",
    "Σπύρος Λιμάνης",
    "小島 海斗",
    "אורית ים",
    "ليلى بحري",
    "林 海燕",
    "Дарина Прилив",
    "한 바다",
    "Νίκη Φάρου",
)

TOWNS = listed(
    "Aldersea, Braithe, Caldport, Dunmarrow, Eastness, Fennick, Garvock, Hollinsea, Inverlay, Jarrowby, Kilmere, "
    "Lowgate, Mardle, Nethersound, Oysterbank, Pellwick, Quarrendon, Rossholm, Søndervik, Tarnholt, Ullerby, "
    "Vättersund, Wickmouth, Yarle, Þórsnes, Ōmura-no-hama"
)

COMPANY_STEMS = listed(
    "Merrow, Marrow, Kestrel, Kelda, Brannock, Tidewell, Tidewall, Saltmere, Saltmarsh, Fulmar, Skerry, Corran, "
    "Lodestar, Halyard, Windlass, Osprey, Ravenglen, Stormgate, Pelorus, Breakwater, Greyfin, Nordhavn, Årholm, "
    "Estuary, Kittiwake, Longshore, Bowline, Farpoint, Sandgate, Whinbury"
)

COMPANY_TRADES = listed(
    "Tidal, Marine, Dredging, Turbines, Controls, Shipping, Software, Cables, Pumps, Castings, Logistics, Energy, "
    "Salvage, Instruments, Pilotage"
)

HOLDINGS = (
    "Harbour & Tide Holdings",
    "Meridian Coastal Group",
    "Blackwater Trust",
    "Ostrander Partners",
    "Seven Locks Group",
    "Halcyon Shore Holdings",
    "Lantern Hill Group",
    "Cape Verrin Holdings",
)

SITE_STEMS = listed(
    "Gull Point, Gull Sound, Heron Reach, Skerry Bank, Cormorant Head, Strand Mouth, Brae Ness, Holm Sound, "
    "Eel Pool, Þórsnes, Søndervik, Llanmorfa, Kittiwake Bay, Old Ferry, Limekiln, Maiden Rock, Saint Odran, "
    "Petrel Island, Long Weir, Amber Flats, Crab Hole, Ōmura Cove, Black Middens, Tollgate"
)

SITE_KINDS = (
    "Tidal Array",
    "Barrage",
    "Pumping Station",
    "Sea Lock",
    "Deepwater Quay",
    "Turbine Hall",
    "Wave Park",
    "Dry Dock",
)

PRODUCT_SERIES = {
    "AR": "relief valve",
    "TK": "tidal rotor",
    "VX": "gate actuator",
    "PM": "bilge pump",
    "QL": "mooring winch",
    "DS": "depth sounder",
    "HB": "hull sensor",
    "CF": "cable clamp",
    "GX": "gearbox",
    "LN": "channel lantern",
}
PRODUCT_NUMBERS = ("7", "70", "7B", "12", "120", "21", "3", "30", "33", "44", "440", "404", "5", "55", "505", "88")

SERVICE_FIRST = listed(
    "Lantern, Pilot, Tide, Mooring, Foghorn, Ballast, Beacon, Sextant, Capstan, Rudder, Gangway, Keel, Compass, "
    "Sluice, Bollard, Harbinger"
)
SERVICE_SECOND = listed("Gateway, Ledger, Clock, Index, Queue, Relay, Vault, Planner, Monitor, Broker")
TEAMS = listed(
    "Shoreline, Deep Channel, Night Watch, Signal House, Chart Room, Engine Room, Crow's Nest, Slipway, "
    "Upper Deck, Boiler Shop"
)
LANGUAGES = ("Rust", "C++", "C#", "Go", "Kotlin", "Erlang", "Python", "Ada", "OCaml", "TypeScript", "Elixir", "C")

CODE_FIRST = listed("CONN, AUTH, SYNC, LOCK, TIDE, BERTH, CACHE, QUEUE, CERT, DISK, FEED, ROUTE")
CODE_SECOND = [
    "RESET",
    "REFUSED",
    "TIMEOUT",
    "EXPIRED",
    "MISMATCH",
    "OVERFLOW",
    "MISSING",
    "STALE",
    "DENIED",
    "DUPLICATE",
    "CORRUPT",
    "REVOKED",
]

BIRDS = listed(
    "Sandpiper, Dunlin, Avocet, Turnstone, Guillemot, Puffin, Shearwater, Plover, Curlew, Whimbrel, Redshank, "
    "Oystercatcher, Phalarope, Gannet, Razorbill, Teal, Wigeon, Pintail, Eider, Garganey, Lapwing, Knot, Ruff, "
    "Bittern, Egret, Stint, Godwit, Merganser, Smew, Shoveler"
)

# (name of the rule, unit, lowest, highest, who may read it)
POLICIES = (
    ("hotel allowance", "crowns a night", 90, 240, "staff"),
    ("home working", "days a month", 4, 14, "staff"),
    ("mileage", "cents a kilometre", 22, 61, "staff"),
    ("training leave", "days a year", 3, 15, "staff"),
    ("boot replacement", "crowns a year", 60, 190, "staff"),
    ("purchase approval", "thousand crowns", 5, 60, "finance"),
    ("supplier payment", "days after receipt", 14, 75, "finance"),
    ("petty cash", "crowns", 200, 950, "finance"),
    ("credit control", "days overdue", 90, 400, "finance"),
    ("litigation hold", "months", 12, 96, "legal"),
    ("gift register", "crowns", 15, 120, "legal"),
    ("camera footage", "days", 7, 60, "legal"),
)

INCIDENT_CAUSES = (
    "a blocked strainer",
    "a loose earth strap",
    "salt in a connector",
    "a cracked bearing cage",
    "a worn pilot spring",
    "water in the hydraulic oil",
    "a torn diaphragm",
    "a seized limit switch",
    "drift weed in the intake",
    "an undersized fuse",
    "a chafed signal cable",
    "a misaligned coupling",
)
CODE_CAUSES = (
    "two berths share one session key",
    "the tide table ends before the requested hour",
    "a proxy drops idle sockets after a minute",
    "the clock of the quay terminal runs ahead",
    "a pilot's certificate was renewed under a new serial",
    "the spool disk has no free inodes",
    "an older client sends the vessel number twice",
    "the lock server restarts in the middle of a lease",
    "the message is larger than the relay accepts",
    "a half-finished import left rows behind",
    "the standby replica lags behind its leader",
    "a firewall rule was written for the old address range",
)
CODE_REMEDIES = (
    "sign the terminal out and in again",
    "reload the tide table from the hydrographic feed",
    "raise the keep-alive of the proxy",
    "set the terminal clock from the harbour time server",
    "upload the new certificate and restart the agent",
    "empty the spool folder and rerun the job",
    "update the client to the current build",
    "release the stale lease by hand",
    "split the message into smaller batches",
    "delete the partial import and start it again",
    "point the client at the leader",
    "add the new range to the allow list",
)
VENUES = ("Caldport", "Wickmouth", "Inverlay", "Rossholm", "Nethersound")
AUDITORS = (
    "Pemberley Voss",
    "Hartnell & Dun",
    "Okonjo Bright",
    "Silverline Audit",
    "Castell Roe",
    "Finch & Moraine",
)

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def dice(seed: int, *what: object) -> random.Random:
    """A generator of its own for one purpose, so that more of one thing never changes another."""
    return random.Random("/".join(map(str, (seed, *what))))  # noqa: S311 - a fiction needs no cryptography


def day(rng: random.Random, first: int, last: int) -> date:
    """A day between 1 January of `first` and 28 December of `last`, both included."""
    start = date(first, 1, 1)
    return start + timedelta(days=rng.randrange((date(last, 12, 28) - start).days + 1))


def spoken(when: date) -> str:
    """A date as people write it: 14 March 2024."""
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


def millions(amount: float) -> str:
    """An amount of money, given in millions of crowns."""
    return f"{amount:.1f} million crowns"


def decks(seed: int, documents: int) -> dict[str, Iterator[str]]:
    """Names of each kind in dealing order. Few stems per deck, so that near-identical names meet each other."""
    rng = dice(seed, "decks")

    def clustered(stems: Sequence[str], kinds: Sequence[str], wanted: int, form: str) -> Iterator[str]:
        stems = rng.sample(list(stems), min(len(stems), max(4, math.ceil(wanted / 2.5))))
        pairs = [form.format(stem, kind) for stem, kind in product(stems, kinds)]
        rng.shuffle(pairs)
        return iter(pairs)

    n = documents / 300
    birds = [f"Project {bird}{half}" for half in ("", " North", " Deep", " Two") for bird in BIRDS]
    incidents = [f"INC-{number}" for number in rng.sample(range(2000, 2000 + 6 * documents), documents)]
    contracts = [f"CT-{number}" for number in rng.sample(range(400, 400 + 4 * documents), documents)]
    series = rng.sample(list(PRODUCT_SERIES), min(10, max(4, math.ceil(5 * n))))
    models = [f"{letters}-{number}" for letters, number in product(series, PRODUCT_NUMBERS)]
    rng.shuffle(models)
    return {
        "holding": iter(HOLDINGS),
        "company": clustered(COMPANY_STEMS, COMPANY_TRADES, math.ceil(22 * n), "{} {}"),
        "site": clustered(SITE_STEMS, SITE_KINDS, math.ceil(24 * n), "{} {}"),
        "product": iter(models),
        "service": clustered(SERVICE_FIRST, SERVICE_SECOND, math.ceil(10 * n), "{} {}"),
        "code": clustered(CODE_FIRST, CODE_SECOND, math.ceil(20 * n), "ERR_{}_{}"),
        "project": iter(birds),
        "incident": iter(incidents),
        "contract": iter(contracts),
    }
