"""How months, numbers and units are spelled: the tables of specifics.py. Keys are in lower case."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
TIMES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SPELLED = (
    {name: n for n, name in enumerate(ONES, 1)}
    | {name: n for n, name in enumerate(TEENS, 10)}
    | {name: 10 * n for n, name in enumerate(TENS, 2)}
)
_SPELLINGS = {
    "%": "% percent",
    "kg": "kg kilo kilos kilogram kilograms kilogramme kilogrammes",
    "g": "g gram grams gramme grammes",
    "mg": "mg milligram milligrams",
    "t": "t tonne tonnes ton tons",
    "km": "km kilometre kilometres kilometer kilometers",
    "m": "m metre metres meter meters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "nmi": "nmi nm",
    "mile": "mile miles",
    "ft": "ft foot feet",
    "in": "inch inches",
    "km2": "km2",
    "m2": "m2",
    "m3": "m3",
    "l": "l litre litres liter liters",
    "ml": "ml millilitre millilitres",
    "ms": "ms millisecond milliseconds",
    "s": "s sec second seconds",
    "min": "min minute minutes",
    "h": "h hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "year years",
    "kn": "kn kt knot knots",
    "rpm": "rpm",
    "w": "w watt watts",
    "kw": "kw kilowatt kilowatts",
    "mw": "mw megawatt megawatts",
    "gw": "gw gigawatt gigawatts",
    "kwh": "kwh",
    "mwh": "mwh",
    "gwh": "gwh",
    "kv": "kv kilovolt kilovolts",
    "v": "v volt volts",
    "a": "ampere amperes amp amps",
    "hz": "hz hertz",
    "khz": "khz",
    "mhz": "mhz",
    "bar": "bar",
    "pa": "pa",
    "kpa": "kpa",
    "°c": "°c",
    "°f": "°f",
    "k": "kelvin",
    "kb": "kb kilobyte kilobytes",
    "mb": "mb megabyte megabytes",
    "gb": "gb gigabyte gigabytes",
    "tb": "tb terabyte terabytes",
    "eur": "€ eur euro euros",
    "usd": "$ usd dollar dollars",
    "gbp": "£ gbp pound pounds",
    "jpy": "¥ jpy yen",
}
UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()} | {"per cent": "%"}
