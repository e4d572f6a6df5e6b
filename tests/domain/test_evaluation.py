"""What of an evaluation may be shown: no text of questions that the reader may not ask, and no forbidden term."""

from dataclasses import asdict, replace

from domain.evaluation import ALL, Difference, Estimate, Evaluation, Row, shared
from domain.naming import Naming
from domain.releases import Binding, Outcome, Verdict
from domain.types import Scope

READER = Scope("harbour", frozenset({"public", "staff"}))
BINDING = Binding("v1", "d", "s", "g", "c")
NUMBER = Estimate(0.5, 0.4, 0.6, 10)


def row(tenant: str = "harbour", groups: str = "public", query: str = "When?", answer: str = "At noon.") -> Row:
    return Row("q1", tenant, frozenset(groups.split()), {"type": "null"}, {"success": 1.0}, 5.0, "", query, answer)


def evaluation(*rows: Row, **more: object) -> Evaluation:
    metrics = {"recall@6": {ALL: NUMBER}}
    return replace(Evaluation(BINDING, "2026-01-31T12:00:00+00:00", metrics, rows), **more)  # type: ignore[arg-type]


def test_text_of_a_question_that_the_reader_could_have_asked_stays() -> None:
    asked = evaluation(row(), row(groups="public staff"), row(groups=""))
    assert shared(asked, READER, Naming(())) == asked


def test_of_another_readers_question_only_id_and_numbers_stay() -> None:
    for other in (row(tenant="quarry"), row(groups="public board"), row(groups="board")):
        (kept,) = shared(evaluation(other), READER, Naming(())).rows
        assert (kept.query, kept.answer) == ("", "")
        assert (kept.question, kept.values, kept.latency_ms) == ("q1", {"success": 1.0}, 5.0)


def test_a_forbidden_term_leaves_every_text_there_is() -> None:
    named = "Zanzi\u00adBRAND"
    row = Row(named, "harbour", frozenset({"public"}), {named: named}, {"m": 1.0}, 1.0, named, named, named)
    dirty = Evaluation(
        BINDING,
        "2026-01-31T12:00:00+00:00",
        {f"of {named}": {f"source={named}": NUMBER}},
        (row, replace(row, tenant=named, groups=frozenset({named}))),
        (Verdict(f"gate {named}", Outcome.FAIL, f"because of {named}"),),
        (Difference(named, named, NUMBER, 0.02),),
        {"v1": {6: NUMBER}},
        {"recall@6": 0.7},
        {named: named},
    )
    clean = shared(dirty, READER, Naming(("zanzibrand",)))
    assert "zanzi" in str(asdict(dirty)).casefold()
    assert "zanzi" not in str(asdict(clean)).casefold()
    assert clean.outcome is Outcome.FAIL


def test_the_same_binding_measured_at_another_time_is_another_evaluation() -> None:
    first = evaluation()
    assert first.id == evaluation(row(), verdicts=(Verdict("g", Outcome.PASS, ""),)).id
    assert first.id != replace(first, measured_at="2026-01-31T12:00:01+00:00").id
    assert first.id != replace(first, binding=replace(BINDING, baseline="v0")).id


def test_the_worst_gate_that_binds_is_the_outcome_and_without_one_there_is_none() -> None:
    advisory = Verdict("a", Outcome.FAIL, "", advisory=True)
    assert evaluation(verdicts=(advisory,)).outcome is None
    verdicts = (advisory, Verdict("b", Outcome.PASS, ""), Verdict("c", Outcome.INCONCLUSIVE, ""))
    assert evaluation(verdicts=verdicts).outcome is Outcome.INCONCLUSIVE
