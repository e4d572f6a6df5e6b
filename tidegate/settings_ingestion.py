"""What a file may take while it is read: part of settings.py. Of JSON lines the size is that of a line."""

from typing import Literal

from pydantic import Field

from tidegate.section import Section


class Ingestion(Section):
    """Limits of the process that reads a file; a file beyond them fails alone."""

    seconds: float = Field(default=60.0, ge=1, le=3600, description="Seconds for one file; then it is given up.")
    memory_mb: int = Field(
        default=1024, ge=256, le=65_536, description="Memory of the process that reads a file, in megabytes."
    )
    file_mb: int = Field(default=100, ge=1, le=10_000, description="Largest file that is read, in megabytes.")
    text_chars: int = Field(
        default=20_000_000, ge=1000, le=1_000_000_000, description="Characters of text that one file may hold."
    )
    ocr: Literal["off", "auto"] = Field(
        default="off",
        description="off: pages without text are named, not read; auto: tesseract reads them where it is installed.",
    )
