"""The stored evaluations of a data folder: what each is of, where it lies, and what the tracker called it.

    evaluations/<version>/<key>.jsonl     the journal of one evaluation (eval/journal.py)
    evaluations/<version>/<key>.run       the run that the experiment tracker has for it

The key is a digest of everything in the header, so another question set, setting or line of code is another file.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from eval.journal import Header
from eval.questions import Question, fingerprint
from retrieval.registry import cannot_write
from tidegate import code
from tidegate.effective import digest

if TYPE_CHECKING:
    from tidegate.settings import Settings

SERVED = "served"  # where evaluations lie of whatever an address serves


def header(settings: "Settings", version: str, questions: Sequence[Question], url: str = "") -> Header:
    """What an evaluation of `version` on these questions is of; with `url`, of what is served there."""
    return Header(version, fingerprint(questions), digest(settings), code.asking(), url)


def journal_path(settings: "Settings", of: Header) -> Path:
    """Where the replies of that evaluation are kept."""
    key = hashlib.sha256(json.dumps(asdict(of), sort_keys=True).encode()).hexdigest()[:16]
    return settings.data_dir / "evaluations" / (of.version or SERVED) / f"{key}.jsonl"


def note_run(settings: "Settings", of: Header, run_id: str) -> None:
    """Remember the run that the tracker has for that evaluation. Raises StorageError when it cannot be written."""
    path = journal_path(settings, of).with_suffix(".run")
    try:
        path.write_text(f"{run_id}\n", "utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def run_of(settings: "Settings", of: Header) -> str:
    """The run that the tracker has for that evaluation, empty when it has none."""
    try:
        return journal_path(settings, of).with_suffix(".run").read_text("utf-8").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
