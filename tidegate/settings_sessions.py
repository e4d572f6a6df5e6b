"""How much of a conversation goes on, and where it is kept between questions: part of settings.py."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tidegate.section import Section

Database = Annotated[
    str,
    StringConstraints(max_length=2048, pattern=r"^(sqlite:///|postgresql(\+psycopg)?://)\S+$"),
    "sqlite:////path/file or postgresql://user@host/name",
]


class Sessions(Section):
    """How conversations go on from question to question."""

    store: Literal["none", "sql"] = Field(
        default="none", description="none: the client carries the conversation; sql: a database remembers it too."
    )
    url: Database | None = Field(
        default=None, description="Database of store sql. Absent: the SQLite file sessions.db in data_dir."
    )
    keep_hours: float = Field(default=24.0, ge=0.01, le=8760, description="Hours a database keeps one after its turn.")
    max_kept: int = Field(
        default=100_000, ge=1, le=100_000_000, description="Conversations a database keeps; the least recent leave."
    )
    turns: int = Field(default=40, ge=2, le=200, description="Turns that go on; questions and answers count one each.")
    chars: int = Field(default=200_000, ge=1000, le=1_000_000, description="Characters of turns that go on, at most.")
