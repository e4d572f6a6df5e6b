"""HTML: what a reader sees, and nothing else."""

import pytest

from retrieval.parsing.parsed import Limits, Refused
from retrieval.parsing.web_pages import parse


def text(page: str) -> str:
    return parse(page.encode(), Limits()).text


def test_scripts_styles_comments_and_noscript_are_left_out_and_entities_read() -> None:
    page = (
        "<html><head><title>Tips</title><style>.x{color:red}</style><script>var t='zzq-token-9'</script></head><body>"
        "<!-- zzq-comment --><h1>Lamp care</h1><p>Wipe the lamp &amp; let it dry.</p>"
        "<noscript>zzq-noscript</noscript><img src=x onerror=alert(1)></body></html>"
    )
    assert text(page) == "# Lamp care\n\nWipe the lamp & let it dry."


def test_navigation_forms_and_what_is_hidden_are_left_out() -> None:
    page = (
        "<body><header>Site</header><nav>Home</nav><div role=navigation>Menu</div><p>Text.</p>"
        "<p hidden>h1</p><p style='display: none'>h2</p><p aria-hidden=true>h3</p>"
        "<button>Send</button><footer>Imprint</footer></body>"
    )
    assert text(page) == "Text."


def test_only_the_content_is_read_where_the_page_says_which_it_is() -> None:
    words = "The pump lifts water from the well. " * 5
    assert "Related" not in text(f"<body><div>Related: ten pumps</div><main><p>{words}</p></main></body>")


def test_a_main_part_with_hardly_any_text_does_not_hide_the_rest() -> None:
    words = "The pump lifts water from the well. " * 5
    assert words.strip() in text(f"<body><main>Loading</main><p>{words}</p></body>")


def test_headings_lists_and_line_breaks_keep_their_shape() -> None:
    page = "<h2>Parts</h2><ul><li>Pump<ul><li>Seal</li></ul></li><li>Valve</li></ul><p>One<br>two</p>"
    assert text(page) == "## Parts\n\n- Pump\n  - Seal\n- Valve\n\nOne\ntwo"


def test_inline_elements_do_not_tear_words_apart() -> None:
    assert text("<p>The <b>tur</b>bine <i>house</i>, <a href=x>locked</a>.</p>") == "The turbine house, locked."


def test_a_table_repeats_the_names_of_its_columns() -> None:
    page = "<table><tr><th>Pump<th>Limit</tr><tr><td>P3<td>40 bar</tr><tr><td>P4<td>60 bar</tr></table>"
    assert text(page) == "Pump: P3; Limit: 40 bar\nPump: P4; Limit: 60 bar"


def test_a_table_that_only_arranges_a_page_is_read_as_paragraphs() -> None:
    assert (
        text("<table><tr><td><p>One.</p><p>Two.</p></td><td><p>Three.</p></td></tr></table>")
        == "One.\n\nTwo.\n\nThree."
    )


def test_code_keeps_its_lines() -> None:
    assert text("<pre>a = 1\n  b = 2</pre>") == "```\na = 1\n  b = 2\n```"


def test_the_title_is_the_pages_or_its_first_heading() -> None:
    assert parse(b"<title>Lamps</title><p>x", Limits()).fields == {"title": "Lamps"}
    assert parse(b"<h1>Lamp care</h1><p>x", Limits()).fields == {"title": "Lamp care"}


@pytest.mark.parametrize("declared", ["windows-1251", "koi8-r"])
def test_a_declared_encoding_is_believed_when_the_bytes_agree(declared: str) -> None:
    page = f"<meta charset={declared}><p>Закройте клапан</p>".encode(declared)
    assert parse(page, Limits()).text == "Закройте клапан"


def test_a_page_that_is_utf_8_is_read_so_whatever_it_declares() -> None:
    assert parse("<meta charset=iso-8859-1><p>Prüfung</p>".encode(), Limits()).text == "Prüfung"


def test_xhtml_with_a_declaration_and_entities_of_its_own_unfolds_none() -> None:
    doctype = '<!DOCTYPE html [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    page = f'<?xml version="1.0"?>{doctype}<html><body><p>x &b; y</p></body></html>'
    assert text(page) == "x &b; y"


@pytest.mark.parametrize("page", ["", "<html></html>", "<script>x</script>", "<p>&nbsp;</p>"])
def test_a_page_without_anything_to_read_says_so(page: str) -> None:
    with pytest.raises(Refused) as refused:
        text(page)
    assert refused.value.code == "no_text"


def test_a_thousand_levels_are_read_to_the_end() -> None:
    assert text("<div>" * 1000 + "bottom" + "</div>" * 1000 + "<p>after</p>") == "bottom\n\nafter"


def test_more_levels_than_the_parser_follows_are_refused_rather_than_cut_short() -> None:
    with pytest.raises(Refused, match="nested deeper") as refused:
        text("<p>top</p>" + "<div>" * 5000 + "bottom")
    assert refused.value.code == "damaged"
