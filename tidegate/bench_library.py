"""Whole documents by the hundred thousand, for benches: sample libraries of many seeds, one after the other.

Names and numbers repeat as the vocabulary of one small world does; no two documents are the same.
"""

import json
from pathlib import Path

from domain.errors import BadRequest

A_SEED = 1000  # documents taken from each: its generator runs out of names at 1,200


def write_library(path: Path, documents: int, changed_every: int = 0) -> Path:
    """`path`, with one document a line; the same for equal arguments, and longer ones begin with the shorter.

    With `changed_every` so many documents, the first among them, have another title and are else the same.
    """
    from eval.factgraph import generate

    if documents < 1:
        raise BadRequest(f"documents = {documents}: a library has at least 1.", "documents")
    with path.open("w", encoding="utf-8") as lines:
        for first in range(0, documents, A_SEED):
            seed = 1 + first // A_SEED
            for i, document in enumerate(generate(seed, A_SEED, 0).documents[: documents - first], first):
                revised = " (revised)" if changed_every and i % changed_every == 0 else ""
                record = {
                    "id": f"{seed}-{document.doc_id}",
                    "title": document.title + revised,
                    "text": document.text,
                    "groups": ["public"],
                }
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path
