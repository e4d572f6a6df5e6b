"""Sessions that somebody else carried: what is believed, what is counted, and what goes on."""

import random
from dataclasses import replace

import pytest

from domain.naming import Naming
from domain.sessions import check_pool, next_session, told
from domain.types import PoolEntry, PoolTally, Role, Session, Turn
from tests.fakes import RULES

NOBODY = Naming(())


def entries(*ids: str) -> tuple[PoolEntry, ...]:
    return tuple(PoolEntry(id, 1) for id in ids)


def user(text: str) -> Turn:
    return Turn(Role.USER, text)


def reply(text: str) -> Turn:
    return Turn(Role.ASSISTANT, text)


def test_forged_foreign_and_double_entries_and_those_over_the_cap_are_dropped_and_counted() -> None:
    claimed = entries("a", "forged", "b", "a", "foreign", "c", "d", "b")
    pool, tally = check_pool(claimed, {"a", "b", "c", "d"}, 3, moved=False)
    assert pool == entries("b", "c", "d")  # of a, b, c, d the oldest leaves
    assert tally == PoolTally(kept=3, unknown=2, duplicate=2, over_cap=1)
    assert told(tally) == "2 unknown or not visible, 2 duplicate, 1 over the cap"


def test_a_forged_id_and_one_of_another_reader_are_told_alike() -> None:
    visible = {"a"}
    forged, foreign = (check_pool(entries("a", id), visible, 4, moved=False) for id in ("forged", "finance#0"))
    assert forged == foreign


def test_what_the_version_before_had_is_stale_and_not_called_forged() -> None:
    pool, tally = check_pool(entries("a", "old"), {"a"}, 4, moved=True)
    assert (pool, tally) == (entries("a"), PoolTally(kept=1, stale=1))
    assert "not in the version that answered now" in told(tally)


def test_every_entry_that_came_is_kept_or_counted_once() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        claimed = entries(*(chance.choice("abcdefgh") for _ in range(chance.randint(0, 20))))
        visible = set(chance.sample("abcdefgh", chance.randint(0, 8)))
        pool, tally = check_pool(claimed, visible, chance.randint(0, 5), moved=chance.random() < 0.5)
        assert tally.kept + tally.dropped == len(claimed)
        assert len({entry.chunk_id for entry in pool}) == len(pool) == tally.kept
        assert {entry.chunk_id for entry in pool} <= visible
        order = list(dict.fromkeys(entry.chunk_id for entry in claimed))
        assert [entry.chunk_id for entry in pool] == [id for id in order if id in {e.chunk_id for e in pool}]


def test_the_next_session_has_the_turn_that_ended_and_the_version_that_answered() -> None:
    after = next_session(Session("s"), "Why?", "So.", entries("a"), "v2", NOBODY, RULES)
    assert after == Session("s", (user("Why?"), reply("So.")), entries("a"), "v2", 0)


@pytest.mark.parametrize(("turns", "chars"), [(4, 10_000), (40, 12)])
def test_the_oldest_questions_leave_with_their_answers_and_turns_keep_their_numbers(turns: int, chars: int) -> None:
    session, rules = Session("s"), replace(RULES, session_turns=turns, session_chars=chars)
    for number in range(1, 8):
        assert session.turn_number == number
        session = next_session(session, f"q{number}?", f"a{number}.", (), "v1", NOBODY, rules)
    assert session.earlier == 5
    assert session.turns == (user("q6?"), reply("a6."), user("q7?"), reply("a7."))


def test_the_last_turn_stays_however_long_it_is() -> None:
    rules = replace(RULES, session_turns=2, session_chars=10)
    after = next_session(Session("s", (user("x"), reply("y"))), "q" * 50, "a" * 50, (), "v1", NOBODY, rules)
    assert after.turns == (user("q" * 50), reply("a" * 50))
    assert after.earlier == 1


def test_what_goes_on_is_scrubbed() -> None:
    session = Session("s", (user("Who is Zanzibrand?"), reply("A seller.")))
    after = next_session(session, "And now?", "So.", entries("zanzibrand#0", "a"), "v1", Naming(["zanzibrand"]), RULES)
    assert "zanzibrand" not in repr(after).casefold()
    assert after.pool == entries("a")
