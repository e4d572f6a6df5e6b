"""A build shared out over a cluster: the same version as a build in one process, and the same account of its files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.retrieval.parsing.made import pdf
from tests.tidegate.tiny import FILES, sets, write_corpus
from tidegate.console import Code

pytestmark = [pytest.mark.ray, pytest.mark.slow]

LINES = "".join(
    json.dumps({"id": f"note-{i}", "text": f"# Pump {i % 7}\n\nThe pump of line {i % 5} runs on day {i}."}) + "\n"
    for i in range(700)  # more than one block of records, and texts that come twice
)


def build(corpus: Path, data: Path, *more: str) -> dict[str, object]:
    """What `tidegate build --json` says, in a process of its own, where Ray can be started and ended."""
    ran = subprocess.run(  # noqa: PLW1510 - the code is looked at below
        [sys.executable, "-m", "tidegate", "build", str(corpus), "--json", *more, *sets(data)],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ran.returncode == Code.PARTIAL, ran.stderr
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of the versions but the time of building."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "version.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_a_build_on_ray_is_the_build_in_one_process_byte_for_byte(tmp_path: Path) -> None:
    bad = {"binary.txt": "\0\1\2", "notes.jsonl": LINES + "no JSON\n", "blank.md": " \n"}
    apart = {"page.html": "<h1>Lamps</h1><p>Wipe them dry.</p>", "list.csv": "Pump;Bar\nP3;40", "torn.pdf": "%PDF-1.4"}
    corpus = write_corpus(tmp_path / "corpus", {**FILES, **bad, **apart})
    (corpus / "two.pdf").write_bytes(pdf(["Gears need oil."], ["Belts need covers."]))
    here = build(corpus, tmp_path / "here")
    shared = build(corpus, tmp_path / "shared", "--on", "ray", "--workers", "2")
    versions = Path("registry", "versions")
    assert contents(tmp_path / "here" / versions) == contents(tmp_path / "shared" / versions)
    assert here["outcomes"] == shared["outcomes"]
    assert here["files"] == shared["files"]
