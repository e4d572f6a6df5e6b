"""Wordings that set things against each other: more or less, before and after, then and now, told and never told.

`{a}` and `{b}` are two things, `{s}` is one; `{y}` is a year, `{d}` a month with its year, `{new}` the later value.
"""

# relation: (wording for the greater one, wording for the lesser one)
COMPARE: dict[str, tuple[str, str]] = {
    "founded": ("Which is the younger company, {a} or {b}?", "Which was founded earlier, {a} or {b}?"),
    "revenue": ("Which had the higher turnover in {y}, {a} or {b}?", "Which sold less in {y}, {a} or {b}?"),
    "headcount": (
        "Which employed more people at the end of {y}, {a} or {b}?",
        "Which had the smaller workforce in {y}, {a} or {b}?",
    ),
    "debt": (
        "Which owed more at the end of {y}, {a} or {b}?",
        "Which had less net debt at the end of {y}, {a} or {b}?",
    ),
    "backlog": ("Which has the larger order book, {a} or {b}?", "Which has the smaller order backlog, {a} or {b}?"),
    "capacity": ("Which is more powerful, {a} or {b}?", "Which has the lower capacity in megawatts, {a} or {b}?"),
    "depth": (
        "Which has the deeper water at low tide, {a} or {b}?",
        "Where is the water shallower at the lowest tide, {a} or {b}?",
    ),
    "weight": ("Which is heavier, {a} or {b}?", "Which of the two weighs less, {a} or {b}?"),
    "rating": ("Which is rated for more kilowatts, {a} or {b}?", "Which has the lower continuous rating, {a} or {b}?"),
    "price": ("Which is more expensive today, {a} or {b}?", "Which is cheaper now, {a} or {b}?"),
    "warranty": ("Which comes with the longer warranty, {a} or {b}?", "Which has the shorter guarantee, {a} or {b}?"),
    "interval": ("Which can run longer between services, {a} or {b}?", "Which needs service sooner, {a} or {b}?"),
    "timeout": (
        "Which waits longer before giving up, {a} or {b}?",
        "Which has the shorter default timeout, {a} or {b}?",
    ),
    "budget": (
        "Which has the bigger budget by now, {a} or {b}?",
        "Which costs less by the latest figures, {a} or {b}?",
    ),
    "duration": ("Which took longer, {a} or {b}?", "Which was over more quickly, {a} or {b}?"),
}

EVENTS: dict[str, tuple[str, ...]] = {
    "opened": ("the opening of {s}", "the first day of {s}"),
    "released": ("the release of {s}", "the market launch of {s}"),
    "happened": ("the start of {s}", "the first alarm in {s}"),
}
FIRST = ("Which came first, {a} or {b}?", "What happened earlier: {a} or {b}?")
LAST = ("Which came later, {a} or {b}?", "What happened more recently: {a} or {b}?")

# How an earlier version is asked for; {d} is a month and a year in which it held.
AS_OF: dict[str, tuple[str, ...]] = {
    "chief": ("Who was chief executive of {s} in {d}?", "Who led {s} back in {d}?"),
    "price": ("What did {s} cost in {d}?", "What was the list price of {s} back in {d}?"),
    "budget": ("What was the original budget of {s}?", "How much was {s} meant to cost when it began?"),
    "completion": (
        "When was {s} originally meant to be finished?",
        "What was the first planned completion date of {s}?",
    ),
    "limit": ("What limit did {s} set in {d}?", "What did {s} allow back in {d}?"),
}

# How the difference between two versions is asked for; {new} is the later value.
CHANGE: dict[str, tuple[str, ...]] = {
    "chief": ("Who led {s} before {new} took over?", "Whom did {new} succeed as chief executive of {s}?"),
    "price": (
        "By how much did the list price of {s} change?",
        "How many crowns lie between the old and the new price of {s}?",
    ),
    "budget": ("By how much did the budget of {s} grow?", "How many million crowns were added to the budget of {s}?"),
    "completion": (
        "By how many days did the planned end of {s} slip?",
        "How many days late is {s} against its first plan?",
    ),
}

# when-clause for "who led ... when ..."
WHEN: dict[str, str] = {"opened": "{s} opened", "released": "{s} was released", "happened": "{s} happened"}
LED = ("Who was chief executive of {c} when {e}?", "Who headed {c} at the time {e}?")

# What the library never says about anything it knows. The first word of each entry must stand in no document.
UNSTATED: dict[str, tuple[tuple[str, str], ...]] = {
    "company": (
        ("dividend", "What dividend per share did {s} pay?"),
        ("canteen menu", "What is on the canteen menu of {s} on Mondays?"),
        ("emissions", "What are the yearly carbon emissions of {s}?"),
    ),
    "site": (
        ("parking", "How many parking spaces are there at {s}?"),
        ("wheelchair", "Is {s} accessible by wheelchair?"),
        ("ticket", "What does a ticket to visit {s} cost?"),
    ),
    "product": (
        ("decibel", "How many decibels does {s} make at full load?"),
        ("paint", "In which paint finishes is {s} available?"),
        ("recycled", "What share of {s} is recycled material?"),
    ),
    "service": (
        ("licence fee", "What licence fee do users of {s} pay?"),
        ("uptime", "What uptime did {s} reach last year?"),
    ),
    "code": (("bounty", "Is there a bug bounty for {s}?"), ("telegram", "Which telegram channel reports {s}?")),
    "project": (("insurer", "Which insurer covers {s}?"), ("subsidy", "How large is the state subsidy for {s}?")),
    "incident": (("lawsuit", "Which lawsuit followed {s}?"), ("repair bill", "How high was the repair bill of {s}?")),
}

OUTSIDE = (
    "What is the boiling point of mercury?",
    "Who painted the ceiling of the Sistine Chapel?",
    "How many moons does Neptune have?",
    "What is the capital of Mongolia?",
    "How do I make a sourdough starter?",
    "Who won the chess world title in 1972?",
    "What is the chemical formula of caffeine?",
    "How tall is the highest waterfall on Earth?",
    "Which planet has the shortest year?",
    "Who wrote the opera about a barber in Seville?",
    "What does the word serendipity mean?",
    "How many strings does a cello have?",
    "When did the first people land on the Moon?",
    "What is a good remedy for hay fever?",
    "How is parmesan cheese aged?",
    "Which river flows through Vienna?",
    "What are the rules of curling?",
    "How fast can a cheetah run?",
    "Wie viele Tasten hat ein Klavier?",
    "Quelle est la hauteur du mont Blanc ?",
    "日本で一番高い山は何ですか？",
    "¿Quién inventó la imprenta?",
)
