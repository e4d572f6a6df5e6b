"""Text cannot become markup."""

from html.parser import HTMLParser

import pytest

from eval.markup import Markup, element, escaped, joined

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror="alert(1)">',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "<!-- ",
    "]]>",
    "&lt;b&gt;",
)


class Elements(HTMLParser):
    """Every element with its attributes, and all text, as a browser would read them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text_in_an_element_and_in_an_attribute(text: str) -> None:
    read = Elements(element("p", text, title=text).html)
    assert read.elements == [("p", {"title": text})]
    assert read.text == text


def test_what_was_built_here_is_not_escaped_again() -> None:
    assert element("p", element("b", "a < b"), None, " & ", Markup("<br>")).html == "<p><b>a &lt; b</b> &amp; <br></p>"


def test_names_of_attributes_are_spelled_as_html_does_and_flags_have_no_value() -> None:
    assert element("meta", http_equiv="x", class_="y", name="z").html == '<meta http-equiv="x" class="y" name="z">'
    assert element("a", hidden=True, disabled=False).html == "<a hidden></a>"


@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\x85", "\ud800", "\u202e", "\u2066"])
def test_what_no_page_may_hold_is_replaced(bad: str) -> None:
    assert escaped(f"a{bad}b") == "a\ufffdb"
    assert joined(bad).html.encode()  # half a character would not be writable


@pytest.mark.parametrize("good", ["\n", "\t", "é", "ليلى", "潮汐", "👩‍🚀", "\u00a0"])
def test_every_other_character_stays(good: str) -> None:
    assert escaped(good) == good
