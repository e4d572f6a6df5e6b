"""Settings to how files are read, and to where it is kept what became of them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.outcomes import OutcomeFiles
    from retrieval.parsing.parsed import Limits
    from tidegate.settings import Settings


def limits_of(settings: "Settings") -> "Limits":
    """What one file may take."""
    from retrieval.parsing.parsed import Limits

    chosen = settings.ingestion
    return Limits(chosen.seconds, chosen.memory_mb, chosen.file_mb, chosen.text_chars, chosen.ocr == "auto")


def make_outcomes(settings: "Settings") -> "OutcomeFiles":
    """The reports of the builds of this data folder."""
    from retrieval.outcomes import OutcomeFiles

    return OutcomeFiles(settings.data_dir / "outcomes")
