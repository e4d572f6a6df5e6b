"""Headings of Markdown texts: those that its parser finds, and the path above a stretch of text."""

import random
import re

from markdown_it import MarkdownIt

from retrieval.headings import Paths, headings_of

MARKS = [
    *(
        "#",
        "##",
        "###### ",
        "#######",
        "# ",
        "#\t",
        "##\n",
        "\\#",
        "#a",
        "x #y",
        " #",
        "*",
        "- x",
        "1. ",
        "5",
        "_",
        "&amp;",
    ),
    *("a", "Pump 3", "é", " ", "   ", "\t", "\n", "\n\n", "\x0b", "\x1c", "\u2028", "\xa0", "&amp;"),
]


def test_headings_are_those_of_a_markdown_parser() -> None:
    rng = random.Random(5)
    parser = MarkdownIt("commonmark")
    for _ in range(2000):
        text = "".join(rng.choice(MARKS) for _ in range(rng.randrange(1, 9)))
        tokens = parser.parse(text)
        begins = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]  # of each line, and the end
        wanted = [
            (int(token.tag[1:]), " ".join(tokens[i + 1].content.split()), *(begins[line] for line in token.map or ()))
            for i, token in enumerate(tokens)
            if token.type == "heading_open" and token.level == 0
        ]
        assert headings_of(text) == wanted, repr(text)


def test_a_long_run_of_marks_in_a_heading_takes_no_time() -> None:
    text = "# a" + " #" * 200_000 + "b\n\ntext\n"
    assert [title for _, title, _, _ in headings_of(text)] == ["a" + " #" * 200_000 + "b"]


def test_a_stretch_stands_under_the_headings_that_all_of_it_shares() -> None:
    text = "Before.\n\n# A\n\n## B\n\nUse it.\n\n## C\n\nLeave it.\n\n# D\n\nStop.\n"
    paths = Paths.of(text)

    def over(first: str, last: str) -> str:
        return paths.over((text.index(first), text.index(last) + len(last)))

    assert over("Before.", "Before.") == ""
    assert over("Use it.", "Use it.") == "A > B"
    assert over("# A", "Use it.") == "A > B"  # a heading without text of its own is above the next one
    assert over("Use it.", "Leave it.") == "A"
    assert over("Leave it.", "Stop.") == ""


def test_a_text_without_headings_has_empty_paths() -> None:
    assert Paths.of("").over((0, 0)) == ""
    assert Paths.of("One pump.").over((0, 9)) == ""
