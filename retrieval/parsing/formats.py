"""The table of what can be parsed, by the ending of a file's name; text, Markdown and JSON lines are reading.py's.

A parser is a function of bytes. Each is imported when the first file of its kind comes, in the process that reads it
(worker.py), and whatever a library raises is told as damage: nobody but us can act on a library's own words.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from retrieval.parsing.parsed import Limits, Parsed, Refused, plain

Parser = Callable[..., Parsed]  # (content, limits), and for mail what reads attachments

PARSERS = {
    ".html": "web_pages",
    ".htm": "web_pages",
    ".xhtml": "web_pages",
    ".pdf": "pdf",
    ".docx": "word",
    ".pptx": "slides",
    ".xlsx": "sheets",
    ".csv": "separated",
    ".tsv": "separated",
    ".epub": "epub",
    ".eml": "mail",
    ".ipynb": "notebook",
    ".json": "json_files",
    ".vtt": "transcripts",
    ".srt": "transcripts",
}
NESTED = 4  # messages attached to messages that are read


def parse(content: bytes, ending: str, limits: Limits, nested: int = 0) -> Parsed:
    """What the parser of this ending makes of a file. Raises Refused, and MemoryError where memory ends."""
    parser: Parser = import_module(f"retrieval.parsing.{PARSERS[ending]}").parse
    more: dict[str, Any] = {}
    if ending == ".eml":
        more["attached"] = lambda inside, kind: _attached(inside, kind, limits, nested + 1)
    try:
        return parser(content, limits, **more)
    except (Refused, MemoryError):
        raise
    except RecursionError:
        raise Refused("damaged", "is nested deeper than any reader follows: open it and save it anew") from None
    except Exception as error:
        raise Refused("damaged", f"cannot be read as {ending} ({type(error).__name__}): save it anew") from error


def _attached(content: bytes, ending: str, limits: Limits, nested: int) -> Parsed | None:
    if ending in (".txt", ".md", ".markdown", ".log"):
        from retrieval.parsing.decoding import text_of

        text, remarks = text_of(content)
        return Parsed(plain(text), remarks=remarks)
    if ending not in PARSERS:
        return None
    if nested > NESTED:
        raise Refused("too_deep", f"is nested more than {NESTED} messages deep")
    return parse(content, ending, limits, nested)
