"""PDF by PDFium, page by page: reading order across columns, real blanks between words, "page 12" for citations.

Lines that a page broke are joined to paragraphs again; short lines, as in tables, stay lines. Pages without text are
named. PDFium is native code, which is one reason why files are read in a process of their own.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import pypdfium2

from retrieval.parsing import ocr
from retrieval.parsing.parsed import Draft, Limits, Parsed, Refused, counted, listed
from retrieval.records import has_words

FULL = 0.7  # a line this much of the page's usual width, or more, goes on in the next one
LAST = 0.85  # a line that ends a sentence and is shorter than this much of it ends its paragraph
SOFT = "\xad"
PASSWORD = 4  # FPDF_ERR_PASSWORD of fpdfview.h

_BULLET = re.compile(r"\s*([-*•–◦▪·]|\(?\d{1,3}[.)]|[a-z]\))\s")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")  # Chinese and Japanese
_FILE_NAME = re.compile(r"\.\w{2,5}$|^(microsoft (word|powerpoint)|untitled|slide \d)", re.I)


def parse(content: bytes, limits: Limits) -> Parsed:
    """The document with a mark a page."""
    document = opened(content)
    try:
        draft = Draft(limits)
        blank: list[int] = []
        recognised: list[int] = []
        for number in range(1, len(document) + 1):
            draft.mark(f"page {number}")
            text, was_read = _page(document, number, limits)
            if was_read:
                recognised.append(number)
            elif not has_words(text):
                blank.append(number)
            for paragraph in paragraphs(text):
                draft.block(paragraph)
        if not draft.has_text or len(blank) == len(document):
            raise Refused("no_text", _scanned(len(document), limits))
        title = str(document.get_metadata_value("Title") or "")
    finally:
        document.close()
    remarks = []
    if recognised:
        remarks.append(f"page {listed(recognised)} had no text and was read by OCR: check what matters")
    if blank:
        remarks.append(f"page {listed(blank)} of {number} has no text: {_ocr_advice(limits)}")
    return draft.parsed({"title": "" if _FILE_NAME.search(title.strip()) else title}, tuple(remarks))


def opened(content: bytes) -> pypdfium2.PdfDocument:
    """The document. Raises Refused when it is locked or is none."""
    try:
        document = pypdfium2.PdfDocument(content)
        if len(document):
            return document
        document.close()
    except pypdfium2.PdfiumError as error:
        if error.err_code == PASSWORD:
            raise Refused(
                "password_required", "is locked with a password: save a copy without one, or leave it out"
            ) from None
    raise Refused("damaged", "is no PDF, or too damaged to find its pages: open it and save it anew")


def _page(document: pypdfium2.PdfDocument, number: int, limits: Limits) -> tuple[str, bool]:
    """The text of a page, and whether OCR read it."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return "", False
    try:
        textpage = page.get_textpage()
        try:
            text = textpage.get_text_range()
        finally:
            textpage.close()
        if not has_words(text) and limits.ocr and ocr.is_there():
            text = ocr.read(page.render(scale=ocr.DPI / 72, grayscale=True).to_pil())
            return text, has_words(text)
        return text, False
    finally:
        page.close()


def _scanned(pages: int, limits: Limits) -> str:
    return f"{counted(pages, 'page')} without any text, as scans are: {_ocr_advice(limits)}"


def _ocr_advice(limits: Limits) -> str:
    if not limits.ocr:
        return "OCR is off (ingestion.ocr), so pictures of text are not read"
    return "OCR found none" if ocr.is_there() else "OCR is on, but tesseract is not installed"


# ---------------------------------------------------------------------------------------------- lines to paragraphs


def paragraphs(text: str) -> Iterator[str]:
    """The text of a page as blocks: running text joined, short lines kept as lines of one block."""
    lines = _plain_lines(text)
    lengths = sorted(len(line) for line in lines if len(line) > 20)
    width = lengths[int(len(lengths) * 0.8)] if lengths else 0
    block: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        if line.strip():
            block.append(line.strip())
        if block and _ends(line, following, width):
            yield _joined(block, width)
            block = []
    if block:
        yield _joined(block, width)


def _ends(line: str, following: str, width: int) -> bool:
    """True when a block ends after this line: a blank one, or the short last line of a sentence."""
    if not line.strip() or not following.strip():
        return True
    return len(line) < LAST * width and bool(re.search(r"""[.!?。！？]["')\]”’]?$""", line))


def _joined(block: list[str], width: int) -> str:
    text = block[0]
    for before, line in pairwise(block):
        if before.endswith(SOFT):
            text = _glued(text, line)
        elif len(before) < FULL * width or _BULLET.match(line):
            text += "\n" + line
        else:
            text = _glued(text, line)
    return text.replace(SOFT, "")


def _plain_lines(text: str) -> list[str]:
    """The lines of a page; PDFium takes a line end with a hyphen for one character, which is put back."""
    text = re.sub("[\ufffe\x02]", f"{SOFT}\n", text).replace("\t", " ")
    return [line.rstrip() for line in text.splitlines()]


def _glued(text: str, line: str) -> str:
    """A broken line and the one it goes on in. The hyphen of "X-ray" and "A-12" stays, that of "exam-ple" goes."""
    if text.endswith(SOFT):
        within_word = text[-2:-1].islower() and line[0].islower()
        return text[:-1] + ("" if within_word else "-") + line
    if re.search(r"[^\W\d_A-Z]{2}[-\u2010]$", text) and line[0].islower():
        return text[:-1] + line
    if _UNSPACED.match(text[-1]) and _UNSPACED.match(line[0]):
        return text + line
    return f"{text} {line}"
