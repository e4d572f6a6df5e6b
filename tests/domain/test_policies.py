"""The rules of an answer, one claim each, on data small enough to check on paper."""

import json
from dataclasses import replace

import pytest

from domain.errors import BadRequest, TooLong
from domain.naming import REDACTED, Naming
from domain.policies import check_question, cite, coverage, join_pool, revalidate, status, trigger
from domain.types import Chunk, Citation, Evidence, Grounding, PoolEntry, SourceRef, Status, StopReason
from tests.fakes import RULES, chunk, hits

NOBODY = Naming([])
GUARD = Naming(["zanzibrand"])
A, B, C = (chunk(f"{name}#0-aa", f"Passage {name}.") for name in "abc")


# ---------------------------------------------------------------------------------------------- the question


def test_a_question_loses_the_unseen_characters_around_it_only() -> None:
    assert check_question("\u200b \n How  much?\n\ufeff\x00", RULES) == "How  much?"


@pytest.mark.parametrize(
    "blank", ["", "  \n\t", "\u200b\u200d\ufeff", "\x00\x07\x1b", "\u00ad \u2060", "\u3164", "\ue000"]
)
def test_a_question_without_a_visible_character_is_refused(blank: str) -> None:
    with pytest.raises(BadRequest, match="blank") as caught:
        check_question(blank, RULES)
    assert caught.value.field == "question"


def test_a_question_over_the_limit_is_refused_with_the_limit() -> None:
    assert check_question(" " + "x" * RULES.max_question_chars, RULES)
    with pytest.raises(TooLong, match=f"{RULES.max_question_chars + 1} characters, at most {RULES.max_question_chars}"):
        check_question("x" * (RULES.max_question_chars + 1), RULES)


# ---------------------------------------------------------------------------------------------- a second round


def test_good_hits_trigger_nothing() -> None:
    assert trigger(hits(A, B, C, cosine=0.31), replace(RULES, trigger_min_chunks=3), 1, deeper=False) == ""


def test_asking_to_go_deeper_triggers_a_second_round() -> None:
    assert trigger(hits(A, cosine=0.9), RULES, 1, deeper=True) == "asked to go deeper"


def test_a_best_cosine_under_the_bar_triggers() -> None:
    thin = (*hits(A, cosine=0.21), *hits(B, cosine=None), *hits(C, cosine=0.1))
    assert trigger(thin, RULES, 1, deeper=False) == "best cosine 0.21 is under 0.30"


def test_a_cosine_on_the_bar_does_not_trigger() -> None:
    assert trigger(hits(A, cosine=0.3), RULES, 1, deeper=False) == ""


def test_too_few_different_chunks_trigger() -> None:
    rules = replace(RULES, trigger_min_chunks=3)
    assert trigger(hits(A, B, A), rules, 1, deeper=False) == "2 chunks are fewer than 3"
    assert trigger(hits(A), rules, 1, deeper=False) == "1 chunk is fewer than 3"
    assert trigger((), rules, 1, deeper=False) == "0 chunks are fewer than 3"


def test_without_any_cosine_only_the_count_is_judged() -> None:
    assert trigger(hits(A, B, cosine=None), replace(RULES, trigger_min_chunks=2), 1, deeper=False) == ""


def test_no_round_follows_the_last_one() -> None:
    assert trigger((), RULES, RULES.max_rounds, deeper=True) == ""


# ---------------------------------------------------------------------------------------------- coverage


def test_coverage_is_the_share_of_content_words_that_occur() -> None:
    # content words: tide, turn, harbour; "When", "does", "the", "in" are words of any passage
    question = "When does the tide turn in the harbour?"
    assert coverage(question, ["The tide rises.", "A harbour."]) == pytest.approx(2 / 3)
    assert coverage(question, ["Tides turned."]) == 0.0  # whole words as they stand
    assert coverage(question, []) == 0.0
    assert coverage("tide tide tide pump", ["tide"]) == 0.5  # distinct words


def test_coverage_folds_case_width_and_accents() -> None:
    assert coverage("ÜBERFLUTUNG café Ｐ３", ["uberflutung", "CAFÉ", "p3"]) == 1.0
    assert coverage("Straße", ["STRASSE"]) == 1.0


def test_coverage_reads_text_without_blanks_by_characters() -> None:
    assert coverage("水位表", ["水位"]) == pytest.approx(2 / 3)
    assert coverage("P3水", ["P3 of the pump"]) == 0.5
    assert coverage("한국", ["한국어"]) == 1.0


@pytest.mark.parametrize("question", ["", "Why is it?", "?!", "_"])
def test_a_question_without_a_content_word_has_no_coverage(question: str) -> None:
    assert coverage(question, ["anything"]) is None


# ---------------------------------------------------------------------------------------------- the pool


def entries(*pairs: tuple[str, int]) -> tuple[PoolEntry, ...]:
    return tuple(PoolEntry(id_, turn) for id_, turn in pairs)


def test_new_chunks_are_appended_and_known_ones_keep_place_and_turn() -> None:
    joined = join_pool(entries(("a", 1), ("b", 1)), ["c", "a", "c"], turn=2, cap=4)
    assert joined.pool == entries(("a", 1), ("b", 1), ("c", 2))
    assert joined.evicted == ()


def test_above_the_cap_the_oldest_leave() -> None:
    joined = join_pool(entries(("a", 1), ("b", 1), ("c", 2)), ["d", "e"], turn=3, cap=4)
    assert joined.pool == entries(("b", 1), ("c", 2), ("d", 3), ("e", 3))
    assert joined.evicted == ("a",)


def test_of_more_new_chunks_than_the_cap_the_best_join() -> None:
    assert join_pool(entries(("z", 1)), list("abc"), turn=2, cap=2).pool == entries(("a", 2), ("b", 2))


def test_the_pool_never_exceeds_its_cap_and_never_repeats_a_chunk() -> None:
    pool: tuple[PoolEntry, ...] = ()
    for turn in range(1, 60):
        pool = join_pool(pool, [str(turn * 7 % n) for n in (5, 11, 31)], turn, cap=8).pool
        assert len(pool) <= 8
        assert len({e.chunk_id for e in pool}) == len(pool)


def test_a_client_pool_loses_unknown_chunks_and_duplicates() -> None:
    claimed = entries(("a", 1), ("gone", 1), ("b", 2), ("a", 3), ("secret", 2), ("c", 3))
    assert revalidate(claimed, {"a", "b", "c"}, cap=24) == entries(("a", 1), ("b", 2), ("c", 3))


def test_a_client_pool_over_the_cap_loses_its_oldest() -> None:
    claimed = entries(("a", 1), ("b", 2), ("c", 3))
    assert revalidate(claimed, ["a", "b", "c"], cap=2) == entries(("b", 2), ("c", 3))
    assert revalidate(claimed, ["a", "b", "c"], cap=0) == ()


def test_the_same_pool_entry_sent_twice_stays_once() -> None:
    one = PoolEntry("a", 1)
    assert revalidate([one, one], ["a"], cap=4) == (one,)


# ---------------------------------------------------------------------------------------------- citation


def evidence(**changes: str) -> Evidence:
    source = SourceRef("zanzibrand-7", "The Zanzibrand book", "https://library.example/7", "Zanzibrand kb", "2026-01")
    text = changes.pop("text", "Old ZANZIBRAND text.")
    made = Chunk("zanzibrand-7#0-aa", text, 0, "", replace(source, **changes), "harbour", frozenset({"public"}))
    return Evidence("S4", made, 3, 5)


def test_every_string_of_a_citation_is_scrubbed() -> None:
    made = cite(evidence(), GUARD)
    assert made == Citation(
        sid="S4",
        chunk_id=f"{REDACTED}-7#0-aa",
        doc_id=f"{REDACTED}-7",
        label=f"The {REDACTED} book",
        uri="https://library.example/7",
        quote=f"Old {REDACTED} text.",
        joined_turn=3,
        source=f"{REDACTED} kb",
        published="2026-01",
    )


def test_a_citation_without_a_title_is_labelled_by_its_document() -> None:
    assert cite(evidence(title=" "), NOBODY).label == "zanzibrand-7"


@pytest.mark.parametrize("uri", ["https://h/x", "http://h:8/x?y#z", "docs/a%20b.html", "/docs/a", "#part", ""])
def test_a_safe_address_is_kept(uri: str) -> None:
    assert cite(evidence(uri=uri), NOBODY).uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        " JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "s3://bucket/key",
        "//elsewhere.example/x",
        "\\\\elsewhere\\x",
        "/\\elsewhere",
        "http:///x",
        "https://user:word@h/x",
        "https://h/a b",
        "http://[h/x",
    ],
)
def test_an_unsafe_address_is_left_out(uri: str) -> None:
    assert cite(evidence(uri=uri), NOBODY).uri == ""


@pytest.mark.parametrize("uri", ["https://h/Zanzibrand.pdf", "https://h/zan%7Aibrand", "/z%61nzibrand"])
def test_an_address_with_a_name_in_it_is_left_out(uri: str) -> None:
    assert cite(evidence(uri=uri), GUARD).uri == ""


# ---------------------------------------------------------------------------------------------- status


@pytest.mark.parametrize(
    ("stop", "ended"),
    [
        (StopReason.END, Status.COMPLETE),
        (StopReason.LENGTH, Status.TRUNCATED),
        (StopReason.CONTEXT_FULL, Status.TRUNCATED),
        (StopReason.FILTERED, Status.BLOCKED),
        (StopReason.NOT_COVERED, Status.NO_SOURCES),
        (StopReason.TOOL, Status.INTERRUPTED),
        (StopReason.UNKNOWN, Status.INTERRUPTED),
    ],
)
def test_only_a_normal_end_is_complete(stop: StopReason, ended: Status) -> None:
    assert status(stop, "Some text.") is ended


def test_every_stop_reason_has_a_status() -> None:
    for stop in StopReason:
        assert isinstance(status(stop, "x"), Status)
        assert status(stop, "") is not Status.COMPLETE


@pytest.mark.parametrize("blank", ["", " \n", "\u200b", "[S1]"])
def test_a_blank_answer_is_never_complete(blank: str) -> None:
    assert status(StopReason.END, blank) is Status.REFUSED


def test_policies_leave_plain_values_behind() -> None:
    # Grounding and status go over the wire as they are.
    assert json.dumps([Grounding.PARTIAL, Status.NO_SOURCES]) == '["partial", "no_sources"]'
