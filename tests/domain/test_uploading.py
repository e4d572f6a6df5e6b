"""Names of documents that are sent in: no path in any disguise, and every ordinary name."""

import unicodedata

import pytest

from domain.errors import BadRequest, TooLong
from domain.uploading import LONGEST_NAME, checked_name


@pytest.mark.parametrize(
    "name",
    ["../escape.txt", "..\\escape.txt", "/tmp/escape.txt", "a/b/../../../escape.txt", "nul\0.txt", ".", "..", "", "  ",
     ".hidden.md", "line\nend.md", "bell\x07.md", "half \ud800.md"],
)  # fmt: skip
def test_a_name_that_could_be_a_path_or_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadRequest):
        checked_name(name)


def test_a_name_that_file_systems_do_not_take_is_too_long() -> None:
    with pytest.raises(TooLong, match="at most 200 bytes"):
        checked_name("x" * 300)
    assert checked_name("x" * LONGEST_NAME)
    with pytest.raises(TooLong):
        checked_name("☃" * 70)  # 210 bytes


@pytest.mark.parametrize("name", ["report.md", "name with spaces ☃.txt", "größe 港.txt", "a..b.md", "-rf.txt", "~.txt"])
def test_ordinary_names_of_any_script_are_kept(name: str) -> None:
    assert checked_name(name) == name


def test_two_spellings_of_one_name_are_one_name() -> None:
    assert checked_name(unicodedata.normalize("NFD", "größe.txt")) == checked_name("größe.txt")
