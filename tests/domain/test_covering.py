"""Whether evidence covers a question: the weighing, the three answers, and that they stay three on the path."""

from dataclasses import replace

import pytest

from domain.answering import NOTHING_FOUND, answer, outcome
from domain.covering import Cover, Covering, Tree, decide, unnamed
from domain.errors import StageFailed
from domain.evidence_signals import SIGNALS
from domain.naming import Naming
from domain.packing import pack
from domain.ports import Stages
from domain.types import Answer, Done, Evidence, Failed, Grounding, Hit, Status
from tests.fakes import RULES, FakeRetriever, FakeRewriter, ScriptedGenerator, ask, chunk, hits

PUMP = chunk("pump#0-aa", "Pump AR-7 weighs 40 kilograms.", title="Pump manual")
HIGH = 1e9


def leaning(signal: str, bar: float, below: float, above: float) -> Tree:
    """A tree that asks for one signal and nothing else."""
    place = SIGNALS.index(signal)
    return Tree((place, *[0] * 6), (bar, *[HIGH] * 6), (below, 0.0, 0.0, 0.0, above, 0.0, 0.0, 0.0))


BY_NAME = Covering("any", 0.0, (leaning("named", 0.5, -3.0, 3.0),), bar=0.5)
BOTH = "Which is heavier, the AR-7 or the BX-9?"


def evidence_of(found: tuple[Hit, ...]) -> tuple[Evidence, ...]:
    return pack((), found, 1, 6000)


async def replied(
    question: str, *, generator: ScriptedGenerator | None = None, covering: Covering | None = BY_NAME, naming: str = ""
) -> Answer:
    stages = Stages(FakeRewriter(), FakeRetriever(hits(PUMP)), None, generator or ScriptedGenerator())
    rules = replace(RULES, covering=covering)
    ended = await outcome(answer(ask(question), stages, rules, Naming((naming,) if naming else ())))
    assert isinstance(ended, Done)
    return ended.answer


def test_leaves_add_up_to_log_odds() -> None:
    covering = Covering("any", 1.0, (leaning("named", 0.5, -3.0, 3.0), leaning("words", 0.5, -1.0, 0.0)), bar=0.5)
    known = dict.fromkeys(SIGNALS, 0.0)
    assert covering.chance(known) == pytest.approx(0.0474, abs=1e-4)  # 1 - 3 - 1 = -3
    assert covering.chance(known | {"named": 0.5}) == pytest.approx(0.9526, abs=1e-4)  # at the bar: 1 + 3 - 1 = 3


@pytest.mark.parametrize("asks", [(0,) * 6, (len(SIGNALS), *(0,) * 6), (-1, *(0,) * 6)])
def test_a_tree_of_another_size_or_of_unknown_signals_is_refused(asks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="tree"):
        Tree(asks, (0.0,) * 7, (0.0,) * 8)


def test_without_weights_without_evidence_and_without_cosines_nothing_is_decided() -> None:
    found, blind = hits(PUMP), hits(PUMP, cosine=None)
    question = "How heavy is the BX-9?"
    assert decide(question, evidence_of(found), found, None).cover is Cover.UNDECIDED
    assert decide(question, (), (), BY_NAME).cover is Cover.UNDECIDED
    assert decide(question, evidence_of(blind), blind, BY_NAME).cover is Cover.UNDECIDED


def test_a_decision_tells_its_chance_its_bar_and_every_signal() -> None:
    found = hits(PUMP)
    decided = decide("How heavy is the BX-9?", evidence_of(found), found, BY_NAME)
    assert (decided.cover, decided.bar) == (Cover.NOT_COVERED, 0.5)
    assert decided.chance == pytest.approx(0.0474, abs=1e-4)
    assert tuple(name for name, _ in decided.signals) == SIGNALS


def test_what_one_part_names_and_no_passage_does_is_lacking() -> None:
    assert unnamed(BOTH, evidence_of(hits(PUMP))) == ("BX-9",)
    assert unnamed("How heavy is the AR-7 of Corran Pumps?", evidence_of(hits(PUMP))) == ()  # a question of one part
    assert unnamed("Which is heavier, the CX-1 or the BX-9?", evidence_of(hits(PUMP))) == ()  # then it is not covered


async def test_a_question_that_is_not_covered_has_the_fixed_text_and_no_generator_is_asked() -> None:
    generator = ScriptedGenerator(("The BX-9 weighs 9 tonnes [S1].",))
    reply = await replied("How heavy is the BX-9?", generator=generator)
    assert (reply.text, reply.status, reply.grounding) == (
        NOTHING_FOUND.text,
        Status.NO_SOURCES,
        Grounding.UNGROUNDED,
    )
    assert generator.plans == []
    assert reply.citations == ()
    assert [one.chunk_id for one in reply.consulted] == [PUMP.id]  # a reader sees what was looked at
    assert reply.trace.coverage
    assert reply.trace.coverage.cover is Cover.NOT_COVERED


async def test_a_covered_question_is_answered_as_it_would_be_without_weights() -> None:
    generator = ScriptedGenerator(("The AR-7 weighs 40 kilograms [S1].",))
    with_weights = await replied("How heavy is the AR-7?", generator=generator)
    without = await replied("How heavy is the AR-7?", generator=generator, covering=None)
    assert with_weights.text == without.text == "The AR-7 weighs 40 kilograms [S1]."
    assert (with_weights.status, with_weights.grounding) == (Status.COMPLETE, Grounding.GROUNDED)
    assert with_weights.trace.coverage
    assert with_weights.trace.coverage.cover is Cover.COVERED


async def test_a_partly_covered_question_is_answered_and_what_is_missing_is_named() -> None:
    reply = await replied(BOTH, generator=ScriptedGenerator(("The AR-7 weighs 40 kilograms [S1].",)))
    assert reply.text == "The AR-7 weighs 40 kilograms [S1].\n\nThe library has nothing on BX-9."
    assert (reply.status, reply.grounding) == (Status.COMPLETE, Grounding.PARTIAL)
    assert reply.trace.coverage
    assert reply.trace.coverage.lacking == ("BX-9",)


async def test_what_is_missing_is_not_said_twice() -> None:
    said = "The AR-7 weighs 40 kilograms [S1]. Of the BX-9 nothing is said."
    assert (await replied(BOTH, generator=ScriptedGenerator((said,)))).text == said


async def test_a_forbidden_name_is_not_told_by_naming_what_is_missing() -> None:
    reply = await replied(BOTH, generator=ScriptedGenerator(("40 kilograms [S1].",)), naming="BX-9")
    assert "BX-9" not in reply.text
    assert reply.trace.coverage
    assert "BX-9" not in "".join(reply.trace.coverage.lacking)


async def test_a_failed_search_is_none_of_the_three_answers() -> None:
    retriever = FakeRetriever(hits(PUMP), error=StageFailed("The retriever is down.", "retrieve"))
    stages = Stages(FakeRewriter(), retriever, None, ScriptedGenerator())
    ended = await outcome(answer(ask("How heavy is the BX-9?"), stages, replace(RULES, covering=BY_NAME), Naming(())))
    assert isinstance(ended, Failed)
    assert NOTHING_FOUND.text not in (ended.message, ended.partial)
    assert ended.trace
    assert ended.trace.coverage is None


async def test_a_bar_of_one_declines_everything_and_a_bar_of_zero_nothing() -> None:
    never = await replied("How heavy is the AR-7?", covering=replace(BY_NAME, bar=1.0))
    always = await replied("How heavy is the BX-9?", covering=replace(BY_NAME, bar=0.0))
    assert (never.status, always.status) == (Status.NO_SOURCES, Status.COMPLETE)
