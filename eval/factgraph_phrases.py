"""How things are asked: several wordings per relation, kept away from the wording of the documents.

`{s}` is what is asked about and may be long ("the company that builds the AR-7"); `{y}` is a year. Wordings of a
follow-up have no `{s}`: the conversation holds it.
"""

ASK: dict[str, tuple[str, ...]] = {
    "founded": (
        "When was {s} established?",
        "In which year did {s} start out?",
        "How far back does the history of {s} go?",
    ),
    "headquarters": (
        "Where is {s} based?",
        "In which town does {s} have its headquarters?",
        "Which town is home to the main office of {s}?",
    ),
    "parent": ("Which group owns {s}?", "Who is the parent company of {s}?", "To which group does {s} belong?"),
    "chief": (
        "Who is the current chief executive of {s}?",
        "Who runs {s} today as CEO?",
        "Who is at the helm of {s} now?",
    ),
    "revenue": (
        "What was the turnover of {s} in {y}?",
        "How much revenue did {s} report for {y}?",
        "What sales did {s} make in {y}?",
    ),
    "headcount": (
        "How many employees did {s} have at the end of {y}?",
        "How large was the workforce of {s} in {y}?",
        "How many people were employed by {s} in {y}?",
    ),
    "debt": (
        "How high was the net debt of {s} at the end of {y}?",
        "What did {s} owe in net terms at the close of {y}?",
    ),
    "capex": ("How much did {s} invest in {y}?", "What was the capital expenditure of {s} in {y}?"),
    "auditor": ("Which firm audited {s} for 2024?", "Who checked the books of {s}?"),
    "backlog": ("How large is the order backlog of {s}?", "What is the order book of {s} worth?"),
    "hiring": ("How many new people does {s} want to recruit this year?", "How many hires does {s} have planned?"),
    "finance_chief": ("Who is the CFO of {s}?", "Who is in charge of finance at {s}?"),
    "margin": (
        "What operating margin did {s} reach in the half year?",
        "How profitable was {s}, as an operating margin?",
    ),
    "cash": ("How much cash does {s} have?", "How large are the liquid funds of {s}?"),
    "operator": ("Which company operates {s}?", "Who runs {s}?", "Whose staff works at {s}?"),
    "town": ("Which town is closest to {s}?", "Near which town is {s}?"),
    "capacity": ("How many megawatts can {s} handle?", "What is the power capacity of {s}?", "How powerful is {s}?"),
    "opened": ("When did {s} open?", "On which date did {s} begin operating?", "Since when has {s} been in operation?"),
    "depth": ("How deep is the water at {s} at low tide?", "What water depth does {s} have at the lowest tide?"),
    "manager": ("Who manages {s}?", "Who is the manager in charge at {s}?"),
    "jobs": ("How many jobs depend on {s}?", "How many people in the area owe their work to {s}?"),
    "maker": ("Who manufactures {s}?", "Which company makes {s}?", "Who is the manufacturer of {s}?"),
    "released": ("When was {s} released?", "On what date could one first buy {s}?", "When did {s} come to market?"),
    "weight": ("How heavy is {s}?", "What is the weight of {s}?", "How many kilograms does {s} weigh?"),
    "rating": ("What continuous power is {s} rated for?", "How many kilowatts can {s} take continuously?"),
    "price": (
        "What does {s} cost now?",
        "What is the current list price of {s}?",
        "How much do I have to pay for {s} today?",
    ),
    "warranty": ("How long is the warranty on {s}?", "For how many months is {s} under guarantee?"),
    "interval": ("After how many running hours must {s} be serviced?", "How often does {s} need a service?"),
    "seal": ("Which seal kit do I need for {s}?", "What is the number of the seal kit for {s}?"),
    "team": ("Which team is responsible for {s}?", "Who maintains {s}, which team?"),
    "language": ("What programming language is {s} built in?", "In which language is {s} programmed?"),
    "port": ("Which port does {s} use?", "On what port number can I connect to {s}?"),
    "timeout": ("After how many seconds does {s} time out?", "How long does {s} wait before it gives up on a request?"),
    "hosted": ("Where are the servers of {s} located?", "At which site is {s} hosted?"),
    "service": ("Which service produces {s}?", "Where does {s} come from, which service?"),
    "code_cause": ("Why do I get {s}?", "What causes {s}?", "What is the reason behind {s}?"),
    "remedy": ("How do I fix {s}?", "What helps against {s}?", "What should be done about {s}?"),
    "since": ("Since which release has {s} been around?", "In which release was {s} added?"),
    "site": ("Where is {s} being carried out?", "Which site is {s} about?"),
    "contractor": ("Which company is building {s} as main contractor?", "Who got the main contract of {s}?"),
    "budget": ("What is the latest budget of {s}?", "How much money is {s} allowed to cost by now?"),
    "completion": (
        "When is {s} expected to be complete, as things stand?",
        "What is the latest finishing date of {s}?",
    ),
    "leader": ("Who is the project manager of {s}?", "Who heads {s}?"),
    "place": ("Where did {s} occur?", "At which site did {s} happen?"),
    "device": ("Which device broke down in {s}?", "What model of equipment failed in {s}?"),
    "code": ("Which error code did clients see during {s}?", "What error message was logged in {s}?"),
    "cause": ("What was found to be the cause of {s}?", "Why did {s} happen?"),
    "duration": ("How long did {s} last?", "How many minutes did {s} go on?"),
    "commander": ("Who was in charge of handling {s}?", "Who was the incident commander for {s}?"),
    "happened": ("On which date did {s} start?", "When did {s} occur?"),
    "limit": ("What is the current limit under {s}?", "How much does {s} allow today?"),
    "owner": ("Who is responsible for {s}?", "Whom do I ask about {s}, who owns it?"),
    "party": ("With which company was {s} signed?", "Who is the counterparty of {s}?"),
    "worth": ("What is the value of {s}?", "How much money is {s} about?"),
    "venue": ("In which town are disputes over {s} settled?", "Which courts have jurisdiction over {s}?"),
    "berths_de": (
        "Wie viele Liegeplätze hat {s}?",
        "Wie viele Schiffe können am {s} festmachen, an wie vielen Plätzen?",
    ),
    "fee_de": ("Wie hoch ist das Liegegeld am {s}?", "Was kostet eine Nacht am {s}?"),
    "berths_ja": ("{s}には船を何隻分つなげますか？係留場所の数は？", "{s}の係留場所はいくつですか？"),
    "fee_ja": ("{s}の一泊の係留料はいくらですか？", "{s}に一晩停泊するといくらかかりますか？"),
    "berths_el": ("Πόσες θέσεις ελλιμενισμού έχει το {s};", "Πόσα σκάφη χωράει το {s}, σε πόσες θέσεις;"),
    "fee_el": ("Πόσο κοστίζει μία νύχτα στο {s};", "Ποια είναι τα τέλη ελλιμενισμού στο {s};"),
    "expires": ("When does {s} expire?", "Until when does {s} run?"),
}

# The thing at the other end of a link, as a part of a longer question.
THE: dict[str, tuple[str, ...]] = {
    "parent": ("the group that owns {s}", "the parent of {s}"),
    "operator": ("the operator of {s}", "the company that operates {s}"),
    "maker": ("the manufacturer of {s}", "the company that builds {s}", "the maker of {s}"),
    "hosted": ("the site that hosts {s}", "the place where {s} is hosted"),
    "service": ("the service that raises {s}", "the service behind {s}"),
    "site": ("the site where {s} is carried out", "the site of {s}"),
    "contractor": ("the main contractor of {s}", "the company building {s}"),
    "place": ("the site where {s} occurred", "the site hit by {s}"),
    "device": ("the device that failed in {s}", "the equipment that broke in {s}"),
    "code": ("the error seen in {s}", "the error code of {s}"),
    "party": ("the counterparty of {s}", "the company that signed {s}"),
}

FOLLOW_UP: dict[str, tuple[str, ...]] = {
    "weight": ("And how heavy is it?",),
    "warranty": ("How long is its warranty?", "And the warranty?"),
    "maker": ("Who makes it?", "Which company is behind it?"),
    "operator": ("Who operates it?",),
    "capacity": ("And what is its capacity?",),
    "headquarters": ("Where is its headquarters?",),
    "chief": ("Who is its chief executive now?",),
    "remedy": ("How do I get rid of it?",),
    "port": ("Which port does it use?",),
    "leader": ("Who leads it?",),
    "commander": ("Who was in command?",),
    "duration": ("How long did it last?",),
}

# Asked in another language than English, so never at the end of an English noun phrase.
LOCAL = frozenset(relation for relation in ASK if relation.endswith(("_de", "_ja", "_el")))
