"""Files made in tests, byte by byte or by the libraries that people's programs resemble."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence


def zipped(entries: Mapping[str, bytes | str]) -> bytes:
    """A zip archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return held.getvalue()


def unzipped(content: bytes) -> dict[str, bytes | str]:
    """The entries of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def stream(content: bytes, filters: int = 0) -> bytes:
    """A stream of a PDF, deflated so many times."""
    for _ in range(filters):
        content = zlib.compress(content, 9)
    how = b"/Filter[" + b"/FlateDecode" * filters + b"]" if filters else b""
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), how, content)


def pdf_of(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, of which the first is the catalogue."""
    out, starts = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    return out + head + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))


def pdf(*pages: Sequence[str]) -> bytes:
    """A PDF with these lines a page, set in Helvetica from the top."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, lines in enumerate(pages):
        shown = b" ".join(b"(%s) Tj 0 -14 Td" % line.encode("latin-1") for line in lines)
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>"
            % (5 + 2 * number),
            stream(b"BT /F 12 Tf 72 720 Td " + shown + b" ET" if lines else b""),
        ]
    return pdf_of(objects)


def epub(chapters: Mapping[str, str], title: str = "Pumps") -> bytes:
    """A book with these pages by name, in this order."""
    items = "".join(
        f'<item id="c{i}" href="{name}" media-type="application/xhtml+xml"/>' for i, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    pages = {f"OPS/{name}": f"<html><body>{body}</body></html>" for name, body in chapters.items()}
    return zipped({"META-INF/container.xml": container, "OPS/book.opf": package, **pages})
