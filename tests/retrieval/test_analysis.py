"""The analyser: what is findable by what."""

import hashlib
import threading
import time

import pytest

from retrieval.analysis import STAMP, analyse, weigh

SAMPLE = (
    "Pumps weren't running: ERR_CONN_RESET on AR-7, see CVE-2024-1234. C++ and C# need .NET, node.js v2.6.0 or 3.5, "
    "U.S. price 1,200.50, O'Brien’s café in Zürich, 1990–1995. हिन्दी Αθήνα ＡＢＣ１２３ pass\u200bword "
    "P3泵 冷却水の交換 วาล์ว 서버를"
)


def test_the_stamp_changes_with_the_output():
    digest = hashlib.sha256("\n".join(analyse(SAMPLE)).encode()).hexdigest()[:16]
    # An index answers only to the analyser it was built with: when the digest moves, STAMP has to move with it.
    assert (STAMP, digest) == ("tidegate-1", "9cbca048313b647c")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ERR_CONN_RESET", ["err_conn_reset", "err", "conn", "reset"]),
        ("CVE-2024-1234", ["cve-2024-1234", "cve", "2024", "1234"]),
        ("AR-7", ["ar-7", "ar", "7"]),
        ("C++", ["c++"]),
        ("C#", ["c#"]),
        (".NET", [".net", "net"]),
        ("node.js", ["node.js", "node", "js"]),
        ("AT&T", ["at&t"]),
        ("well-known", ["well-known", "well", "known"]),
        ("rock'n'roll", ["rock'n'roll", "rock", "roll"]),
        ("U.S.", ["u.s", "us"]),
    ],
)
def test_an_identifier_is_findable_whole_and_in_parts_with_the_whole_first(text: str, tokens: list[str]):
    assert analyse(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("3.5", ["3.5", "3"]),
        ("v2.6.0", ["v2.6.0", "2.6.0", "2.6", "2"]),
        ("python-3.11", ["python-3.11", "python", "3.11", "3"]),
        ("10.0.0.1", ["10.0.0.1", "10.0.0", "10.0", "10"]),
    ],
)
def test_a_dotted_number_is_findable_by_its_beginnings(text: str, tokens: list[str]):
    assert analyse(text) == tokens


@pytest.mark.parametrize("name", ["AR-7", "C++", "C#", "node.js", "v2.6.0", "ERR_CONN_RESET", "pump", "U.S"])
@pytest.mark.parametrize("around", ["{}.", "({})", "“{}”,", "see {}!", "{}?", "{}; so", "'{}'", "**{}**", "{}…"])
def test_sentence_punctuation_is_no_part_of_a_name(name: str, around: str):
    assert analyse(name)[0] in analyse(around.format(name))


def test_parts_of_identifiers_match_ordinary_words():
    assert set(analyse("conn resetting")) <= set(analyse("ERR_CONN_RESET"))


def test_identifiers_that_differ_in_a_symbol_or_a_digit_share_no_whole():
    assert len({analyse(name)[0] for name in ("C", "C++", "C#", "F#", "NET", ".NET", "AR-7", "AR-70", "seven")}) == 9


@pytest.mark.parametrize(
    "other", ["caf\u00e9", "cafe\u0301", "CAFÉ", "cafe", "ca\u00adf\u00e9", "caf\u200be\u0301", "ｃａｆé"]
)
def test_one_visible_word_is_one_token_however_it_is_encoded(other: str):
    assert analyse(other) == ["cafe"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ１２３", "abc123"),
        ("pass\u200bword", "password"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("Αθήνα", "ΑΘΗΝΑ"),
        ("AR‑7", "AR-7"),  # non-breaking hyphen
        ("O’Brien", "O'Brien"),
        ("ﬁlter", "filter"),
        ("Foo™ pump", "Foo pump"),
        ("1,200,000", "1200000"),
        ("12 m²", "12 m2"),
        ("10⁶", "10 6"),
        ("3½ inches", "3 1/2 inches"),
    ],
)
def test_two_spellings_of_one_thing_give_the_same_tokens(one: str, other: str):
    assert analyse(one) == analyse(other)


def test_accents_outside_latin_and_greek_keep_words_apart():
    assert analyse("мой") != analyse("мои")
    assert analyse("が") != analyse("か")


def test_text_without_spaces_becomes_overlapping_pairs():
    assert analyse("主阀门") == ["主阀", "阀门"]
    assert analyse("冷却水の") == ["冷却", "却水", "水の"]
    assert analyse("วาล์ว") == ["วา", "าล", "ล์", "์ว"]
    assert analyse("서버를") == ["서버", "버를"]


def test_a_lone_character_is_its_own_token_and_latin_glued_to_it_another():
    assert analyse("P3泵 冷却液") == ["p3", "泵", "冷却", "却液"]
    assert analyse("第3章") == ["第", "3", "章"]


def test_pairs_never_reach_over_punctuation_or_spaces():
    assert analyse("阀门。皮带 松紧") == ["阀门", "皮带", "松紧"]


def test_words_with_combining_vowels_stay_whole():
    assert analyse("हिन्दी में") == ["हिन्दी", "में"]


def test_ordinary_words_are_stemmed_and_identifiers_are_not_stemmed_as_wholes():
    assert analyse("Pumps overheated") == ["pump", "overh"]
    assert analyse("pumps-running") == ["pumps-running", "pump", "run"]


def test_possessives_and_contractions_leave_the_word():
    assert analyse("the pump's valve, the pumps' valves, the pump ’s valve") == ["pump", "valv"] * 3
    assert analyse("they've don't it's isn't") == []


@pytest.mark.parametrize(
    "text", ["", "   \t\r\n", "the of and", "THE OF AND", "What is it about?", "... --- !!! ###", "™ © ★"]
)
def test_text_without_a_word_to_find_has_no_tokens(text: str):
    assert analyse(text) == []


def test_words_that_are_names_too_are_no_stop_words():
    assert analyse("US May") == ["us", "may"]


def test_query_words_count_once_for_every_time_they_stand_there():
    assert weigh("pump valve Pumps", lambda token: True) == {"pump": 2.0, "valv": 1.0}


@pytest.mark.parametrize("query", ["AR-7", "ERR_CONN_RESET", "CVE-2024-1234", "v2.6.0", ".NET", "node.js"])
def test_parts_of_an_identifier_known_whole_count_a_quarter(query: str):
    whole, *parts = analyse(query)
    assert weigh(query, {whole}.__contains__) == {whole: 1.0} | dict.fromkeys(parts, 0.25)
    assert weigh(query, lambda token: False) == dict.fromkeys([whole, *parts], 1.0)


@pytest.mark.parametrize("query", ["open-source", "U.S.", "冷却水の", "o'clock pumps"])
def test_words_that_are_no_identifiers_count_whole_in_all_parts(query: str):
    assert weigh(query, lambda token: True) == dict.fromkeys(analyse(query), 1.0)


def test_repeated_words_repeat():
    assert analyse("pump Pump PUMP") == ["pump"] * 3


@pytest.mark.parametrize(
    "unit", ["a", "a.", "1.", "1,111", "a-", "_", ".", "'", "ह", "हि", "中", "e\u0301", "\u0301", "ﷺ", "<"]
)
def test_a_hundred_thousand_characters_take_little_time_and_give_short_tokens(unit: str):
    began = time.process_time()
    tokens = analyse(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 2  # generous: it takes 0.1 s of CPU
    assert max(map(len, tokens), default=0) <= 128


def test_threads_get_the_same_tokens():
    words = " ".join(f"running{chr(97 + i % 26)}{chr(97 + i // 26)}s" for i in range(600))
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(analyse(words))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == analyse(words) for result in results)
    assert len(results) == 4
