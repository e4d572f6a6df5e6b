"""What counts as code in a model's Markdown: here it stands between « and »."""

import re

import pytest

from domain.codeblocks import CodeTracker


@pytest.mark.parametrize(
    "marked",
    [
        "a «`b`» c",
        "«``a ` b``» c",
        r"\`a«` b»",  # the first tick is escaped, so the second opens
        r"\\«`a`» b",
        "a «`b»\nc",
        "«```py\nx\n``\n```\n»d",
        "«```a```» b",
        "x «``` b»\nc",
        "«~~~\na\n~~~~\n»b",
        "«~~»a~~ b",  # ticks that open nothing are no text to read either
        "a ~~~ b",
        "- «```\n  a\n  ```\n»b",
        "> «~~~\n> a\n> ~~~\n»b",
        "«```\nnever closed\n`` `\n»"[:-1],
        "    a",
    ],
)
def test_code_is_told_from_text(marked: str) -> None:
    tracker = CodeTracker()
    told = [(tracker.takes(char), char) for char in re.sub("[«»]", "", marked)]
    wanted, inside = [], False
    for char in marked:
        if char in "«»":
            inside = char == "«"
        else:
            wanted.append((inside, char))
    assert told == wanted


def test_a_very_long_line_does_not_close_a_fence() -> None:
    tracker = CodeTracker()
    assert all(tracker.takes(char) for char in "```\n" + "`" * 1000 + "\nx")
