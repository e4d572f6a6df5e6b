"""Evidence and turns out of bare texts, for tests."""

from domain.types import Chunk, Evidence, Role, SourceRef, Turn


def evidence(*texts: str, title: str = "", heading: str = "", published: str = "") -> tuple[Evidence, ...]:
    """One numbered piece of evidence per text, all readable by group `staff` of tenant `acme`."""
    return tuple(
        Evidence(
            f"S{i}",
            Chunk(
                f"d{i}-0-aa",
                text,
                0,
                heading,
                SourceRef(f"d{i}", title, "", "kb", published),
                "acme",
                frozenset({"staff"}),
            ),
            1,
            10,
        )
        for i, text in enumerate(texts, 1)
    )


def user(text: str) -> Turn:
    return Turn(Role.USER, text)


def assistant(text: str) -> Turn:
    return Turn(Role.ASSISTANT, text)
