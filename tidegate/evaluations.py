"""The stored evaluations of a data folder: what each is of, and where it lies.

    evaluations/<version>/<key>.jsonl     the journal of one evaluation (eval/journal.py)

The key is a digest of everything in the header, so another question set, setting or line of code is another file.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from eval.journal import Found, Header, header_of, read
from eval.questions import Question, fingerprint
from retrieval.version_folders import VERSION_NAME
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


def folders(settings: "Settings") -> dict[str, Path]:
    """Where the evaluations of each version lie that was measured here; those of addresses are of none."""
    there = settings.data_dir / "evaluations"
    return {path.name: path for path in sorted(there.glob("v*")) if VERSION_NAME.fullmatch(path.name)}


def latest(settings: "Settings", version: str, dataset: str) -> tuple[Header, Found] | None:
    """The evaluation of `version` on that question set which was whole last, under whatever settings and code; None
    when there is none. Those of an address do not count.
    """
    whole = []
    for path in sorted((settings.data_dir / "evaluations" / version).glob("*.jsonl")):
        of = header_of(path)
        if of is not None and (of.version, of.dataset, of.url) == (version, dataset, ""):
            whole.append((of, read(path, of)))
    whole = [(of, found) for of, found in whole if found.finished_at]
    return max(whole, key=lambda one: one[1].finished_at, default=None)
