"""The sample library on disk: made once from its seed, below the data folder, when no corpus is named."""

from pathlib import Path
from typing import TYPE_CHECKING

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

    folder, chosen = sample_folder(settings), settings.sample
    if not (corpus_path(settings).exists() and questions_path(settings).exists()):
        write(generate(chosen.seed, chosen.documents, chosen.questions), folder)
    return folder
