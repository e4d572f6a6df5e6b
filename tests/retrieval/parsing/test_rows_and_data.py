"""CSV, JSON, notebooks and transcripts: what is a row, a value, a cell, a cue."""

import json

import pytest

from retrieval.parsing import json_files, notebook, separated, transcripts
from retrieval.parsing.parsed import Limits, Refused
from retrieval.parsing.tables import as_text, names_columns

LIMITS = Limits()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_rows_are_parted_by_what_parts_them(separator: str) -> None:
    rows = [["Pump", "Limit", "Place"], ["P3", "40 bar", "mill"], ["P4", "60 bar", "well"]]
    parsed = separated.parse("\n".join(separator.join(row) for row in rows).encode(), LIMITS)
    assert parsed.text == "Pump: P3; Limit: 40 bar; Place: mill\nPump: P4; Limit: 60 bar; Place: well"
    assert [mark.name for mark in parsed.marks] == ["row 2", "row 3"]


def test_a_separator_within_quotes_and_a_line_end_within_a_cell_part_nothing() -> None:
    parsed = separated.parse(b'Company;City\n"Martin;Lang\nand sons";Bath\nOther;Ulm', LIMITS)
    assert parsed.text == "Company: Martin;Lang and sons; City: Bath\nCompany: Other; City: Ulm"
    assert parsed.marks[-1].name == "row 3"


def test_rows_of_numbers_have_no_header() -> None:
    assert separated.parse(b"1,2\n3,4", LIMITS).text == "1 | 2\n3 | 4"


def test_a_very_wide_row_has_a_line_a_cell() -> None:
    names = [f"column {i}" for i in range(300)]
    text = separated.parse(f"{','.join(names)}\n{','.join('7' * 300)}".encode(), LIMITS).text
    assert text.splitlines()[:2] == ["column 0: 7", "column 1: 7"]


def test_a_header_names_every_column_that_has_cells_and_none_twice() -> None:
    assert names_columns(["a", "b"], ["1", "2"])
    assert not names_columns(["a", "a"], ["1", "2"])
    assert not names_columns(["a", "", "c"], ["1", "2", "3"])
    assert not names_columns(["a", "b"], None)
    assert as_text([["a", "b"]]) == "a | b"


def test_values_of_json_stand_under_their_paths() -> None:
    content = json.dumps({"title": "Pumps", "pump": {"bar": 40, "spare": None, "on": True}, "seals": [{"mm": 3}]})
    parsed = json_files.parse(content.encode(), LIMITS)
    assert parsed.text == "title: Pumps\npump.bar: 40\npump.on: true\nseals[0].mm: 3"
    assert parsed.fields == {"title": "Pumps"}


def test_a_list_of_records_keeps_their_readers() -> None:
    content = json.dumps([{"id": "a", "text": "one", "groups": ["hr"]}, {"id": "b", "text": "two"}])
    assert json_files.parse(content.encode(), LIMITS).records == (
        {"id": "a", "text": "one", "groups": ["hr"]},
        {"id": "b", "text": "two"},
    )


@pytest.mark.parametrize("content", [b"", b"{oops", b"[" * 100_000])
def test_what_is_no_json_is_damaged(content: bytes) -> None:
    with pytest.raises(Refused) as refused:
        json_files.parse(content, LIMITS)
    assert refused.value.code == "damaged"


def test_a_notebook_has_text_code_and_what_it_printed() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Pumps\n", "P3 first."]},
        {
            "cell_type": "code",
            "source": "print(bar)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["40\n"]},
                {"output_type": "stream", "name": "stderr", "text": ["99 %\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": "<Figure>"}},
                {"output_type": "error", "traceback": ["boom"]},
            ],
        },
    ]
    parsed = notebook.parse(json.dumps({"cells": cells}).encode(), LIMITS)
    assert parsed.text == "# Pumps\nP3 first.\n\n```python\nprint(bar)\n```\n\n```\n40\n```"
    assert [mark.name for mark in parsed.marks] == ["cell 1", "cell 2"]
    assert parsed.fields == {"title": "Pumps"}


VTT = """WEBVTT

NOTE not said

00:01.000 --> 00:03.000
<v Ana>The pump &amp; the valve

00:03.100 --> 00:05.000
<v Ana>are <i>checked</i> daily.

01:00:09.000 --> 01:00:10.000
<v Ben>By whom?
"""


def test_a_transcript_is_paragraphs_with_speakers_and_times() -> None:
    parsed = transcripts.parse(VTT.encode(), LIMITS)
    assert parsed.text == "Ana: The pump & the valve are checked daily.\n\nBen: By whom?"
    assert [mark.name for mark in parsed.marks] == ["00:00:01", "00:00:03", "01:00:09"]
    assert parsed.text[parsed.marks[1].start :].startswith("are checked")


def test_srt_is_read_alike_whatever_ends_its_lines() -> None:
    content = "1\r\n00:00:01,000 --> 00:00:02,500\r\nYes.\r\n\r\n2\r\n00:00:02,600 --> 00:00:03,000\r\nYes.\r\n"
    assert transcripts.parse(content.encode(), LIMITS).text == "Yes. Yes."


def test_captions_that_roll_are_told_once() -> None:
    first = "00:01.000 --> 00:02.000\nthe pump lifts water"
    content = f"WEBVTT\n\n{first}\n\n00:02.000 --> 00:03.000\nthe pump lifts water\nevery day"
    assert transcripts.parse(content.encode(), LIMITS).text == "the pump lifts water every day"


def test_a_transcript_without_cues_says_what_is_wanted() -> None:
    with pytest.raises(Refused, match="-->"):
        transcripts.parse(b"WEBVTT\n\nnothing", LIMITS)
