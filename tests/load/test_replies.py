"""A reply as a client hears it."""

import json
import re
from typing import Any

import pytest

from load.replies import Heard, citations_complete, spent

CITATION = {"marker": "S1", "chunk_id": "tides#0", "doc_id": "tides", "title": "Tides", "quote": "High water."}
BODY = {"answer": "At high water [S1].", "citations": [CITATION], "grounding": "grounded"}


def heard(*told: tuple[str, Any]) -> Heard:
    """A stream heard with a clock that goes on by one at every look."""
    ticks = iter(range(1, 100))
    stream = Heard(lambda: float(next(ticks)))
    for event, payload in told:
        for line in (f"event: {event}", f"data: {json.dumps(payload)}", "", ": still working"):
            stream.line(line)
    return stream


def test_the_first_text_is_the_first_that_somebody_sees() -> None:
    stream = heard(("meta", {}), ("delta", {"text": " \n"}), ("delta", {"text": "At"}), ("delta", {"text": " high"}))
    assert (stream.first_at, stream.last_text_at, stream.pieces) == (1.0, 2.0, 2)


def test_a_whole_stream_has_no_failure() -> None:
    stream = heard(("delta", {"text": "At"}), ("citation", CITATION), ("done", BODY))
    assert stream.closed() == ""
    assert stream.citation_at == 2.0


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([("delta", {"text": "At"})], "ended without done or error"),
        ([("delta", {"text": "At"}), ("error", {"error": {"code": "timeout"}})], "error timeout"),
        ([("done", BODY), ("delta", {"text": "more"})], "after the end"),
        ([("done", BODY)], r"citation events \[\] and those of done \['S1'\] differ"),
        ([("citation", CITATION), ("done", BODY | {"citations": []})], "differ"),
        ([("done", BODY), ("done", BODY)], "after the end"),
    ],
)
def test_a_stream_that_is_not_whole_says_why(told: list[tuple[str, Any]], why: str) -> None:
    assert re.search(why, heard(*told).closed())


def test_what_is_no_json_is_a_failure() -> None:
    stream = Heard(lambda: 0.0)
    stream.line("event: delta")
    stream.line("data: {")
    assert stream.closed() == "event delta holds no JSON"


@pytest.mark.parametrize(
    ("changes", "complete"),
    [
        ({}, True),
        ({"answer": "At high water."}, False),  # a citation that nothing points to
        ({"answer": "At high water [S1] [S2]."}, False),  # a marker that leads nowhere
        ({"citations": [CITATION | {"quote": ""}]}, False),
        ({"answer": "Not covered.", "citations": [], "grounding": "ungrounded"}, True),
        ({"answer": "It is so.", "citations": [], "grounding": "grounded"}, False),
    ],
)
def test_citations_are_complete_when_markers_and_citations_are_each_others(changes: Any, complete: bool) -> None:
    assert citations_complete(BODY | changes) is complete


def test_what_nobody_measured_is_not_zero() -> None:
    usage = {"input_tokens": 5, "cache_read_tokens": 100, "cache_write_tokens": 1, "output_tokens": 7}
    assert spent({"usage": usage | {"measured": True}, "cost_usd": 0.5}) == (106, 7, 0.5)
    assert spent({"usage": usage | {"measured": False}, "cost_usd": None}) == (None, None, None)
