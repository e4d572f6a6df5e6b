"""A comparison as a page: everything is in it, nothing in it runs, fetches, or was left uncleaned."""

import re
from dataclasses import replace

import pytest

from domain.evaluation import ALL, Estimate
from domain.naming import Naming
from domain.releases import Outcome, Verdict
from eval.apart import apart
from eval.observed import Observed
from eval.report import Report, page
from eval.report_tables import Fact, Failed, bounds, signed, value
from tests.eval.comparisons import BEFORE, BROKEN, NEW, comparison, question, report
from tests.eval.replies import passage, quoting
from tests.eval.test_markup import HOSTILE, Elements

PLAIN = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4", "p", "nav", "ul", "li",
    "main", "section", "table", "caption", "thead", "tbody", "tr", "th", "td", "div", "span", "b", "bdi", "article",
    "del", "ins", "q", "figure", "figcaption", "footer", "svg", "g", "path", "defs", "use", "text", "clippath", "rect",
    "metadata", "rdf:rdf", "cc:work", "dc:type", "dc:format", "dc:title",
}  # fmt: skip
FETCHING = {"src", "srcset", "action", "formaction", "data", "poster", "background", "ping"}
PLOTS = {
    "metrics": {"recall@6": {ALL: Estimate(0.5, 0.4, 0.6, 9), "type=null": Estimate(0.25, None, None, 2)}},
    "metrics_before": {"recall@6": {ALL: Estimate(0.75, 0.6, 0.9, 9)}},
    "floors": {"recall@6": 0.2},
    "curves": {"v2": {1: Estimate(0.4, 0.3, 0.5, 9), 6: Estimate(0.5, 0.4, 0.6, 9)}},
}


def sections(html: str) -> dict[str, str]:
    """The text of each section, by its anchor."""
    return {
        anchor: " ".join(Elements(inner).text.split())
        for anchor, inner in re.findall(r'<section id="(\w+)".*?>(.*?)</section>', html, re.DOTALL)
    }


@pytest.fixture(scope="module")
def whole() -> str:
    return page(report(**PLOTS))


def test_the_page_has_all_its_sections_and_links_to_each(whole: str) -> None:
    wanted = ["verdict", "compared", "metrics", "changed", "failed", "plots"]
    assert list(sections(whole)) == wanted
    links = [found["href"] for tag, found in Elements(whole).elements if tag == "a"]
    assert links == ["#verdict", *(f"#{anchor}" for anchor in wanted)]


def test_the_page_loads_nothing_and_runs_nothing(whole: str) -> None:
    read = Elements(whole)
    assert {tag for tag, _ in read.elements} <= PLAIN
    for _, found in read.elements:
        assert not [
            name for name in found if name.startswith("on") or name in ("src", "srcset", "action", "formaction")
        ]
        assert all((found.get(name) or "#").startswith("#") for name in ("href", "xlink:href"))
    assert any(str(found.get("content")).startswith("default-src 'none'; ") for _, found in read.elements)
    assert "@import" not in whole
    assert not re.search(r"url\((?!#)", whole)


def test_every_id_is_there_once_and_every_reference_leads_to_one(whole: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', whole)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', whole)) <= set(ids)
    assert set(" ".join(re.findall(r'aria-labelledby="([^"]+)"', whole)).split()) <= set(ids)


def test_the_plots_take_their_colours_from_the_page(whole: str) -> None:
    assert whole.count("<svg") == 4, "differences, recall, times, one metric by slice"
    assert not re.search(r"(fill|stroke): #", whole)


def test_the_same_report_gives_the_same_page(whole: str) -> None:
    assert page(report(**PLOTS)) == whole


# ---------------------------------------------------------------------------------------------- what is said


def test_the_verdict_stands_first_with_what_could_be_told_at_all(whole: str) -> None:
    told = sections(whole)["verdict"]
    assert told.startswith("What the gate would sayINCONCLUSIVE With v1 as what people have, v2 would be left open")
    found = comparison()
    assert all(str(line) in told for line in found.detectable)
    assert all(f"{verdict.gate} {verdict.reason}" in told for verdict in found.verdicts)
    assert "nothing of this was recorded" in told


def test_a_line_of_the_table_has_the_numbers_of_the_comparison(whole: str) -> None:
    row = next(one for one in comparison().lines if one.metric == "recall@6")
    assert row.difference is not None
    assert f"recall@6 INCONCLUSIVE 0.750 0.500 -0.250 {bounds(row.difference)} 2 0 1 1 1".replace(" ", "") in sections(
        whole
    )["metrics"].replace(" ", "")


def test_what_differs_between_the_versions_is_marked_and_what_does_not_is_not(whole: str) -> None:
    rows = re.findall(r'<tr class="(\w*)"><th scope="row">(.*?)</th>', whole)
    assert [(looks, Elements(name).text) for looks, name in rows] == [
        ("differs", "Cut by (differs)"),
        ("", "Encoder"),
        ("", "over_refusal"),
    ]


def test_both_answers_stand_side_by_side_with_the_words_that_differ(whole: str) -> None:
    told = re.search(r'<div class="sides">(.*?)</article>', whole, re.DOTALL)
    assert told
    assert re.findall(r"<(del|ins)>(.*?)</\1>", told[1]) == [("del", "six"), ("ins", "nine")]
    text = " ".join(Elements(told[1]).text.split())
    assert text.startswith("v1 · complete · groundedThe gate closes at six metres [S1].")
    assert "S1Tides d2The gate closes at nine metres." in text


def test_questions_without_an_answer_are_listed_with_why(whole: str) -> None:
    assert sections(whole)["failed"].endswith("1 failed; they score zeroQuestionv1v2q2timeoutanswered")
    assert "failed" not in sections(page(report(failed=())))


def test_of_very_many_failures_a_hundred_are_listed_and_all_are_counted() -> None:
    told = sections(page(report(failed=tuple(Failed(f"q{n}", "timeout", "") for n in range(120)))))["failed"]
    assert "120 failed, of which 100 are listed" in told
    assert told.count("timeout") == 100


def test_an_answer_that_failed_says_so_where_the_other_stands() -> None:
    found = comparison()
    shown = ((found.changes[0], apart(BROKEN, NEW, None, Naming(()))),)
    assert "No answer: timeout: Nobody answered in 5 s." in sections(page(report(shown=shown)))["changed"]


def test_a_question_for_others_is_shown_with_its_numbers_and_without_its_text() -> None:
    from domain.types import Scope

    found = comparison()
    shown = ((found.changes[0], apart(BROKEN, NEW, Scope("quarry", frozenset()), Naming(()))),)
    html = page(report(shown=shown))
    assert "metres" not in html
    assert "q3" in sections(html)["changed"]
    assert "0 → 1 answered" in " ".join(sections(html)["changed"].split())
    assert "Holds only text that the anonymous reader may see. 1 question below without text." in Elements(html).text


def test_a_report_with_all_text_says_that_it_is_not_for_everybody() -> None:
    assert "pass it on only to those who may read the whole library" in page(report(all_text=True))


def test_zero_differences_are_said_plainly() -> None:
    same = comparison(after=BEFORE, names=("v1", "v1"))
    told = sections(page(report(same, shown=(), failed=())))
    assert "v1 is compared with itself: every difference is zero" in told["verdict"]
    assert "No question changed in any metric." in told["changed"]
    twin = comparison(after=BEFORE)
    assert "No value of any metric differs in any of 3 questions." in sections(page(report(twin)))["verdict"]


def test_what_was_not_measured_is_not_zero() -> None:
    never = {"answered": {"q1": None, "q2": None}}
    told = sections(page(report(comparison(never, never, gates=(), parts={}), shown=())))["metrics"]
    assert "answered" in told
    assert "not measured: no question is eligible in both" in told
    assert "0.000" not in told


# ---------------------------------------------------------------------------------------------- hostile


def hostile(text: str) -> Report:
    """The text wherever a text can come from outside."""
    asked = question(text, query=text, answer=text, persona=text)
    said = Observed(asked, quoting(passage(text, text, title=text)))
    parts = {str(number): {"persona": text} if number < 20 else {} for number in range(40)}
    before = {"recall@6": dict.fromkeys(parts, 1.0)}
    found = comparison(before, {"recall@6": dict.fromkeys(parts, 0.0)}, parts=parts)
    verdict = Verdict(text, Outcome.FAIL, text)
    return replace(
        report(replace(found, verdicts=(verdict,))),
        facts=(Fact(text, text, "other"),),
        shown=((replace(found.changes[0], question=text), apart(said, said, None, Naming(()))),),
        failed=(Failed(text, text, text),),
        curves={"v2": {1: Estimate(0.5, 0.4, 0.6, 9)}},
        times_ms={"v2": [1.0]},
        metrics={"recall@6": {ALL: Estimate(0.5, 0.4, 0.6, 9), text: Estimate(0.5, 0.4, 0.6, 9)}},
    )


@pytest.mark.parametrize("text", [*HOSTILE, "$x$", "\ud800", "\x00"])
def test_a_hostile_text_is_shown_and_does_nothing(text: str) -> None:
    html = page(hostile(text))
    html.encode()  # half a character could not be written
    read = Elements(html)
    assert {tag for tag, _ in read.elements} <= PLAIN
    assert not [name for _, found in read.elements for name in found if name.startswith("on")]
    assert "\x00" not in html
    if text in HOSTILE:
        assert read.text.count(text) > 10


# ---------------------------------------------------------------------------------------------- numbers


def test_zero_has_no_sign_and_what_rounds_to_it_neither() -> None:
    assert [signed(x) for x in (0.0, -0.0, 0.0004, -0.0004, 0.25, -0.25)] == [
        "0.000", "0.000", "0.000", "0.000", "+0.250", "-0.250",
    ]  # fmt: skip


def test_the_value_of_a_question_is_short_and_not_eligible_is_a_word() -> None:
    assert [value(x) for x in (1.0, 0.0, 0.5, 1 / 3, None)] == ["1", "0", "0.5", "0.33", "not eligible"]
