"""How documents are taken in over HTTP: part of settings.py."""

from pydantic import Field

from tidegate.section import Section


class Uploads(Section):
    """What an upload may be, and what becomes of it."""

    max_bytes: int = Field(
        default=20_000_000, ge=1024, le=1_000_000_000, description="Largest upload, in bytes; it is held in memory."
    )
    max_waiting: int = Field(default=20, ge=1, le=10_000, description="Uploads that may wait; then they are refused.")
    auto: bool = Field(
        default=True, description="What passes the gate goes to people by itself, as a canary; the first to all."
    )
