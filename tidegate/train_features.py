"""`tidegate train-reranker --kind features`: the eight weights of the feature reranker, as a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import BadRequest, StorageError
from tidegate.console import Code, note, say, say_json
from tidegate.writable import check_writable

if TYPE_CHECKING:
    from tidegate.settings import Settings


def train_features(settings: "Settings", pairs: Path | None, out: Path, seed: int, command: str, as_json: bool) -> Code:
    """Train the weights on the sets in `pairs` and write them to the file `out`."""
    from retrieval.feature_training import trained
    from tidegate.compose import make_embedder, word_vectors_of

    if pairs is None:
        raise BadRequest("--kind features learns from --pairs DIR, a folder of NAME/pairs.jsonl.gz.", "pairs")
    if out.is_dir():
        raise BadRequest(f"{out} is a folder, --kind features writes a file: name one, such as weights.json.", "out")
    check_writable(out.parent)
    note("searching some 4,000 lists and leaving out each domain in turn: minutes")
    record = trained(pairs, make_embedder(settings), word_vectors_of(settings), seed) | {"command": command}
    try:
        out.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise StorageError(f"{out} cannot be written ({error.strerror}): choose another --out.") from error
    if as_json:
        say_json(record)
    else:
        gained = record["gain_when_left_out"]
        say(f"{out}: gain in nDCG@10 when left out {min(gained.values()):+.4f} to {max(gained.values()):+.4f}")
    return Code.DONE
