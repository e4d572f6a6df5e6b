"""Claims without support never reach the reader, however the answer is cut; everything else does."""

import random

import pytest

from domain.naming import Naming
from domain.streaming import ALL_WITHHELD, AnswerStream
from domain.types import Cited, Evidence, TextDelta
from domain.withholding import LONGEST_SENTENCE, ClaimGate
from tests.fakes import chunk

PUMP = (
    Evidence("S1", chunk("p#0-aa", "The P3 holds 1,200 kg. Ines Treloar signed for it.", title="Pump P3"), 1, 5),
    Evidence("S2", chunk("q#0-aa", "The lock was opened on 3 April 2023.", title="The lock"), 1, 5),
)
PARTS = (
    "It holds 1,200 kg [S1].", "It holds 9 kg [S1].", "The lock opened in 2023 [S2]!", "Ada Moon signed [S1].", " ",
    " ", "\n", "\n- ", "Dr. Moon is well.", "`x. Y`", "`", "```\n7 kg [S1]. Z\n```\n", "# Head 9 [S1]\n", "[S1]",
    "~~~\n",    "no stop", "e.g. 9 t [S2]", " B. C", "第九[S1]。", ".", "?", "...",
)  # fmt: skip


def play(pieces: list[str]) -> AnswerStream:
    stream = AnswerStream(PUMP, Naming(["moonraker"]), withhold=True)
    events: list[TextDelta | Cited] = []
    for piece in pieces:
        events += stream.feed(piece)
    events += stream.close()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == stream.text
    assert tuple(event.citation for event in events if isinstance(event, Cited)) == stream.citations
    return stream


@pytest.mark.parametrize(
    ("raw", "shown", "withheld"),
    [
        ("It holds 1,200 kg [S1]. It holds 9 kg [S1]. It stands.", "It holds 1,200 kg [S1]. It stands.", 1),
        ("It holds 9 kg [S1]. It stands.", " It stands.", 1),
        ("- P3 holds 9 kg [S1]\n- P3 holds 1,200 kg [S1]\n", "- P3 holds 1,200 kg [S1]\n", 1),
        ("Run:\n```\nx = 9  # [S1]. Done\n```\nThe lock holds 9 kg [S2].", "Run:\n```\nx = 9  # [S1]. Done\n```\n", 1),
        ("It holds 9 kg.", "It holds 9 kg.", 0),  # cites nothing: that is grounding's business
    ],
)
def test_a_claim_that_its_source_does_not_state_is_not_shown(raw: str, shown: str, withheld: int) -> None:
    stream = play([raw])
    assert (stream.text, stream.withheld) == (shown, withheld)


def test_a_source_that_only_a_withheld_claim_cites_is_not_listed() -> None:
    assert [c.sid for c in play(["The lock holds 9 kg [S2]. It holds 1,200 kg [S1]."]).citations] == ["S1"]


def test_when_nothing_is_left_the_answer_says_so() -> None:
    stream = play(["It holds 9 kg [S1]."])
    assert (stream.text, stream.emptied) == (ALL_WITHHELD, True)
    assert not play([" "]).emptied


def test_a_sentence_is_shown_as_soon_as_the_next_has_begun() -> None:
    stream = AnswerStream(PUMP, Naming([]), withhold=True)
    assert stream.feed("It holds 1,200 kg [S1]. ") == []
    assert stream.text == ""
    stream.feed("It")
    assert stream.text == "It holds 1,200 kg [S1]."


def test_every_cut_shows_the_same() -> None:
    rng = random.Random(4)
    for _ in range(60):
        answer = "".join(rng.choices(PARTS, k=rng.randint(1, 9)))
        whole = play([answer])
        for cut in [*range(1, len(answer), 3), 0]:
            pieces = [answer[:cut], answer[cut:]] if cut else list(answer)
            stream = play(pieces)
            assert (stream.text, stream.citations, stream.withheld) == (whole.text, whole.citations, whole.withheld)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["a. ", "a", "`", "x.\n```\n", "\n", "9 [S1]", ". " * 50])
def test_a_sentence_without_end_is_held_up_to_a_limit_and_cuts_do_not_matter(piece: str) -> None:
    answer = piece * (5 * LONGEST_SENTENCE // 4 // len(piece))
    gate = ClaimGate({"S1": "nothing"})
    one_by_one = []
    for char in answer:
        one_by_one += gate.feed([char])
        assert len(gate._text) <= LONGEST_SENTENCE
    one_by_one += gate.close()
    at_once = ClaimGate({"S1": "nothing"})
    assert "".join(map(str, [*at_once.feed([answer]), *at_once.close()])) == "".join(map(str, one_by_one))
