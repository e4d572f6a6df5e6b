"""HTML as text: headings as Markdown headings, tables as rows, lists as lists, and nothing a reader does not see.

Scripts, styles, comments, forms and navigation are left out. Where the page says which part is its content (`main`,
`article`), only that part is read, unless hardly any of the text is in it. Nothing is run and nothing is fetched.
"""

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree, html

from retrieval.parsing.decoding import markup_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused, fold
from retrieval.parsing.tables import as_text

# fmt: off
UNSEEN = frozenset({
    "script", "style", "noscript", "template", "head", "svg", "math", "iframe", "object", "embed", "audio", "video",
    "canvas", "map", "select", "datalist", "button", "input", "textarea", "dialog", "nav", "footer",
})
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "form", "header", "hgroup", "hr", "html", "legend", "li", "main", "ol", "p", "section",
    "summary", "table", "td", "th", "tr", "ul", "pre", "h1", "h2", "h3", "h4", "h5", "h6",
})
# fmt: on
ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "menu", "toolbar", "dialog"})
NOISE = re.compile(  # what wikis and news pages wrap around their text
    r"(^|\s)(mw-editsection|mw-jump-link|navbox\S*|noprint|reference|reflist|catlinks|printfooter|breadcrumbs?|"
    r"cookie-(banner|consent|notice)|skip-link|sr-only|visually-hidden|vector-(toc|menu|dropdown)\S*|mw-indicators)(\s|$)"
)
HIDDEN = re.compile(r"(display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
CONTENT_SHARE = 0.25  # of the visible text that must be in `main` for the rest to be taken for noise

Element = Any  # lxml


def parse(content: bytes, limits: Limits) -> Parsed:
    """A page of its own."""
    text, remarks = markup_of(content)
    parsed = page(text, limits)
    return Parsed(parsed.text, parsed.marks, parsed.fields, (*remarks, *parsed.remarks))


def page(text: str, limits: Limits) -> Parsed:
    """A page that has been decoded. Raises Refused when a reader would see nothing."""
    root = tree(text)
    draft = Draft(limits)
    write(_content(root), draft)
    found = root.find(".//title")
    title = fold(found.text_content()) if found is not None else ""
    return draft.parsed({"title": title or _first_heading(root)})


def tree(text: str) -> Element:
    """The elements of a page, however broken. Raises Refused when there are none."""
    parser = html.HTMLParser(huge_tree=True, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        raise Refused("no_text", "has no text in it") from None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):  # the rest of it would be missing
        raise Refused("damaged", "is nested deeper than 2,048 elements, and cannot be read to its end")
    return root


def _content(root: Element) -> Element:
    """The part that is the content, where the page says so and most of what can be seen is in it."""
    named = root.xpath("//main | //*[@role='main']") or root.xpath("//article")
    if len(named) != 1:
        return root
    whole = _visible_size(root)
    return named[0] if _visible_size(named[0]) >= CONTENT_SHARE * whole else root


def _visible_size(root: Element) -> int:
    return sum(len(fold(text)) for text in _texts(root))


def _texts(root: Element) -> Iterator[str]:
    """Every visible text below an element, in order, found without recursion: pages can be as deep as they like."""
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if event == "start":
            if _is_unseen(element, root):
                walk.skip_subtree()
            elif element.text:
                yield element.text
        elif element is not root and element.tail:
            yield element.tail


def _first_heading(root: Element) -> str:
    found = root.find(".//h1")
    return fold(found.text_content()) if found is not None else ""


def _is_unseen(element: Element, root: Element) -> bool:
    if not isinstance(element.tag, str):
        return True
    if element is root:
        return False
    says = element.attrib
    return (
        element.tag in UNSEEN
        or "hidden" in says
        or says.get("aria-hidden") == "true"
        or says.get("role") in ROLES
        or (element.tag == "header" and says.get("role") != "heading" and element.getparent().tag == "body")
        or bool(HIDDEN.search(says.get("style", "")))
        or bool(NOISE.search(says.get("class", "")))
    )


# ---------------------------------------------------------------------------------------------- writing


def write(root: Element, draft: Draft) -> None:
    """What a reader sees of an element, block by block."""
    writer = _Writer(draft)
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if event == "start":
            if _is_unseen(element, root):
                walk.skip_subtree()
            elif element.tag == "table" and _holds_data(element):
                writer.table(element)
                walk.skip_subtree()
            elif element.tag == "pre":
                writer.code("".join(_texts(element)))
                walk.skip_subtree()
            else:
                writer.begin(element)
        else:
            if not _is_unseen(element, root):
                writer.end(element)
            if element is not root and element.tail:
                writer.words(element.tail)
    writer.flush()


def _holds_data(table: Element) -> bool:
    """False for a table that only arranges a page: one that holds tables, headings or lists, or has a single column."""
    if table.get("role") == "presentation" or table.find(".//table") is not None:
        return False
    if any(True for _ in table.iter("h1", "h2", "h3", "ul", "ol", "p", "pre")) and table.find(".//th") is None:
        return False
    return any(sum(1 for _ in row.iter("td", "th")) > 1 for row in table.iter("tr"))


class _Writer:
    """Words gather until a block begins or ends; then they are one block."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._words: list[str] = []
        self._level = 0  # of the heading that is open
        self._lists = 0  # how many lists are open
        self._bullet = ""
        self._in_list = False  # the block before was an item of the list that is still open

    def words(self, text: str) -> None:
        self._words.append(text)

    def begin(self, element: Element) -> None:
        tag = str(element.tag)
        if tag == "br":
            self._words.append("\0")  # a line end that folding must not fold
        elif tag in BLOCKS:
            self.flush()
            if tag in ("ul", "ol"):
                self._lists += 1
            elif tag == "li":
                self._bullet = "  " * max(self._lists - 1, 0) + "- "
            elif re.fullmatch("h[1-6]", tag):
                self._level = int(tag[1])
        if element.text:
            self._words.append(element.text)

    def end(self, element: Element) -> None:
        tag = str(element.tag)
        if tag not in BLOCKS:
            return
        self.flush()
        if tag in ("ul", "ol"):
            self._lists -= 1
            self._in_list = self._lists > 0
        elif re.fullmatch("h[1-6]", tag):
            self._level = 0
        elif tag == "li":
            self._bullet = ""

    def table(self, element: Element) -> None:
        self.flush()
        caption = element.find("caption")
        if caption is not None:
            self._draft.block(fold("".join(_texts(caption))))
        rows = [
            [fold("".join(_texts(cell))).strip() for cell in row.iter("td", "th") if not _is_unseen(cell, element)]
            for row in element.iter("tr")
            if not _is_unseen(row, element)
        ]
        self._draft.block(as_text(rows))

    def code(self, text: str) -> None:
        self.flush()
        if text.strip():
            fence = "```" if "```" not in text else "~~~~"
            self._draft.block(f"{fence}\n{text.strip(chr(10))}\n{fence}")

    def flush(self) -> None:
        """What has gathered becomes a block."""
        lines = [fold(line).strip() for line in "".join(self._words).split("\0")]
        self._words.clear()
        text = "\n".join(line for line in lines if line)
        if not text:
            return
        if self._level:
            self._draft.heading(self._level, text)
        else:
            item = bool(self._bullet) or self._in_list
            self._draft.block(self._bullet + text, "\n" if item and self._in_list else "\n\n")
            self._in_list = self._lists > 0
            self._bullet = ""
            return
        self._in_list = False
