"""Which claims rest on what they cite, and what that makes of an answer."""

import pytest

from domain.grounding import check, ground, masked, prose_sentences
from domain.naming import Naming
from domain.policies import cite
from domain.types import Citation, Evidence, Grounding, StopReason, Unsupported
from tests.fakes import chunk

NOBODY = Naming([])
PACKED = tuple(Evidence(f"S{i}", chunk(f"{name}#0-aa", f"Passage {name}."), 1, 5) for i, name in enumerate("abc", 1))
PUMP = (
    Evidence("S1", chunk("p#0-aa", "The P3 holds 1,200 kg. Ines Treloar signed for it.", title="Pump P3"), 1, 5),
    Evidence("S2", chunk("q#0-aa", "The lock was opened on 3 April 2023.", title="The lock"), 1, 5),
)


def cited(*sids: str, packed: tuple[Evidence, ...] = PACKED) -> tuple[Citation, ...]:
    return tuple(cite(e, NOBODY) for e in packed if e.sid in sids)


@pytest.mark.parametrize(
    "text",
    [
        "The limit is 40 bar [S1].",
        "The limit is 40 bar. [S1]",
        "The limit is 3.5 bar, e.g. for P3 [S1]. It holds [S2]!",
        "Approx. 30 bar are safe, says Dr. Moon [S1].",
        "## Limits\nThe limit is 40 bar [S1].\n\nDoes that help?",
        "There are two:\n- one [S1]\n- two [S2]",
        "The limit is\nforty bar [S1].",
        "Use this [S1]:\n```py\nx = 1. Then more.\n```",
        "限界は四十です[S1]。交換は月曜日です。[S2]",
        'He said "stop." [S1] Then it stopped [S2].',
    ],
)
def test_an_answer_is_grounded_when_every_claim_carries_a_marker(text: str) -> None:
    assert ground(text, cited("S1", "S2"), PACKED, StopReason.END) is Grounding.GROUNDED


@pytest.mark.parametrize(
    "text",
    [
        "The limit is 40 bar [S1]. It never fails.",
        "It never fails. The limit is 40 bar [S1].",
        "One [S1]\nTwo",
        "- one [S1]\n- two",
        "One [S1]. Two `x[S2]`.",
        "限界は四十です[S1]。交換は月曜日です。",
        "One [S1]. Two [S3].",  # S3 did not resolve
    ],
)
def test_an_answer_is_partial_when_some_claim_carries_none(text: str) -> None:
    assert ground(text, cited("S1", "S2"), PACKED, StopReason.END) is Grounding.PARTIAL


def test_an_answer_without_evidence_marker_or_from_a_filter_is_ungrounded() -> None:
    text = "The limit is 40 bar [S1]."
    assert ground(text, cited("S1"), (), StopReason.END) is Grounding.UNGROUNDED
    assert ground(text, (), PACKED, StopReason.END) is Grounding.UNGROUNDED
    assert ground(text, cited("S1"), PACKED, StopReason.FILTERED) is Grounding.UNGROUNDED


def test_a_sentence_cut_off_is_not_held_against_the_others() -> None:
    text = "The limit is 40 bar [S1]. It also"
    assert ground(text, cited("S1"), PACKED, StopReason.LENGTH) is Grounding.GROUNDED
    assert ground(text, cited("S1"), PACKED, StopReason.END) is Grounding.PARTIAL


@pytest.mark.timeout(20)
def test_hostile_text_is_judged_in_linear_time() -> None:
    for text in ("`" * 50_000, ". " * 50_000, "[S1]" * 25_000, "\n" * 100_000, "``` `" * 20_000, "a" + " " * 100_000):
        ground(text, cited("S1"), PACKED, StopReason.END)


# ---------------------------------------------------------------------------------------------- support


@pytest.mark.parametrize(
    "text",
    [
        "The pump holds 1200 kilograms [S1].",
        "Pump P3 was signed for by Ines Treloar [S1]. The lock opened on 2023-04-03 [S2].",
        "In April 2023 the lock was opened, and P3 holds 1 200 kg [S1][S2].",
        "It was opened on 31 January 2026 [S1].",  # the passage is from that day
        "Nobody knows the 77 others.",  # cites nothing: not this check's business
    ],
)
def test_what_the_cited_passages_state_is_supported(text: str) -> None:
    assert check(text, PUMP) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It holds 1,300 kg [S1].", Unsupported("It holds 1,300 kg.", ("S1",), ("1,300 kg",))),
        ("It holds 1,200 kg [S2].", Unsupported("It holds 1,200 kg.", ("S2",), ("1,200 kg",))),
        (
            "It was opened on 4 April 2023 [S2].",
            Unsupported("It was opened on 4 April 2023.", ("S2",), ("4 April 2023",)),
        ),
        ("The P4 is heavy [S1].", Unsupported("The P4 is heavy.", ("S1",), ("P4",))),
        ("Ada Treloar signed [S1].", Unsupported("Ada Treloar signed.", ("S1",), ("Ada Treloar",))),
    ],
)
def test_what_they_do_not_state_is_named(text: str, found: Unsupported) -> None:
    assert check(f"The P3 is here [S1]. {text}", PUMP) == (found,)


def test_an_answer_with_a_claim_that_its_source_does_not_state_is_partial_and_one_of_such_claims_ungrounded() -> None:
    def grounding(text: str) -> Grounding:
        return ground(text, cited("S1", "S2", packed=PUMP), PUMP, StopReason.END, check(text, PUMP))

    assert grounding("The P3 holds 1,200 kg [S1].") is Grounding.GROUNDED
    assert grounding("The P3 holds 1,200 kg [S1]. The lock holds 7 kg [S2].") is Grounding.PARTIAL
    assert grounding("The P3 holds 7 kg [S1]. The lock holds 7 kg [S2].") is Grounding.UNGROUNDED
    assert grounding("The P3 holds 7 kg [S1]. It never fails.") is Grounding.UNGROUNDED


# ---------------------------------------------------------------------------------------------- sentences


def test_code_and_headings_are_masked_where_they_stand() -> None:
    text = "# Head\nUse `x. Y` now.\n```\na. B\n```\nDone."
    assert masked(text) == "\0" * 6 + "\nUse " + "\0" * 6 + " now.\n\0\0\0\n\0\0\0\0\n\0\0\0\nDone."
    assert prose_sentences(text) == ["Use  now.", "Done."]
