"""PDF: pages, paragraphs, and pages without text."""

import pytest

from retrieval.parsing.parsed import Limits, Refused
from retrieval.parsing.pdf import paragraphs, parse
from tests.retrieval.parsing.made import pdf, pdf_of


def code_of(content: bytes) -> str:
    with pytest.raises(Refused) as refused:
        parse(content, Limits())
    return refused.value.code


def test_every_page_is_marked_where_its_text_begins() -> None:
    parsed = parse(pdf(["Gears need oil."], ["Belts need dust covers."]), Limits())
    assert parsed.text == "Gears need oil.\n\nBelts need dust covers."
    assert [(mark.start, mark.name) for mark in parsed.marks] == [(0, "page 1"), (17, "page 2")]


def test_pages_without_text_are_named() -> None:
    parsed = parse(pdf(["Page one has words about gearboxes."], [], ["Three."], [], []), Limits())
    assert "page 2, 4-5 of 5 has no text" in parsed.remarks[0]
    assert "OCR is off" in parsed.remarks[0]
    assert [mark.name for mark in parsed.marks] == ["page 1", "page 3"]


def test_a_document_without_any_text_is_no_success() -> None:
    assert code_of(pdf([], [])) == "no_text"


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4\n", b"no PDF at all", pdf(["x"])[:60]])
def test_what_is_no_pdf_is_damaged(content: bytes) -> None:
    assert code_of(content) == "damaged"


def test_pages_that_lead_back_to_themselves_end() -> None:
    loop = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R]/Count 1>>"]
    assert code_of(pdf_of(loop)) in ("no_text", "damaged")


def test_lines_of_running_text_are_joined_to_paragraphs() -> None:
    page = (
        "The pump lifts water from the deep well and\nfills the tank above the mill every morn-\ning at six.\n"
        "The valve is shut by hand after that, and"
    )
    assert list(paragraphs(page)) == [
        "The pump lifts water from the deep well and fills the tank above the mill every morning at six.",
        "The valve is shut by hand after that, and",
    ]


def test_a_word_that_pdfium_says_was_broken_is_whole_again_and_other_hyphens_stay() -> None:
    (joined,) = paragraphs("The adip\ufffeiscing pump model is called A\ufffe12 here")
    assert joined == "The adipiscing pump model is called A-12 here"


def test_short_lines_as_in_tables_stay_lines() -> None:
    page = "The figures of all pumps in the mill are below here\nP3 40 bar\nP4 60 bar"
    assert list(paragraphs(page)) == ["The figures of all pumps in the mill are below here P3 40 bar\nP4 60 bar"]


def test_lines_of_chinese_are_joined_without_a_blank() -> None:
    page = "更换冷却液之前请先关闭主阀门每周五检查皮带的松紧\n并且记录在值班日志里面不要忘记签名和日期以及时间"
    assert list(paragraphs(page)) == [page.replace("\n", "")]
