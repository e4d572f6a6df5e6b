"""The score of an agent's steps, on runs whose numbers can be checked on paper."""

import pytest

from domain.seeking import ENOUGH
from domain.types import Query, RetrievalRound
from eval.seeking_score import Run, run_of, score


def run(*steps: str, covered: bool, needed: str = "a b") -> Run:
    """Steps written as the documents they found, a chunk each."""
    found = tuple(frozenset(f"{doc}#0-ff" for doc in step.split()) for step in steps)
    return Run(found, covered, frozenset(needed.split()))


def test_stops_are_judged_by_whether_and_when_everything_was_found() -> None:
    runs = [
        run("a", "b", covered=True),  # complete at 2, stopped there: right
        run("a", covered=True),  # stopped too early: b is missing
        run("a b", "c", covered=True),  # complete at 1, stopped at 2: too late
        run("a b", covered=False),  # complete, and never said so
        run("c", "c", covered=False),  # never complete
    ]
    told = score(runs)
    assert told.full_chain == 3 / 5
    assert told.stop_precision == 2 / 3  # of three that said covered, the second was not
    assert told.stop_recall == 1 / 3  # of three that were complete, the first stopped right then
    assert told.repeats == 1 / 3  # of b, c, c after a first step the last found nothing new
    assert told.steps == 8 / 5


def test_a_share_of_nothing_is_not_measured() -> None:
    told = score([run("c", covered=False)])
    assert (told.stop_precision, told.stop_recall, told.repeats) == (None, None, None)
    with pytest.raises(ValueError, match="No run"):
        score([])


def test_a_document_with_a_hash_in_its_id_is_found_by_its_chunk() -> None:
    assert Run((frozenset({"c#/notes.md#3-ab"}),), False, frozenset({"c#/notes.md"})).complete_at == 1


def test_a_run_is_what_its_trace_tells() -> None:
    rounds = tuple(RetrievalRound(Query("q"), 3, ((chunk_id, 1.0),), False) for chunk_id in ("a#0-ff", "b#0-ff"))
    assert run_of(rounds, ENOUGH, {"a", "b"}) == run("a", "b", covered=True)
    assert not run_of(rounds, "all 2 steps are used up", {"a"}).covered
