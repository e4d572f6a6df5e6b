"""Books (EPUB): the parts of their spine in reading order, each read as a web page."""

import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from lxml import etree

from retrieval.parsing import web_pages
from retrieval.parsing.archives import checked, entry
from retrieval.parsing.decoding import markup_of
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused

Element = Any  # lxml
PAGES = ("application/xhtml+xml", "text/html")


def parse(content: bytes, limits: Limits) -> Parsed:
    """The book with a mark a part. The table of contents is left out: it repeats the headings of the parts."""
    with checked(content, limits) as archive:
        package, folder = _package(archive)
        draft, missing, part = Draft(limits), [], 1
        for path, told in _spine(package, folder):
            page = entry(archive, path)
            if page is None:
                missing.append(told)
                continue
            root = web_pages.tree(markup_of(page)[0]) if page.strip() else None
            if root is not None and not _is_contents(root):
                before = draft.size
                draft.mark(f"part {part}")
                web_pages.write(root, draft)
                part += draft.size > before  # covers and blank pages are no parts to a reader
    remarks = (f"{', '.join(missing[:3])} is named and not there",) if missing else ()
    stated = {name: package.findtext(f".//{{*}}metadata/{{*}}{name}") or "" for name in ("title", "date")}
    return draft.parsed({"title": stated["title"], "published": stated["date"]}, remarks)


def _package(archive: zipfile.ZipFile) -> tuple[Element, str]:
    """The list of what the book is made of, and the folder its paths begin in."""
    if entry(archive, "META-INF/encryption.xml") is not None and entry(archive, "META-INF/rights.xml") is not None:
        raise Refused("password_required", "is locked against copying (DRM): use a copy that is not")
    container = _xml(entry(archive, "META-INF/container.xml"))
    path = "" if container is None else container.xpath("string(//*[local-name()='rootfile']/@full-path)")
    package = _xml(entry(archive, path)) if path else None
    if package is None:
        raise Refused("damaged", "is no EPUB, or has lost the list of its parts: save it anew")
    return package, posixpath.dirname(path)


def _xml(content: bytes | None) -> Element | None:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, load_dtd=False)
    try:
        return etree.fromstring(content, parser) if content and content.strip() else None
    except etree.XMLSyntaxError:
        return None


def _spine(package: Element, folder: str) -> Iterator[tuple[str, str]]:
    """The path of every part in reading order, as the archive and as the book names it."""
    items = {item.get("id"): item for item in package.iter("{*}item")}
    for reference in package.iter("{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and item.get("media-type") in PAGES and "nav" not in (item.get("properties") or "").split():
            named = unquote(item.get("href") or "")
            yield posixpath.normpath(posixpath.join(folder, named)), named


def _is_contents(root: Element) -> bool:
    """True for a page of links with hardly any text between them."""
    text = "".join(root.find("body").itertext()) if root.find("body") is not None else ""
    linked = sum(len("".join(link.itertext())) for link in root.iter("a") if link.get("href"))
    return linked > 0 and linked > 0.6 * (len(" ".join(text.split())) - 30)
