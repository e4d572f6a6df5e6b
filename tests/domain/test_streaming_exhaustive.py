"""Every way of cutting an answer, really every one: 0 leaks, one text, no event inside a marker, no wait worth naming.

An answer of n characters can be cut in 2^(n-1) ways. They share their beginnings: what follows depends only on the
state the stream is in, so it is enough to feed every piece [i, j) to every state that some cutting of the first i
characters leads to. The states are found by doing just that, so nothing is assumed about the machines.
"""

import random
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from domain.codeblocks import CodeTracker
from domain.grounding import MASK, masked, passage, sentence_spans, unsupported
from domain.markers import Marker, MarkerReader, Piece
from domain.naming import Naming, Scrubber, _Candidate
from domain.streaming import ALL_WITHHELD, AnswerStream
from domain.types import Cited, Evidence, TextDelta
from domain.withholding import ClaimGate
from tests.fakes import chunk

EVIDENCE = tuple(Evidence(f"S{i}", chunk(f"doc{i}#0-aa", f"Passage {i}.", title=f"Title {i}"), i, 5) for i in (1, 2))
PASSAGES = {one.sid: passage(one) for one in EVIDENCE}
TERMS = ("kaibrand", "red tide")
GUARD = Naming(TERMS)
ANSWERS, LONG_ANSWERS = 10_000, 300

# ---------------------------------------------------------------------------------------------- answers

LOOK_ALIKES = str.maketrans("aekdi", "аекԁі")
FULL_WIDTH = str.maketrans({chr(c): chr(c + 0xFEE0) for c in range(ord("a"), ord("z") + 1)})


def inside(term: str, rng: random.Random, what: str) -> str:
    at = rng.randrange(1, len(term))
    return term[:at] + what + term[at:]


def split_mark(term: str, rng: random.Random, mark: str) -> str:
    at = rng.randrange(1, len(term))
    return f"{mark}{term[:at]}{mark}{term[at:]}" if rng.random() < 0.5 else f"{term[:at]}{mark}{term[at:]}{mark}"


# Every disguise of case 25, and those that the machines themselves could open: markers, code, emphasis, escapes.
DISGUISES: tuple[Callable[[str, random.Random], str], ...] = (
    lambda term, rng: term,
    lambda term, rng: term.title(),
    lambda term, rng: term.upper() + "!",
    lambda term, rng: inside(term, rng, "\u200b"),
    lambda term, rng: inside(term, rng, "\u00ad"),
    lambda term, rng: inside(term, rng, "-\n"),
    lambda term, rng: inside(term, rng, "\u2060\ufeff"),
    lambda term, rng: inside(term, rng, "\u0301"),
    lambda term, rng: inside(term, rng, "\\"),
    lambda term, rng: inside(term, rng, "[S9]"),
    lambda term, rng: inside(term, rng, "[S1]"),
    lambda term, rng: inside(term, rng, "[S9](x)"),
    lambda term, rng: term.translate(FULL_WIDTH),
    lambda term, rng: term.translate(LOOK_ALIKES),
    lambda term, rng: split_mark(term, rng, "**"),
    lambda term, rng: split_mark(term, rng, "`"),
    lambda term, rng: split_mark(term, rng, "~"),
    lambda term, rng: f"`{term}`",
    lambda term, rng: term.replace(" ", "  "),
    lambda term, rng: term.replace(" ", " [S9] "),
)
PARTS = (
    "[S1]", "[S2]", "[S1, S2]", "[S9]", "[S1-2]", "[s01]", "［S1］", "【S2】", "[S", "[", "]", "][", "](", ")", "(/x)",
    "](http://h/x)", "[a](/b)", "(source: q)", "(Source: Title 1)", "[p.pdf]", ": /x", "`", "``", "```", "\n",
    "\n```\n", "~~~", " ", "  ", ". ", ", ", "\\", "\\[S1\\]", "a", "Word", "kai", "brand", "kaiser", "red", " tide",
    "redwood", "*", "**", "_", "-", "-\n", "\u200b", "1", "S1", "3.5", "é", "潮",
)  # fmt: skip


def short_answer(rng: random.Random) -> str:
    """Up to 28 characters in which anything may stand beside anything."""
    text = ""
    while len(text) < 5 or rng.random() < 0.35:
        if rng.random() < 0.25:
            text += rng.choice(DISGUISES)(rng.choice(TERMS), rng)
        else:
            text += rng.choice(PARTS)
    return text[:28]


CLAIMS = (
    "It is 9 [S1].", "It is 1 [S1].", "Kai [S2]!", "Passage 2 [S2].", "9 [S1]", "X 7. ", "Mr. 4 [S1]", "Ada Moon.",
    "第九[S1]。", "[S1]. B",
)  # fmt: skip


def claiming_answer(rng: random.Random) -> str:
    """Up to 26 characters with claims that the sources state, and with claims that they do not."""
    text = ""
    while len(text) < 12 or rng.random() < 0.4:
        text += rng.choice(CLAIMS) if rng.random() < 0.6 else rng.choice(PARTS)
        text += " " if rng.random() < 0.4 else ""
    return text[:26]


def long_answer(rng: random.Random) -> str:
    return " ".join(short_answer(rng) for _ in range(rng.randint(6, 20)))


# ---------------------------------------------------------------------------------------------- an oracle for leaks

_IGNORED = re.compile(r"[*_~`\\]")
_BROKEN = re.compile(r"[-\u2010\u2011]\s*")
_NAMES = re.compile("|".join(term.replace(" ", r"\s*") for term in TERMS))
_BACK = str.maketrans("аекԁі", "aekdi")


def leaks(text: str) -> bool:
    """True when a reader finds a name in `text`: written another way than the guard, on the whole text at once."""
    seen = (c for c in unicodedata.normalize("NFKD", text) if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)
    plain = _BROKEN.sub("", _IGNORED.sub("", "".join(seen)))
    return _NAMES.search(plain.casefold().translate(_BACK)) is not None


_UNSEEN = ("Cf", "Cc", "Mn")

# ---------------------------------------------------------------------------------------------- states

State = tuple[Any, ...]
_READER = (
    "_blanks", "_hold", "_opener", "_open_brackets", "_escaped", "_in_half_marker", "_fresh", "_label_at_start",
    "_just_dropped", "dropped",
)  # fmt: skip
_CODE = ("_tick", "_ticks", "_opened", "_fence_possible", "_line_start", "_escaped", "_line")
_SCRUBBER = ("_base", "_fill", "_after_hyphen", "_covered_to", "found")
_GATE = ("_text", "_may_end", "_look_at", "_before", "_fence", "_mid_line", "withheld")
_KEPT_ELSEWHERE = {
    ClaimGate: {"_passages", "_held"},
    MarkerReader: {"_sids", "_titles", "_out", "_state", "_code"},
    CodeTracker: {"_state"},
    Scrubber: {"_naming", "_held", "_candidates", "_ends", "_kept", "_out"},
    AnswerStream: {"_evidence", "_naming", "_reader", "_scrubber", "_gate", "_shown", "_citations", "_closed"},
}


def test_a_state_holds_everything_that_the_machines_remember() -> None:
    stream = AnswerStream(EVIDENCE, GUARD, withhold=True)
    for machine, copied in (
        (stream, ()),
        (stream._reader, _READER),
        (stream._reader._code, _CODE),
        (stream._scrubber, _SCRUBBER),
        (stream._gate, _GATE),
    ):
        assert set(vars(machine)) == _KEPT_ELSEWHERE[type(machine)] | set(copied)


class Replay:
    """One stream that can be put back into any state it was in; with `withhold`, one that holds claims back."""

    def __init__(self, withhold: bool = False) -> None:
        self.stream = AnswerStream(EVIDENCE, GUARD, withhold)
        self._gate = self.stream._gate
        self._gated = vars(self._gate) if self._gate else {}
        self._reader, self._code = self.stream._reader, self.stream._reader._code
        self._scrubber = self.stream._scrubber
        self._reads, self._codes, self._scrubs = vars(self._reader), vars(self._code), vars(self._scrubber)
        self.start = self.state()

    def state(self) -> State:
        """What is remembered between two pieces. Nothing may wait in an outbox then."""
        assert not self._reader._out
        assert not self._scrubber._out
        scrubber = self._scrubber
        return (
            tuple(map(self._reads.__getitem__, _READER)),
            self._reader._state.__name__,
            tuple(map(self._codes.__getitem__, _CODE)),
            self._code._state.__name__,
            tuple(map(self._scrubs.__getitem__, _SCRUBBER)),
            tuple(scrubber._held),
            tuple((c.term, c.start, c.at) for c in scrubber._candidates),
            tuple(scrubber._ends.items()),
            tuple(scrubber._kept),
            tuple(self.stream._citations.items()),
            (tuple(map(self._gated.__getitem__, _GATE)), tuple(self._gate._held)) if self._gate else None,
        )

    def put(self, state: State, shown: str) -> None:
        reads, reading, codes, coding, scrubs, held, candidates, ends, kept, citations, gate = state
        self._reads.update(zip(_READER, reads, strict=True))
        self._reader._state = getattr(self._reader, reading)
        self._codes.update(zip(_CODE, codes, strict=True))
        self._code._state = getattr(self._code, coding)
        self._scrubs.update(zip(_SCRUBBER, scrubs, strict=True))
        scrubber = self._scrubber
        scrubber._held.clear()
        scrubber._held.extend(held)
        scrubber._candidates = [_Candidate(*candidate) for candidate in candidates]
        scrubber._ends = dict(ends)
        scrubber._kept = list(kept)
        self.stream._citations = dict(citations)
        self.stream._shown = [shown] if shown else []
        self.stream._closed = False
        if self._gate:
            gated, waiting = gate
            self._gated.update(zip(_GATE, gated, strict=True))
            self._gate._held = list(waiting)


class Expected:
    """An answer as it is without streaming, and what any stream of it must look like from any point on.

    With `withhold` it is without the sentences that its sources do not state, each judged in the whole answer.
    """

    def __init__(self, answer: str, withhold: bool = False) -> None:
        reader, scrubber = (
            MarkerReader([e.sid for e in EVIDENCE], [e.chunk.source.title for e in EVIDENCE]),
            Scrubber(GUARD),
        )
        pieces = scrubber.feed(reader.feed(answer)) + scrubber.feed(reader.close()) + scrubber.close()
        self.withheld = 0
        if withhold:
            pieces, self.withheld = supported(pieces)
        self.text, self.cited_at = "", dict[int, str]()
        self.inside = set[int]()
        unmarked = ""
        for piece in pieces:
            if isinstance(piece, Marker):
                self.inside.update(range(len(self.text) + 1, len(self.text) + len(piece.text)))
                self.text += piece.text
                if piece.sid not in self.cited_at.values():
                    self.cited_at[len(self.text)] = piece.sid
            else:
                self.text += piece
                unmarked += piece
        assert not leaks(unmarked), f"{answer!r} shows a name: {self.text!r}"

    def follow(self, at: int, events: list[TextDelta | Cited]) -> int:
        """The place in the text after `events`, which begin at `at` and must be what the text has there."""
        for event in events:
            if isinstance(event, TextDelta):
                after = at + len(event.text)
                assert event.text
                assert self.text[at:after] == event.text
                assert after not in self.inside
                at = after
            else:
                assert self.cited_at[at] == event.citation.sid
        return at


def supported(pieces: Sequence[Piece]) -> tuple[list[Piece], int]:
    """The pieces of a whole answer without the sentences that `check` finds wrong, and how many those are: without a
    stream, and without the machine that withholds.
    """
    text = "".join(piece.text if isinstance(piece, Marker) else piece for piece in pieces)
    marked = {}  # place in the text: the marker that begins there
    at = 0
    for piece in pieces:
        if isinstance(piece, Marker):
            marked[at] = piece
        at += len(piece.text) if isinstance(piece, Marker) else len(piece)
    prose, kept, withheld = masked(text), list[Piece](), 0
    for begin, end in sentence_spans(prose):
        if unsupported(prose[begin:end].replace(MASK, ""), PASSAGES):
            withheld += 1
            continue
        at = begin
        while at < end:
            piece = marked.get(at) or text[at : min([end, *(place for place in marked if at < place)])]
            kept.append(piece)
            at += len(piece.text) if isinstance(piece, Marker) else len(piece)
    shown = any(piece.text if isinstance(piece, Marker) else piece.strip() for piece in kept)
    return (kept if shown or not withheld else [*kept, ALL_WITHHELD]), withheld


def every_cutting(answer: str, replay: Replay, withhold: bool = False) -> int:
    """Feeds every piece to every state that can be reached; returns how many feeds that took."""
    expected, feeds, n = Expected(answer, withhold), 0, len(answer)
    reached: list[dict[tuple[State, int], None]] = [{} for _ in range(n + 1)]
    reached[0][replay.start, 0] = None
    stream = replay.stream
    for i in range(n):
        for state, shown in reached[i]:
            for j in range(i + 1, n + 1):
                replay.put(state, expected.text[:shown])
                at = expected.follow(shown, stream.feed(answer[i:j]))
                reached[j][replay.state(), at] = None
                feeds += 1
    for state, shown in reached[n]:
        replay.put(state, expected.text[:shown])
        assert expected.follow(shown, stream.close()) == len(expected.text)
        assert stream.withheld == expected.withheld
        assert [citation.sid for citation in stream.citations] == list(expected.cited_at.values())
    return feeds


def corpus() -> list[str]:
    rng = random.Random(25)
    return [short_answer(rng) for _ in range(ANSWERS)]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_cutting_of_ten_thousand_answers_leaks_nothing_and_reads_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replay, began, answers = Replay(), time.process_time(), corpus()
    feeds = sum(every_cutting(answer, replay) for answer in answers)
    ways = sum(2 ** (len(answer) - 1) for answer in answers)
    with capsys.disabled():
        print(
            f"\n{len(answers):,} answers, all {ways:.2e} cuttings by {feeds:,} feeds, "
            f"{time.process_time() - began:.0f} s of CPU"
        )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_cutting_withholds_the_same_claims_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Every second answer of the corpus, for the time it takes, and 500 in which most claims are wrong."""
    rng, replay, began = random.Random(29), Replay(withhold=True), time.process_time()
    answers = corpus()[::2] + [claiming_answer(rng) for _ in range(500)]
    feeds = sum(every_cutting(answer, replay, withhold=True) for answer in answers)
    withheld = sum(Expected(answer, withhold=True).withheld > 0 for answer in answers)
    assert withheld > 400
    with capsys.disabled():
        print(
            f"\n{len(answers):,} answers, {withheld:,} of them with claims withheld, by {feeds:,} feeds, "
            f"{time.process_time() - began:.0f} s of CPU"
        )


@pytest.mark.parametrize("made", [short_answer, claiming_answer])
def test_every_cutting_of_some_answers_withholds_the_same(made: Callable[[random.Random], str]) -> None:
    rng, replay = random.Random(8), Replay(withhold=True)
    for _ in range(20):
        every_cutting(made(rng), replay, withhold=True)


def test_every_cutting_of_some_answers_leaks_nothing_and_reads_the_same() -> None:
    rng, replay = random.Random(7), Replay()
    for _ in range(100):
        every_cutting(short_answer(rng), replay)


def random_cutting(text: str, rng: random.Random) -> Iterator[str]:
    longest = rng.choice((1, 2, 4, 9, 40))
    at = 0
    while at < len(text):
        size = rng.randint(1, longest)
        yield text[at : at + size]
        at += size


def test_random_cuttings_of_long_answers_leak_nothing_and_read_the_same() -> None:
    rng = random.Random(11)
    for _ in range(LONG_ANSWERS):
        answer = long_answer(rng)
        expected = Expected(answer)
        for _ in range(6):
            stream, at = AnswerStream(EVIDENCE, GUARD), 0
            for piece in random_cutting(answer, rng):
                at = expected.follow(at, stream.feed(piece))
            assert expected.follow(at, stream.close()) == len(expected.text) == len(stream.text)
            assert [citation.sid for citation in stream.citations] == list(expected.cited_at.values())


# ---------------------------------------------------------------------------------------------- delay

WORDS = "pump holds forty units and its oil is changed after each season by the crew [S1]. See [S2]. Kai red, ice"


def tokens(rng: random.Random) -> list[str]:
    """An ordinary answer in pieces as models send them: words with the blank before them, markers in three parts."""
    return re.findall(r" ?\w+| ?[^\w ]", " ".join(["The", *rng.choices(WORDS.split(), k=60)]))


def test_the_first_visible_text_waits_for_one_token_at_most_and_for_no_measurable_time() -> None:
    rng, spent = random.Random(3), list[float]()
    for _ in range(500):
        first, second, *_ = tokens(rng)
        stream, began = AnswerStream(EVIDENCE, GUARD), time.thread_time()
        events = stream.feed(first) or stream.feed(second)
        spent.append(time.thread_time() - began)
        assert events
    assert sorted(spent)[len(spent) * 99 // 100] < 0.005  # the garbage collector may take its turn in one of them


def test_a_token_costs_microseconds(capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(5)
    answers = [tokens(rng) for _ in range(200)]
    began = time.thread_time()
    for answer in answers:
        stream = AnswerStream(EVIDENCE, GUARD)
        for token in answer:
            stream.feed(token)
        stream.close()
    a_token = (time.thread_time() - began) / sum(map(len, answers))
    with capsys.disabled():
        print(f"\n{a_token * 1e6:.1f} microseconds of CPU per token")
    assert a_token < 0.001  # a model takes ten times as long for one; some 20 microseconds are usual
