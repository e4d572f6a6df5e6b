"""The stream as the reader sees it: the same for every chunking, nothing withdrawn, no event inside a marker."""

import random
import re
from collections.abc import Iterable, Iterator

import pytest

from domain.markers import Marker
from domain.naming import REDACTED, Naming
from domain.streaming import AnswerStream
from domain.types import Citation, Cited, Evidence, TextDelta
from tests.fakes import chunk

EVIDENCE = tuple(
    Evidence(f"S{i}", chunk(f"doc{i}#0-aa", f"Passage {i} on Zanzibrand.", title=f"Title {i}"), i, 5) for i in (1, 2, 3)
)
GUARD = Naming(["zanzibrand", "red tide"])

ANSWERS = [
    "Fact one [S1][S2]. Done.",
    "Fact [S1] and more [S2, S1].",
    "Cost is [S1",
    "Known fact [S1]. Wild fact [S99]. Zero [S0]. Negative [S-1].",
    "Use `arr[S1]` in code:\n```py\nx = m[S1]\n```\nbut cite this [S1].",
    "See [S1](http://127.0.0.1:9/x) and [policy.pdf] and (Source: Company Handbook, p. 4).",
    "\\[S1\\] and ［S1］ and [s1] and [S01]",
    "We sell zanzibrand here [S2].",
    "A **zan**zibrand, a zan-\nzibrand, a zan[S99]zibrand, a zan[S1]zibrand!",
    "[zan](http://h/x)zibrand and red  tide, redwood tide [S3].",
    "zanzi zanzibar brand [S1] zan",
    "[S1]: http://h/x\n[S2] text (source: x) `zanzibrand` [S1](",
    "",
    "   ",
]


def play(chunks: Iterable[str]) -> tuple[AnswerStream, list[TextDelta | Cited]]:
    stream = AnswerStream(EVIDENCE, GUARD)
    events: list[TextDelta | Cited] = []
    for piece in chunks:
        events += stream.feed(piece)
    return stream, events + stream.close()


def joined(events: Iterable[TextDelta | Cited]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def cited(events: Iterable[TextDelta | Cited]) -> tuple[Citation, ...]:
    return tuple(e.citation for e in events if isinstance(e, Cited))


def cuts(text: str, rng: random.Random) -> Iterator[list[str]]:
    """Every cut in two, every equal chunk size up to eight, and ten random ones."""
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]
    for size in range(1, 9):
        yield [text[i : i + size] for i in range(0, len(text), size)]
    for _ in range(10):
        marks = sorted(rng.sample(range(len(text) + 1), min(4, len(text))))
        yield [text[a:b] for a, b in zip([0, *marks], [*marks, len(text)], strict=True)]


def random_answer(rng: random.Random) -> str:
    parts = (
        "[S1]", "[S2]", "[S1, S3]", "[S9]", "[S", "[", "]", "](", ")", "(http://h/x)", "`", "```", "\n", " ", " ", ". ",
        "zan", "zibrand", "zanzibrand", "z", "*", "**", "-\n", "\u200b", "red", " tide", "word", "\\", "(source: x)",
        ":", "~~~", "S1", "1", "，", "［", "］",
    )  # fmt: skip
    return "".join(rng.choice(parts) for _ in range(rng.randint(1, 14)))


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_result_is_the_same_for_every_chunking(answer: str) -> None:
    whole, events = play([answer])
    for chunks in cuts(answer, random.Random(1)):
        stream, parts = play(chunks)
        assert (stream.text, stream.citations, stream.dropped) == (whole.text, whole.citations, whole.dropped)
        assert (joined(parts), cited(parts)) == (joined(events), cited(events))


def test_random_answers_are_the_same_for_every_chunking_and_leak_nothing() -> None:
    rng = random.Random(2)
    for _ in range(400):
        answer = random_answer(rng)
        whole, _ = play([answer])
        assert not GUARD.contains(whole.text)
        for chunks in ([*answer], *(c for c in cuts(answer, rng) if rng.random() < 0.3)):
            stream, events = play(chunks)
            assert (stream.text, stream.citations) == (whole.text, whole.citations)
            check_events(stream, events)


def check_events(stream: AnswerStream, events: list[TextDelta | Cited]) -> None:
    """What holds for any stream of events, whatever the model wrote."""
    assert joined(events) == stream.text
    assert cited(events) == stream.citations
    assert all(e.text for e in events if isinstance(e, TextDelta))
    shown = ""
    for before, event in zip([None, *events], events, strict=False):
        if isinstance(event, TextDelta):
            shown += event.text
        else:
            assert isinstance(before, TextDelta)
            assert before.text.endswith(f"[{event.citation.sid}]")
        assert not GUARD.contains(shown)
    assert len(set(stream.citations)) == len(stream.citations)
    assert all(f"[{c.sid}]" in stream.text for c in stream.citations)


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_event_ends_inside_a_marker(answer: str) -> None:
    stream, _ = play([answer])
    inside = {i for m in re.finditer(r"\[S\d\]", stream.text) for i in range(m.start() + 1, m.end())}
    code = {i for m in re.finditer(r"`[^`]*`|\\\[S1", stream.text) for i in range(m.start(), m.end())}
    for chunks in cuts(answer, random.Random(3)):
        at = 0
        for event in play(chunks)[1]:
            at += len(event.text) if isinstance(event, TextDelta) else 0
            assert at not in inside - code


def test_consecutive_markers_may_arrive_in_any_pieces() -> None:
    _, events = play(["Fact one [", "S1", "][", "S2", "]. Done."])
    assert joined(events) == "Fact one [S1][S2]. Done."
    assert [c.sid for c in cited(events)] == ["S1", "S2"]


def test_a_source_is_cited_once_right_after_its_first_marker() -> None:
    _, events = play(["a [S2] b [S1] c [S2]"])
    one, two = cited(events)
    assert events == [
        TextDelta("a [S2]"),
        Cited(one),
        TextDelta(" b [S1]"),
        Cited(two),
        TextDelta(" c [S2]"),
    ]
    assert (one.sid, two.sid) == ("S2", "S1")


def test_a_name_split_over_chunks_never_crosses_the_wire() -> None:
    _, events = play(["We sell za", "nzib", "ra", "nd here."])
    assert events == [TextDelta("We sell "), TextDelta(f"{REDACTED} here.")]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("zan[S99]zibrand", REDACTED),
        ("zan[S1]zibrand", f"{REDACTED}[S1]"),
        ("[zan](http://h/x)zibrand", "[zan]zibrand"),  # two words to the reader
        ("`zanzibrand`", f"`{REDACTED}`"),
        ("[zanzibrand.pdf]", "[unverified source]"),
        ("red[S9] [S8]tide", REDACTED),
    ],
)
def test_a_name_is_found_across_whatever_is_removed(raw: str, shown: str) -> None:
    assert play([raw])[0].text == shown


def test_a_marker_held_with_a_name_is_cited_when_it_is_shown() -> None:
    stream = AnswerStream(EVIDENCE, GUARD)
    assert stream.feed("za[S1]") == []
    assert stream.citations == ()
    events = stream.feed("x")
    assert joined(events) == "za[S1]x"
    assert [c.sid for c in stream.citations] == ["S1"]


def test_citations_are_scrubbed() -> None:
    assert play(["a [S1]"])[0].citations[0].quote == f"Passage 1 on {REDACTED}."


def test_plain_text_goes_out_with_the_chunk_that_brought_it() -> None:
    stream = AnswerStream(EVIDENCE, GUARD)
    for token in ("The", " pump", " holds", " 40", " units", ".", "\n", "Next"):
        assert joined(stream.feed(token)) == token


def test_closing_twice_gives_nothing_and_feeding_after_it_is_refused() -> None:
    stream, _ = play(["a"])
    assert stream.close() == []
    with pytest.raises(ValueError, match="closed"):
        stream.feed("b")


def test_without_evidence_and_terms_only_markers_go() -> None:
    stream = AnswerStream((), Naming([]))
    events = stream.feed("zanzibrand [S1].") + stream.close()
    assert joined(events) == "zanzibrand."
    assert (stream.citations, stream.dropped) == ((), 1)


@pytest.mark.parametrize("piece", ["zanzibran", "[S1, ", "[", "(source:", "`", "[S1](", "z*", " ", "z\u200b", "[S9]"])
def test_hostile_repetition_takes_linear_time_and_memory(piece: str) -> None:
    # 20,000 pieces take well under a second each; quadratic work would take minutes and meet the time limit.
    stream = AnswerStream(EVIDENCE, GUARD)
    for _ in range(200):
        stream.feed(piece * 100)
        assert len(stream._scrubber._held) < 1000
    stream.close()


def test_a_marker_prints_in_its_normal_form() -> None:
    assert Marker("S7").text == "[S7]"
