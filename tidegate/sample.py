"""The sample library on disk: made once from its seed, below the data folder, when no corpus is named."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import StorageError

if TYPE_CHECKING:
    from tidegate.settings import Settings


def sample_folder(settings: "Settings") -> Path:
    """Where the sample library of these settings lies; other seeds and sizes are other libraries."""
    chosen = settings.sample
    return settings.data_dir / "sample" / f"seed-{chosen.seed}-{chosen.documents}-{chosen.questions}"


def questions_path(settings: "Settings") -> Path:
    """The sample library's question set."""
    return sample_folder(settings) / "questions.jsonl"


def corpus_path(settings: "Settings") -> Path:
    """The sample library's documents."""
    return sample_folder(settings) / "documents.jsonl"


def make_sample(settings: "Settings") -> Path:
    """The folder of the sample library, written now unless all of it is there. Equal settings write equal bytes."""
    from eval.factgraph import generate, write
    from tidegate.compose import SUGGESTIONS

    folder, chosen, suggestions = sample_folder(settings), settings.sample, settings.data_dir / SUGGESTIONS
    if all(path.exists() for path in (corpus_path(settings), questions_path(settings), suggestions)):
        return folder
    library = generate(chosen.seed, chosen.documents, chosen.questions)
    write(library, folder)
    try:
        suggestions.write_text(json.dumps([q.query for q in library.suggestions], ensure_ascii=False), "utf-8")
    except OSError as error:
        raise StorageError(f"{suggestions} cannot be written ({error.strerror}): free or unlock the disk.") from error
    return folder
