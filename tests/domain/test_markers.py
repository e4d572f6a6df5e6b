"""What a marker is: every line of the table at the head of markers.py, as the reader sees it."""

import pytest

from domain.markers import ADDRESS_LIMIT, HOLD_LIMIT, NAME_LIMIT, Marker, MarkerReader

SUPPLIED = ("S1", "S2", "S3")


def read(text: str) -> tuple[str, list[str]]:
    """The visible text and the markers resolved, in order."""
    reader = MarkerReader(SUPPLIED, ["Pump manual"])
    pieces = reader.feed(text) + reader.close()
    shown = "".join(p.text if isinstance(p, Marker) else p for p in pieces)
    return shown, [p.sid for p in pieces if isinstance(p, Marker)]


@pytest.mark.parametrize(
    ("raw", "shown", "sids"),
    [
        ("Fact [S1].", "Fact [S1].", ["S1"]),
        ("Fact [S1][S2].", "Fact [S1][S2].", ["S1", "S2"]),
        ("Fact [S1, S2].", "Fact [S1][S2].", ["S1", "S2"]),
        ("Fact [S1,S2;S3].", "Fact [S1][S2][S3].", ["S1", "S2", "S3"]),
        ("Fact [S1 S2].", "Fact [S1][S2].", ["S1", "S2"]),
        ("Fact [S1, S1].", "Fact [S1].", ["S1"]),
        ("Fact [s1] [S01] [ S1 ]", "Fact [S1] [S1] [S1]", ["S1", "S1", "S1"]),
        ("Fact ［S1］ 【S2】 [Ｓ３]", "Fact [S1] [S2] [S3]", ["S1", "S2", "S3"]),
        ("Fact [S1-S3].", "Fact [S1][S2][S3].", ["S1", "S2", "S3"]),
        ("Fact [S2\u20139].", "Fact [S2][S3].", ["S2", "S3"]),
        ("[[S1]]", "[[S1]]", ["S1"]),
        ("(see [S1]) (source: ［S2］)", "(see [S1]) (source: [S2])", ["S1", "S2"]),
    ],
)
def test_a_supplied_source_is_resolved_to_its_normal_form(raw: str, shown: str, sids: list[str]) -> None:
    assert read(raw) == (shown, sids)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Wild [S99]. Zero [S0]. Minus [S-1].", "Wild. Zero. Minus."),
        ("[S99] Start", "Start"),
        ("one\n[S99] two", "one\ntwo"),
        ("word [S99] word", "word word"),
        ("word[S99] word", "word word"),
        ("end [S99]\nnext", "end\nnext"),
        ("end [S99][S0]!", "end!"),
        ("end [S99] [S0] .", "end ."),
        ("end [S7-S9]", "end"),
    ],
)
def test_a_marker_without_a_source_goes_with_the_blanks_before_it(raw: str, shown: str) -> None:
    assert read(raw) == (shown, [])


def test_of_a_mixed_group_the_supplied_sources_stay() -> None:
    reader = MarkerReader(SUPPLIED)
    assert reader.feed("a [S9, S2, S0].") == ["a", " ", Marker("S2"), "."]
    assert reader.dropped == 2


@pytest.mark.parametrize(
    "text",
    [
        r"escaped \[S1\] is text",
        "[1] [x] [S1, p. 4] [S1 and S2] [S] [] [Sx1]",
        "see [policy] or [the policy.pdf, page 2]",
        "a ] b [ c (source) (sources) (so what) (source of light",
        "`arr[S1]` and ``a ` [S99] b``",
        "```py\nx = m[S1]\n```",
        "~~~\n[S1]\n```\n[S99]\n~~~",
        "> ```\n> [S1]\n> ```",
        "- item\n  ```\n  [S1]\n  ```",
        "```\nnever closed [S1] [S99](x)",
        "~5 bar, ~~gone~~, a*b",
    ],
)
def test_code_and_plain_text_are_untouched_and_no_citation(text: str) -> None:
    assert read(text) == (text, [])


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("`a[S1]` [S1]", "`a[S1]` [S1]"),
        ("```x``` [S1]", "```x``` [S1]"),  # a span, though it begins like a fence
        ("```py\n[S2]\n```\n[S1]", "```py\n[S2]\n```\n[S1]"),
        ("a ` b [S2]\n[S1]", "a ` b [S2]\n[S1]"),  # an open span ends with its line
        (r"\`[S1]", r"\`[S1]"),
    ],
)
def test_code_ends_where_it_is_closed(raw: str, shown: str) -> None:
    assert read(raw) == (shown, ["S1"])


@pytest.mark.parametrize(
    ("raw", "shown", "sids"),
    [
        ("See [S1](http://127.0.0.1:9/x) now", "See [S1] now", ["S1"]),
        ('See [S1](http://h/x "A title") now', "See [S1] now", ["S1"]),
        ("See [S1](a(b)c) now", "See [S1] now", ["S1"]),
        ("See [S99](http://h/x) now", "See now", []),
        ("See [docs](https://h/x) and ![alt](data:image/png,x).", "See [docs] and ![alt].", []),
        ("See [S1](which is old) now", "See [S1](which is old) now", ["S1"]),
        ("See [x]([S1] says) [y]([S9])", "See [x]([S1] says) [y]()", ["S1"]),
        ("See [S1] (2024) now", "See [S1] (2024) now", ["S1"]),
        ("[S1]: http://h/x\nnext", "[S1]\nnext", ["S1"]),
        ("a [S1][x] b\n[x]: http://h/x\n[two words]: http://h/y end", "a [S1][x] b\n[x]\n[two words] end", ["S1"]),
        ("See [S1](http://h/~x/y_z) now", "See [S1] now", ["S1"]),
        ("[S1]: the manual says", "[S1]: the manual says", ["S1"]),
        ("a](http://h) b", "a](http://h) b", []),
    ],
)
def test_a_link_keeps_its_label_and_loses_its_address(raw: str, shown: str, sids: list[str]) -> None:
    assert read(raw) == (shown, sids)


def test_a_source_named_by_the_model_is_no_source() -> None:
    assert read("See [policy.pdf] and (Source: Company Handbook (2nd ed.), p. 4).") == (
        "See [unverified source] and (unverified source).",
        [],
    )


def test_a_named_source_that_was_supplied_stays_as_plain_text() -> None:
    assert read("So it is (Source: Pump Manual, p. 4).") == ("So it is (Source: Pump Manual, p. 4).", [])


@pytest.mark.parametrize("half", ["[", "[S", "[S1", "[S1, ", "[S1, S", "［S", "[S1-"])
def test_half_a_marker_at_the_end_goes_and_takes_nothing_with_it(half: str) -> None:
    assert read(f"Cost is {half}") == ("Cost is", [])
    assert read(f"Cost [S1]{half}") == ("Cost [S1]", ["S1"])


@pytest.mark.parametrize("rest", ["[pol", "(sour", "[S1](wh", "`a[S1", "\\", "(", "  "])
def test_any_other_unfinished_text_is_shown(rest: str) -> None:
    assert read(f"Cost is {rest}")[0] == f"Cost is {rest}"


@pytest.mark.parametrize("rest", ["(http://evil.exa", '(http://evil.example "Tit', ": http://ev"])
def test_half_an_address_at_the_end_goes(rest: str) -> None:
    assert read(f"[S1]{rest}") == ("[S1]", ["S1"])


@pytest.mark.parametrize("raw", ["[S[S99]1]", "[[S99]S1]", "[S[S98][S99]1]", "[S[S-1]1]", "[S1[S0]]"])
def test_removing_a_marker_never_makes_a_new_one(raw: str) -> None:
    shown, sids = read(raw)
    assert sids == []
    assert "[S1]" not in shown


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("[S1" + ", S1" * 200 + "]", HOLD_LIMIT),
        ("[" + "x" * 500, NAME_LIMIT + 2),
        ("(source: " + "x" * 500, NAME_LIMIT + 2),
        ("[S1](" + "x" * 5000, ADDRESS_LIMIT + 2),
        ("[S1]: " + "x" * 5000, ADDRESS_LIMIT + 2),
        ("x" + " " * 500, 40),
    ],
)
def test_every_hold_is_bounded(text: str, limit: int) -> None:
    reader, most = MarkerReader(SUPPLIED), 0
    for char in text:
        reader.feed(char)
        most = max(most, len(reader._hold) + len(reader._blanks))
    assert most <= limit


def test_what_is_too_long_for_a_marker_is_shown_whole() -> None:
    text = "[S1" + ", S1" * 200 + "] end."
    assert read(text) == (text, [])
