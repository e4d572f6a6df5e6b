"""A comparison in a terminal: the lines as they are, where there is room for a table and where there is not."""

from dataclasses import replace

from domain.naming import Naming
from domain.types import Scope
from eval.apart import apart
from eval.report import Report
from eval.report_tables import Failed, bounds
from tests.eval.comparisons import BEFORE, BROKEN, NEW, comparison, report
from tidegate.columns import beside, cells, wrapped
from tidegate.comparison_lines import lines

NUMBERS = [one.difference for one in comparison().lines if one.difference]
RECALL, ANSWERED, SLO = (f"[{bounds(one).replace(' to ', ', ')}]" for one in NUMBERS)


def told(width: int, of: Report | None = None) -> list[str]:
    return list(lines(of or report(), width))


def test_a_wide_terminal_gets_a_table() -> None:
    table = told(120)
    at = next(n for n, line in enumerate(table) if "difference [interval]" in line)
    assert table[at : at + 4] == [
        "               V1     V2  difference [interval]      pairs better worse  equal  gate",
        f"recall@6    0.750  0.500  -0.250 {RECALL}        2      0     1      1  INCONCLUSIVE",
        f"answered    0.500  1.000  +0.500 {ANSWERED}        2      1     0      1  INCONCLUSIVE (advisory)",
        f"within_slo  0.667  1.000  +0.333 {SLO}        3      1     0      2",
    ]


def test_a_narrow_terminal_gets_three_lines_for_each_metric() -> None:
    found = told(60)
    at = found.index("recall@6: INCONCLUSIVE")
    assert found[at : at + 9] == [
        "recall@6: INCONCLUSIVE",
        f"  0.750 -> 0.500, difference -0.250 {RECALL}",
        "  2 pairs: 0 better, 1 worse, 1 equal",
        "answered: INCONCLUSIVE (advisory)",
        f"  0.500 -> 1.000, difference +0.500 {ANSWERED}",
        "  2 pairs: 1 better, 0 worse, 1 equal",
        "within_slo",
        f"  0.667 -> 1.000, difference +0.333 {SLO}",
        "  3 pairs: 1 better, 0 worse, 2 equal",
    ]


def test_what_is_the_same_is_one_line_and_what_differs_has_its_own() -> None:
    assert told(120)[:4] == [
        "V1 v1",
        "V2 v2",
        "3 questions; both: encoder minilm",
        "Cut by: V1 heading-200-0, V2 fixed-60-0",
    ]


def test_what_can_be_told_stands_before_every_verdict_and_the_outcome_after_them() -> None:
    found, of = told(120), comparison()
    told_at = [found.index(str(line)) for line in of.detectable]
    verdicts = [
        found.index(f"{v.outcome.name:<12} {v.gate}: {v.reason}{' (advisory)' * v.advisory}") for v in of.verdicts
    ]
    outcome = next(n for n, line in enumerate(found) if line.startswith("INCONCLUSIVE: With v1 as what people have"))
    assert max(told_at) < min(verdicts) <= max(verdicts) < outcome


def test_two_answers_stand_beside_each_other() -> None:
    found = told(80)
    at = found.index("Q: When is high water, and how often does the bell ring?")
    assert found[at - 1 : at + 5] == [
        "1. q3: 0 -> 1 answered",
        "Q: When is high water, and how often does the bell ring?",
        "Expected: 9 kilograms",
        "V1 complete, grounded                    V2 complete, grounded",
        "The gate closes at six metres [S1].      The gate closes at nine metres [S1].",
        "[S1] Gates                               [S1] Tides",
    ]


def test_in_a_narrow_terminal_they_stand_one_below_the_other() -> None:
    found = told(60)
    at = found.index("V1 complete, grounded")
    assert found[at : at + 6] == [
        "V1 complete, grounded",
        "The gate closes at six metres [S1].",
        "[S1] Gates",
        "V2 complete, grounded",
        "The gate closes at nine metres [S1].",
        "[S1] Tides",
    ]


def test_failed_hidden_and_uncited_are_four_words_and_not_an_empty_text() -> None:
    change = comparison().changes[0]
    nobody = Naming(())
    failed = told(60, report(shown=((change, apart(BROKEN, NEW, None, nobody)),)))
    assert "V1 no answer: timeout: Nobody answered in 5 s." in failed
    assert "No answer to q2: V1 timeout, V2 answered" in failed
    hidden = told(60, report(shown=((change, apart(BROKEN, NEW, Scope("quarry", frozenset()), nobody)),)))
    assert "   not for the anonymous reader: --all-text shows it" in hidden
    assert not any("metres" in line for line in hidden)


def test_of_many_failures_the_first_are_named_and_the_rest_counted() -> None:
    found = told(120, report(failed=tuple(Failed(f"q{n}", "timeout", "") for n in range(25))))
    assert sum(line.startswith("No answer to ") for line in found) == 10
    assert "... and 15 more without an answer" in found


def test_what_was_not_measured_is_no_number() -> None:
    never = {"answered": {"q1": None, "q2": 1.0}}
    of = report(comparison(never, {"answered": {"q1": None, "q2": None}}, gates=(), parts={}), shown=())
    said = "not measured: no question is eligible in both (1 in one)"
    assert f"answered  {said}" in told(120, of)
    assert f"  {said}" in told(40, of)


def test_zero_differences_are_said_plainly() -> None:
    same = report(comparison(after=BEFORE, names=("v1", "v1")), shown=(), reworded=0)
    assert "v1 is compared with itself: every difference is zero, as it must be." in told(120, same)
    assert told(120, same)[-1] == "0 of 3 questions changed in a metric, 0 in the words of the answer"
    twin = replace(same, comparison=comparison(after=BEFORE))
    assert "No value of any metric differs in any of 3 questions." in told(120, twin)


# ---------------------------------------------------------------------------------------------- columns


def test_no_line_is_wider_than_asked_and_no_word_is_lost() -> None:
    text = "The sea gate closes at six metres, and 潮汐在九点 it opens again; a-word-longer-than-any-line stays."
    for width in (8, 13, 40):
        found = wrapped(text, width)
        assert max(map(cells, found)) <= width
        assert "".join("".join(found).split()) == "".join(text.split())


def test_paragraphs_stay_apart() -> None:
    assert wrapped("One two.\n\nThree.", 40) == ["One two.", "", "Three."]


def test_wide_and_combining_characters_take_the_cells_they_take() -> None:
    assert [cells("潮a"), cells("e\u0301"), cells("")] == [3, 1, 0]
    assert list(beside("潮汐", "right", 23)) == ["潮汐         right"]  # 4 cells, 6 blanks, 3 between
