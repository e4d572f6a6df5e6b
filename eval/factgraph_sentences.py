"""How a fact is told: several sentences per relation, each of which holds the whole fact.

`{s}` is the subject, `{n}` its noun, `{v}` the value, `{y}` the year of an annual figure. Keys with a `+` tell a
later version of the fact. A few sentences say "the unit" or "the company": the reader must know the document's title.
"""

STATEMENTS: dict[str, tuple[str, ...]] = {
    # ------------------------------------------------------------------------------------------ companies
    "founded": (
        "{s} goes back to {v}, when two pilots and a chart maker put their savings together.",
        "The {n} was founded in {v} and still keeps its first ledger in the hall.",
        "Since its foundation in {v}, {s} has changed its trade twice but never its name.",
        "It was in {v} that {s} was entered in the coastal register.",
    ),
    "headquarters": (
        "The head office of {s} stands in {v}, above the old customs house.",
        "{s} is run from {v}, where most of its clerks and all of its directors sit.",
        "Letters to the board of {s} go to {v}.",
        "The {n} has its seat in {v}.",
    ),
    "parent": (
        "{s} belongs to {v}, which holds every share.",
        "All shares of {s} are held by {v}.",
        "As a wholly owned member of {v}, {s} reports its figures once a year.",
        "The owner of {s} is {v}.",
    ),
    "chief": (
        "{v} has led {s} as chief executive for some years.",
        "At the top of {s} stands {v}, its chief executive.",
        "The chief executive of {s} is {v}.",
        "{v}, chief executive of {s}, still takes the early ferry.",
    ),
    "chief+": (
        "{v} becomes chief executive of {s} with immediate effect.",
        "The board of {s} has named {v} as the new chief executive, starting today.",
        "From today {s} is led by {v}, who takes the chair of the chief executive.",
        "{s} has a new chief executive: {v}.",
    ),
    "revenue": (
        "In {y} the revenue of {s} came to {v}.",
        "{s} turned over {v} in the financial year {y}.",
        "Revenue for {y} was {v}, after elimination of sales between the yards of {s}.",
    ),
    "headcount": (
        "At the end of {y} {s} employed {v}.",
        "On the last day of {y} the payroll of {s} counted {v}.",
        "{v} worked for {s} when {y} closed.",
    ),
    "debt": (
        "Net debt of {s} stood at {v} at the close of {y}.",
        "{s} ended {y} with net borrowings of {v}.",
        "After repayments, {s} owed its banks {v} net at the end of {y}.",
    ),
    "capex": (
        "Capital spending of {s} reached {v} in {y}.",
        "During {y} {s} put {v} into plant, vessels and buildings.",
        "Investment in fixed assets by {s} amounted to {v} in {y}.",
    ),
    "auditor": (
        "The accounts of {s} were audited by {v}.",
        "{v} signed the audit opinion on {s} without qualification.",
        "The audit of {s} was carried out by {v}.",
    ),
    "backlog": (
        "Our order book at {s} stands at {v} today.",
        "We closed the quarter with orders worth {v} on the books of {s}.",
        "The backlog at {s} is {v}, and most of it is for the next two years.",
    ),
    "hiring": (
        "We intend to take on {v} at {s} before the year is out.",
        "{s} plans to hire {v} this year, most of them fitters.",
        "The plan for {s} is to recruit {v} by December.",
    ),
    "finance_chief": (
        "{v}, who looks after the money at {s} as finance director, will take the harder questions.",
        "The finance director of {s} is {v}.",
        "With me is {v}, finance director of {s}.",
    ),
    "margin": (
        "The operating margin of {s} for the half year is {v}.",
        "{s} earned an operating margin of {v} before group charges.",
    ),
    "cash": ("{s} holds {v} in cash and short deposits.", "Cash at bank of {s} amounts to {v}."),
    # ------------------------------------------------------------------------------------------ sites
    "operator": (
        "{s} is operated by {v}.",
        "The day-to-day running of {s} is in the hands of {v}.",
        "{v} holds the licence to operate {s}.",
        "The crew of {s} is employed by {v}, which runs the place.",
    ),
    "town": (
        "{s} lies a short walk from {v}.",
        "The nearest town to {s} is {v}.",
        "From {v} a gravel road leads straight to {s}.",
    ),
    "capacity": (
        "{s} is rated at {v}.",
        "At full ebb {s} delivers up to {v}.",
        "The installed capacity of {s} is {v}.",
        "The connection allows {s} to draw or deliver {v}.",
    ),
    "opened": (
        "{s} was opened on {v} in steady rain.",
        "The ribbon at {s} was cut on {v}.",
        "{s} went into service on {v}.",
    ),
    "depth": (
        "The survey puts the water at {s} at {v} at the lowest tide.",
        "At low water the basin of {s} is {v} deep.",
        "We measured {v} of water at {s} at the lowest tide of the year.",
    ),
    "manager": (
        "Our manager at {s} is {v}, whom most of you know from the trial runs.",
        "The manager of {s} is {v}.",
        "{v}, who manages {s}, walked the members through the plan.",
    ),
    "jobs": (
        "{s} supports {v} in the district, by the county's own count.",
        "By the last count {v} depend on {s}.",
        "The county counted {v} that hang on {s}.",
    ),
    # ------------------------------------------------------------------------------------------ products
    "maker": (
        "The {s} {n} is built by {v}.",
        "{v} makes the {s} in its own foundry.",
        "Behind the {s} stands {v}, which designed and builds it.",
        "The {s} comes out of the workshops of {v}.",
    ),
    "released": (
        "The {s} went on sale on {v}.",
        "We shipped the first {s} to a paying customer on {v}.",
        "Sales of the {s} {n} began on {v}.",
    ),
    "weight": (
        "The {s} weighs {v} without its bracket.",
        "On the scales the {s} comes to {v}.",
        "It weighs {v}, so plan for a hoist.",
        "Dry and empty, the {s} {n} brings {v} to the crane hook.",
    ),
    "rating": (
        "The {s} is rated for {v} of continuous load.",
        "Its continuous rating is {v}, measured at a water temperature of eight degrees.",
        "Continuous power of the {s} is {v}.",
    ),
    "price": (
        "The list price of the {s} is {v}.",
        "We sell the {s} for {v}, delivery not included.",
        "A single {s} costs {v} at list.",
    ),
    "price+": (
        "From now on the {s} costs {v}.",
        "The new list price of the {s} {n} is {v}.",
        "Buyers will pay {v} for the {s} from today.",
    ),
    "warranty": (
        "The {s} carries a warranty of {v}.",
        "Defects of the {s} are covered for {v} after delivery.",
        "The maker stands behind the {s} for {v}.",
    ),
    "interval": (
        "Service the {s} every {v}.",
        "The {s} needs a full service after {v}.",
        "A service of the {s} {n} is due every {v}.",
    ),
    "seal": (
        "Order seal kit {v} for the {s} before you open the housing.",
        "The {s} takes seal kit {v} and no other.",
        "The right seal kit for the {s} is {v}.",
    ),
    # ------------------------------------------------------------------------------------------ software
    "team": (
        "{s} is owned by the {v} team.",
        "The {v} team looks after {s} and carries its pager.",
        "Questions about {s} go to the {v} team.",
    ),
    "language": (
        "{s} is written in {v}.",
        "We wrote {s} in {v} and would do so again.",
        "The code of {s} is {v} from top to bottom.",
    ),
    "port": (
        "{s} listens on port {v}.",
        "Clients reach {s} on port {v}.",
        "Port {v} is reserved for {s} on every host.",
    ),
    "timeout": (
        "A call to {s} is given up after {v} unless the caller says otherwise.",
        "The default timeout of {s} is {v}.",
        "{s} drops a request that takes longer than {v}.",
    ),
    "hosted": (
        "{s} runs on the rack in the control room of {v}.",
        "The machines of {s} stand at {v}.",
        "We host {s} at {v}, next to the tide gauge.",
    ),
    "service": (
        "{s} is raised by {v}.",
        "The message {s} comes from {v}.",
        "When you see {s}, the sender is always {v}.",
    ),
    "code_cause": ("{s} appears when {v}.", "The usual reason for {s} is that {v}.", "You get {s} because {v}."),
    "remedy": ("To clear {s}, {v}.", "The way out of {s}: {v}.", "If {s} keeps coming back, {v}."),
    "since": (
        "{s} was introduced with {v}.",
        "Before {v} there was no {s}; the same trouble was reported as a general fault.",
        "{s} has existed since {v}.",
    ),
    # ------------------------------------------------------------------------------------------ projects
    "site": (
        "{s} will rebuild a part of {v}.",
        "The works of {s} take place at {v}.",
        "{s} concerns {v} and nothing else.",
    ),
    "contractor": (
        "The main contractor of {s} is {v}.",
        "{v} won the main contract for {s} against four other bidders.",
        "The building work of {s} was awarded to {v}.",
    ),
    "budget": ("The budget of {s} is {v}.", "{s} may spend {v} in all.", "The sponsors have set aside {v} for {s}."),
    "budget+": (
        "The budget of {s} has been raised to {v}.",
        "{s} is now expected to cost {v}.",
        "The new ceiling for {s} is {v}.",
    ),
    "completion": (
        "{s} is to be finished by {v}.",
        "The planned end of {s} is {v}.",
        "Handover of {s} is planned for {v}.",
    ),
    "completion+": (
        "{s} will not be finished before {v}.",
        "The handover of {s} has moved to {v}.",
        "The completion date of {s} is now {v}.",
    ),
    "leader": ("{v} leads {s}.", "The project lead of {s} is {v}.", "{v} was put in charge of {s}."),
    # ------------------------------------------------------------------------------------------ incidents
    "place": (
        "{s} took place at {v}.",
        "The site of {s} was {v}.",
        "During {s} the crew of {v} worked from the emergency plan.",
    ),
    "device": (
        "The part that failed in {s} was the {v}.",
        "In {s} a {v} gave way.",
        "The fault of {s} was traced to a {v}.",
    ),
    "code": (
        "All clients affected by {s} logged {v}.",
        "The only message seen during {s} was {v}.",
        "{s} showed itself as a flood of {v}.",
    ),
    "cause": ("The root cause of {s} was {v}.", "{s} was caused by {v}.", "What set off {s} was {v}."),
    "duration": (
        "{s} lasted {v}.",
        "From the first alarm to the all-clear, {s} took {v}.",
        "Normal service was back {v} after {s} began.",
    ),
    "commander": (
        "{v} was in command during {s}.",
        "The response to {s} was led by {v}.",
        "{v} took command of {s} at the first alarm.",
    ),
    "happened": (
        "{s} began on {v}.",
        "{s} happened on {v}, shortly after the watch changed.",
        "The first alarm of {s} was raised on {v}.",
    ),
    # ------------------------------------------------------------------------------------------ rules and contracts
    "limit": ("The {s} sets the limit at {v}.", "Under the {s} the limit is {v}."),
    "limit+": ("With this edition the {s} changes its limit to {v}.", "The limit of the {s} is now {v}."),
    "owner": ("{v} answers for the {s}.", "The owner of the {s} is {v}."),
    "party": ("The other party to {s} is {v}.", "{s} was concluded with {v}."),
    "worth": ("The total value of {s} is {v}.", "{s} is worth {v} over its whole term."),
    "venue": ("Disputes under {s} are heard in {v}.", "The courts of {v} decide any dispute about {s}."),
    "expires": ("{s} ends on {v} unless it is renewed in writing.", "The term of {s} runs until {v}."),
    # ------------------------------------------------------------------------------------------ other languages
    "berths_de": ("Am {s} stehen {v} Liegeplätze zur Verfügung.", "Der Hafenteil {s} bietet {v} Liegeplätze."),
    "fee_de": ("Das Liegegeld am {s} beträgt {v} je Nacht.", "Je Nacht werden am {s} {v} Liegegeld erhoben."),
    "berths_ja": ("{s}の係留場所は{v}か所です。", "{s}には係留場所が{v}か所あります。"),
    "fee_ja": ("{s}の係留料は一泊{v}です。", "{s}に停泊する船は一泊につき{v}を支払います。"),
    "berths_el": ("Στο {s} υπάρχουν {v} θέσεις ελλιμενισμού.", "Το {s} διαθέτει {v} θέσεις ελλιμενισμού."),
    "fee_el": ("Τα τέλη ελλιμενισμού στο {s} είναι {v} τη νύχτα.", "Κάθε νύχτα στο {s} κοστίζει {v}."),
}
