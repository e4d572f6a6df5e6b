"""What each kind of document looks like: its source, its titles, its sections and what each section is made of.

A section names the relations it tells, the pool of background talk it draws from (factgraph_background.py) and how
many sentences of that; `extra` is a block that prose cannot be. Facts no section names are told in the first.
"""

from dataclasses import dataclass

SOURCES = ("newswire", "filings", "techblog", "transcript", "support_kb", "incident")


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a document. An empty heading means a plain paragraph."""

    heading: str
    relations: tuple[str, ...]
    pool: str
    talk: int
    extra: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """One kind of document. `opening` stands before the first section: a dateline, a list of speakers, a notice."""

    source: str
    titles: tuple[str, ...]
    opening: str
    sections: tuple[Section, ...]


LAYOUTS: dict[str, Layout] = {
    "profile": Layout(
        "newswire",
        ("{s}: portrait of a {n}", "Who is {s}?", "{s}, a {n} on the tide"),
        "dateline",
        (
            Section("", ("headquarters", "founded"), "company", 4),
            Section("", ("parent", "chief"), "company", 4),
            Section("", (), "company", 3),
        ),
    ),
    "appointment": Layout(
        "newswire",
        ("Change at the top of {s}", "{s} names a new chief", "New head for {s}"),
        "dateline",
        (
            Section("", ("chief",), "handover", 2),
            Section("", (), "handover", 3),
            Section("", (), "company", 4),
        ),
    ),
    "annual": Layout(
        "filings",
        ("{s}: annual report {y}", "Annual report {y} of {s}", "{s} - report for the financial year {y}"),
        "filing",
        (
            Section("Results", ("revenue", "capex"), "filing", 2, "quarters"),
            Section("Financial position", ("debt",), "filing", 3),
            Section("Staff", ("headcount",), "filing", 2),
            Section("Audit and other notes", ("auditor",), "filing", 2),
        ),
    ),
    "accounts": Layout(
        "filings",
        ("{s}: management accounts", "Half-year management accounts of {s}"),
        "confidential",
        (
            Section("Earnings", ("margin",), "filing", 4, "quarters"),
            Section("Liquidity", ("cash",), "filing", 4),
        ),
    ),
    "call": Layout(
        "transcript",
        ("{s}: call with analysts", "Results call of {s}", "Transcript: {s} speaks to analysts"),
        "speakers",
        (
            Section("Opening remarks", ("finance_chief", "backlog"), "answer", 4),
            Section("Questions", ("hiring",), "answer", 6, "analyst"),
        ),
    ),
    "opening": Layout(
        "newswire",
        ("{s} in service", "{s} opens", "First day at {s}"),
        "dateline",
        (
            Section("", ("opened", "town"), "site", 3),
            Section("", ("capacity", "operator"), "site", 4),
            Section("", (), "site", 3),
        ),
    ),
    "hearing": Layout(
        "transcript",
        ("County hearing on {s}", "Public hearing: {s}", "{s} before the county committee"),
        "speakers",
        (
            Section("Statement", ("manager", "depth"), "site", 4),
            Section("Questions from the floor", ("jobs",), "site", 5, "member"),
        ),
    ),
    "release": Layout(
        "techblog",
        ("Building the {s}", "The {s} {n}, from sketch to crate", "Notes on the {s}", "Why we made the {s}"),
        "",
        (
            Section("", ("released",), "product", 3),
            Section("What it is", ("maker", "weight"), "product", 3),
            Section("Figures", ("rating", "price"), "product", 2, "bench"),
            Section("What we learned", (), "product", 3),
        ),
    ),
    "care": Layout(
        "support_kb",
        ("Looking after the {s}", "{s}: care and service", "Service notes for the {s} {n}"),
        "article",
        (
            Section("Daily care", (), "care", 4),
            Section("Service", ("interval", "seal"), "care", 3, "torque"),
            Section("When it breaks", ("warranty",), "care", 3),
        ),
    ),
    "pricing": Layout(
        "newswire",
        ("New price for the {s}", "{s}: list price changes", "Dealers told of new {s} price"),
        "dateline",
        (
            Section("", ("price",), "market", 3),
            Section("", (), "market", 3),
            Section("", (), "product", 3),
        ),
    ),
    "service_note": Layout(
        "techblog",
        ("How {s} works", "{s} explained", "Inside {s}", "{s}: notes from the machine room"),
        "",
        (
            Section("", ("language",), "software", 3),
            Section("Who and where", ("team", "hosted"), "software", 2),
            Section("Settings", ("port", "timeout"), "software", 2, "config"),
            Section("Lessons", (), "software", 3),
        ),
    ),
    "error_article": Layout(
        "support_kb",
        ("{s}: what it means", "What to do about {s}", "{s} explained"),
        "article",
        (
            Section("Symptom", ("since",), "support", 3, "log"),
            Section("Cause", ("code_cause", "service"), "support", 2),
            Section("Fix", ("remedy",), "support", 3),
        ),
    ),
    "start": Layout(
        "newswire",
        ("{s} gets under way", "Go-ahead for {s}", "{s} may begin"),
        "dateline",
        (
            Section("", ("site", "contractor"), "project", 3),
            Section("", ("budget", "completion"), "project", 3),
            Section("", ("leader",), "project", 3),
        ),
    ),
    "update": Layout(
        "newswire",
        ("{s} takes longer and costs more", "New figures for {s}", "Delay at {s}"),
        "dateline",
        (
            Section("", ("completion",), "project", 3),
            Section("", ("budget",), "project", 3),
            Section("", (), "project", 3),
        ),
    ),
    "site_meeting": Layout(
        "transcript",
        ("Site meeting of {s}", "{s}: steering group in session", "Minutes in full: {s}"),
        "speakers",
        (
            Section("State of the works", ("completion",), "project", 5),
            Section("Money", ("budget",), "project", 4, "member"),
        ),
    ),
    "failure": Layout(
        "incident",
        ("{s}: failure report", "Report on {s}", "{s} - findings of the review"),
        "report",
        (
            Section("Summary", ("happened", "place", "commander"), "incident", 2),
            Section("Timeline", ("duration",), "incident", 2, "timeline"),
            Section("Cause", ("cause", "device"), "incident", 3),
            Section("Actions", (), "action", 3, "list"),
        ),
    ),
    "outage": Layout(
        "incident",
        ("{s}: outage report", "Post-mortem of {s}", "{s}, an outage and its lessons"),
        "report",
        (
            Section("Summary", ("happened", "commander"), "incident", 3),
            Section("Timeline", ("duration",), "incident", 2, "timeline"),
            Section("What clients saw", ("code",), "incident", 3),
            Section("Actions", (), "action", 3, "list"),
        ),
    ),
    "policy": Layout(
        "support_kb",
        ("Staff handbook: {s}", "The {s}", "Handbook page on the {s}"),
        "article",
        (
            Section("Rule", ("limit",), "rule", 3),
            Section("How to ask for an exception", ("owner",), "rule", 4),
            Section("Notes", (), "rule", 3),
        ),
    ),
    "contract": Layout(
        "filings",
        ("Summary of {s}", "{s}: contract file", "Register entry {s}"),
        "confidential",
        (
            Section("Parties and purpose", ("party", "worth"), "clause", 3),
            Section("Term and disputes", ("expires", "venue"), "clause", 3),
            Section("Notices", (), "clause", 3),
        ),
    ),
    "notice_de": Layout(
        "newswire",
        ("Bekanntmachung für {s}", "{s}: Hinweise für Schiffsführer"),
        "",
        (Section("", ("berths_de",), "notice_de", 5), Section("", ("fee_de",), "notice_de", 5)),
    ),
    "notice_ja": Layout(
        "newswire",
        ("{s}からのお知らせ", "船長各位：{s}の利用案内"),
        "",
        (Section("", ("berths_ja",), "notice_ja", 6), Section("", ("fee_ja",), "notice_ja", 6)),
    ),
    "notice_el": Layout(
        "newswire",
        ("Ανακοίνωση για το {s}", "{s}: οδηγίες προς πλοιάρχους"),
        "",
        (Section("", ("berths_el",), "notice_el", 5), Section("", ("fee_el",), "notice_el", 6)),
    ),
}
