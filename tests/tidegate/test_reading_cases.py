"""Files that break ingestion elsewhere: control characters, encodings, scans, passwords, scripts in pages.

Made here as small as they can be; where TIDEGATE_DATA names the outside files, those as well.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.retrieval.parsing.made import pdf
from tests.tidegate.tiny import sets
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]
DATA = os.environ.get("TIDEGATE_DATA")  # now: `here` takes such variables away
CLEAN = {f"clean{i}.txt": f"The clean file {i} is about flanges.".encode() for i in range(10)}


def case_files(number: int) -> Path:
    if not DATA:
        pytest.skip("TIDEGATE_DATA does not name the folder of the public collections")
    return Path(DATA) / "cases" / "inputs" / f"case-{number}"


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def built(here: Path, capsys: Capture) -> Callable[[Path], tuple[int, dict[str, object], dict[str, str]]]:
    """Builds a folder: exit code, counts, and status and code by file for those that are not simply indexed."""

    def build(folder: Path) -> tuple[int, dict[str, object], dict[str, str]]:
        code = main(["build", str(folder), "--json", *sets(here / "data")])
        told = json.loads(capsys.readouterr().out)
        files = told["files"]
        assert files["indexed"] + files["warning"] + files["skipped"] + files["failed"] == files["total"]
        assert files["total"] == len(list(folder.iterdir()))
        return code, files, {o["path"]: f"{o['status']}: {o['reason']}" for o in told["outcomes"]}

    return build


@pytest.fixture
def found(here: Path, capsys: Capture) -> Callable[[str], list[dict[str, str]]]:
    """The passages of the built version that a lexical search finds."""

    def search(query: str) -> list[dict[str, str]]:
        version = next((here / "data" / "registry" / "versions").iterdir()).name
        asked = ["search", query, "--mode", "lexical", "--json", "--version", version]
        assert main([*asked, *sets(here / "data")]) == 0
        hits: list[dict[str, str]] = json.loads(capsys.readouterr().out)["hits"]
        return hits

    return search


Built = Callable[[Path], tuple[int, dict[str, object], dict[str, str]]]
Found = Callable[[str], list[dict[str, str]]]


# ---------------------------------------------------------------------------------------------- control characters


def test_nul_bytes_leave_and_every_file_is_accounted_for(here: Path, built: Built, found: Found) -> None:
    files = {
        "nul.txt": b"Rotor speed is 3000 rpm.\0\0 Stator gap is 2 mm.",
        "inword.txt": b"The tur\0bine house is locked.",
    }
    code, counts, outcomes = built(write(here / "corpus", {**CLEAN, **files}))
    assert (code, counts["indexed"], counts["warning"]) == (Code.DONE, 10, 2)
    assert outcomes["nul.txt"] == "warning: 2 NUL characters left out"
    assert found("turbine")[0]["text"] == "The turbine house is locked."


@pytest.mark.data
def test_the_outside_files_with_nul_bytes_are_found_too(built: Built, found: Found) -> None:
    code, counts, _ = built(case_files(19))
    assert (code, counts["failed"]) == (Code.DONE, 0)
    assert found("turbine")
    assert found("stator")


# ---------------------------------------------------------------------------------------------- encodings


def test_files_in_other_encodings_are_read_and_said_to_be(here: Path, built: Built, found: Found) -> None:
    files = {
        "good1.txt": b"The first good file is about cams.",
        "good2.txt": "Zweite gute Datei über Nocken.".encode(),
        "cp1252.txt": "Prüfung für “Müller” – Torx 25.".encode("cp1252"),
        "broken.txt": "Größe, Länge, Höhe: ".encode() + b"\xff\xfe\xc3\x28 torque wrench",
        "mixed.txt": b"first line torque\rsecond line\r\nthird line\nfourth line",
        "wide.txt": "The gasket is wide.".encode("utf-16-le"),
        "binary.txt": bytes(range(256)),
    }
    code, counts, outcomes = built(write(here / "corpus", files))
    assert (code, counts["failed"]) == (Code.PARTIAL, 1)
    assert "read as cp1252" in outcomes["cp1252.txt"]
    assert "at offset 24" in outcomes["broken.txt"]
    assert outcomes["binary.txt"].startswith("failed")
    assert "Müller" in found("Müller Prüfung")[0]["text"]
    assert "Größe, Länge" in found("Größe")[0]["text"]
    assert found("gasket")
    assert found("fourth")[0]["place"] == "lines 1-4"


@pytest.mark.data
def test_the_outside_files_in_other_encodings_stop_nobody(built: Built, found: Found) -> None:
    code, counts, outcomes = built(case_files(20))
    assert (code, counts["total"], counts["failed"]) == (Code.DONE, 5, 0)
    assert set(outcomes) == {"broken.txt", "cp1252.txt"}
    assert "Müller" in found("Müller")[0]["text"]
    assert found("fourth")[0]["place"] == "lines 1-4"


# ---------------------------------------------------------------------------------------------- scans and passwords


def test_a_scan_fails_and_half_a_scan_names_its_page(here: Path, built: Built, found: Found) -> None:
    files = {"scanned.pdf": pdf([]), "half.pdf": pdf(["Page one has readable words about gearboxes."], [])}
    code, counts, outcomes = built(write(here / "corpus", files))
    assert (code, counts["warning"], counts["failed"]) == (Code.PARTIAL, 1, 1)
    assert outcomes["scanned.pdf"].startswith("failed: 1 page without any text")
    assert outcomes["half.pdf"].startswith("warning: page 2 of 2 has no text")
    assert [(hit["doc_id"], hit["place"]) for hit in found("gearboxes")] == [("half.pdf", "page 1")]


@pytest.mark.data
def test_the_outside_scans_fail_and_are_named(built: Built, found: Found) -> None:
    code, _, outcomes = built(case_files(21))
    assert code == Code.PARTIAL
    assert outcomes["scanned.pdf"].startswith("failed")
    assert "page 2" in outcomes["half.pdf"]
    assert {hit["doc_id"] for hit in found("gearboxes readable")} == {"half.pdf"}


@pytest.mark.data
def test_only_a_password_for_reading_keeps_a_file_out(built: Built, found: Found) -> None:
    code, counts, outcomes = built(case_files(22))
    assert (code, counts["indexed"], counts["failed"]) == (Code.PARTIAL, 2, 1)
    assert "password" in outcomes["user_password.pdf"]
    assert {hit["doc_id"] for hit in found("sprockets")} == {"plain.txt", "owner_only.pdf"}


# ---------------------------------------------------------------------------------------------- pages with scripts

PAGE = (
    '<html><head><title>Tips & <b>tricks</b></title><style>.x{color:red}</style><script>var s="zzq-token-9";</script>'
    "</head><body><!-- hidden zzq-comment --><h1>Lamp care</h1><p>Wipe the lamp &amp; let it dry.</p>"
    "<img src=x onerror=\"document.title='pwned'\"><noscript>zzq-noscript</noscript></body></html>"
)


def test_scripts_styles_and_comments_of_a_page_are_not_found(here: Path, built: Built, found: Found) -> None:
    built(write(here / "corpus", {"page.html": PAGE.encode(), "other.txt": b"Something else."}))
    assert [hit["text"] for hit in found("lamp care")] == ["Wipe the lamp & let it dry."]
    for hidden in ("zzq-token-9", "zzq-comment", "zzq-noscript", "color:red", "onerror"):
        assert found(hidden) == []


@pytest.mark.data
def test_scripts_styles_and_comments_of_the_outside_page_are_not_found(built: Built, found: Found) -> None:
    built(case_files(23))
    assert "Wipe the lamp & let it dry." in [hit["text"] for hit in found("wipe the lamp")]
    for hidden in ("zzq-token-9", "zzq-comment", "zzq-noscript", "color:red"):
        assert not any(hit["doc_id"] == "page.html" for hit in found(hidden))
