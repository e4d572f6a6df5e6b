"""Who may read a file that does not say it itself: the nearest word counts, and what is no word leaves the file out."""

from pathlib import Path

import pytest

from domain.ingestion import FileStatus
from retrieval.access_rules import Rule, ruled
from retrieval.documents import Corpus


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def readers(root: Path, *rules: Rule) -> dict[str, set[str]]:
    corpus = Corpus(root, "folder", frozenset({"default"}), rules=rules)
    return {document.doc_id: set(document.groups) for document in corpus}


def test_the_nearest_word_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "plain.txt": "x",
            "hr/pay.txt": "x",
            "hr/self.md": "---\ngroups: [own]\n---\nx",
            "hr/note.txt": "x",
            "hr/note.txt.access.yaml": "groups: [noted, also]\n",
            "hr/deep/er/pay.txt": "x",
            "hr/board/minutes.txt": "x",
            "hr/board/access.yaml": "groups: board\n",
            "hr/board/below/more.txt": "x",
            "hr/nobody/x.txt": "x",
            "hr/nobody/access.yaml": "groups: []\n",
        },
    )
    assert readers(tmp_path, Rule("hr/**", frozenset({"hr"})), Rule("**", frozenset({"late"}))) == {
        "plain.txt": {"late"},
        "hr/pay.txt": {"hr"},
        "hr/self.md": {"own"},
        "hr/note.txt": {"noted", "also"},
        "hr/deep/er/pay.txt": {"hr"},
        "hr/board/minutes.txt": {"board"},
        "hr/board/below/more.txt": {"board"},
        "hr/nobody/x.txt": set(),
    }
    assert readers(tmp_path)["plain.txt"] == {"default"}


def test_a_note_is_no_document_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x", "a.txt.access.yaml": "groups: hr", "access.yaml": "groups: staff"})
    corpus = Corpus(tmp_path, "folder")
    assert [document.doc_id for document in corpus] == ["a.txt"]
    assert {o.path: (o.status, o.code) for o in corpus.outcomes if o.path != "a.txt"} == {
        "a.txt.access.yaml": (FileStatus.SKIPPED, "access_note"),
        "access.yaml": (FileStatus.SKIPPED, "access_note"),
    }


@pytest.mark.parametrize(
    "note",
    [
        "", "[]", "hr", "groups:", "groups: 7", "groups: [1]", "groups: ['']", "group: [hr]", "groups: [hr]\ntenant: x",
        "groups: [hr", "\x00", "groups: {a: b}", "groups: [hr]\n" + "# long\n" * 20_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["a.txt.access.yaml", "access.yaml"])
def test_a_file_whose_note_is_not_understood_is_left_out_and_named(tmp_path: Path, place: str, note: str) -> None:
    write(tmp_path, {"in/a.txt": "secret", f"in/{place}": note, "b.txt": "open"})
    corpus = Corpus(tmp_path, "folder", frozenset({"default"}), rules=(Rule("**", frozenset({"everybody"})),))
    assert [document.doc_id for document in corpus] == ["b.txt"]
    failed = next(outcome for outcome in corpus.outcomes if outcome.path == "in/a.txt")
    assert (failed.status, failed.code) == (FileStatus.FAILED, "access")
    assert place in failed.reason


@pytest.mark.parametrize(
    ("path", "name", "fits"),
    [
        ("hr/**", "hr/a.md", True),
        ("hr/**", "hr/x/a.md", True),
        ("hr/**", "hr", False),
        ("hr/**", "hrx/a.md", False),
        ("hr/**", "HR/a.md", False),
        ("hr/**", "x/hr/a.md", False),
        ("**/hr/*", "x/hr/a.md", True),
        ("**/hr/*", "hr/a.md", True),
        ("*.md", "a.md", True),
        ("*.md", "x/a.md", False),
        ("**/*.md", "a.md", True),
        ("a?.md", "ab.md", True),
        ("a?.md", "a/.md", False),
        ("a.md", "aXmd", False),
        ("[a].md", "[a].md", True),
        ("**", "ü/\n", True),
    ],
)
def test_a_path_fits_whole_names_exactly(path: str, name: str, fits: bool) -> None:
    assert (ruled(name, [Rule(path, frozenset({"hr"}))]) is not None) is fits


def test_the_first_rule_that_fits_counts() -> None:
    rules = [Rule("hr/open.md", frozenset({"all"})), Rule("hr/**", frozenset({"hr"}))]
    assert [ruled(name, rules) for name in ("hr/open.md", "hr/b.md", "c.md")] == [{"all"}, {"hr"}, None]


NFC, NFD = "caf\u00e9.txt", "cafe\u0301.txt"


@pytest.mark.parametrize("name", ["access.yml", "Access.yaml", "ACCESS.YML", "a.txt.access.yml", "A.txt.Access.YAML"])
def test_a_note_whose_name_is_all_but_right_leaves_its_files_out_rather_than_going_unheard(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, {"in/a.txt": "secret", f"in/{name}": "groups: [hr]\n", "b.txt": "open"})
    corpus = Corpus(tmp_path, "folder", frozenset({"default"}))
    assert [document.doc_id for document in corpus] == ["b.txt"]
    failed = next(outcome for outcome in corpus.outcomes if outcome.path == "in/a.txt")
    assert (failed.status, failed.code) == (FileStatus.FAILED, "access")
    assert name in failed.reason


@pytest.mark.parametrize(("file", "note"), [(NFC, NFD), (NFD, NFC)])
def test_a_note_is_heard_however_the_accents_of_its_name_are_written(tmp_path: Path, file: str, note: str) -> None:
    write(tmp_path, {file: "x", f"{note}.access.yaml": "groups: [hr]\n"})
    assert readers(tmp_path) == {NFC: {"hr"}}


def test_a_rule_fits_however_its_accents_are_written(tmp_path: Path) -> None:
    write(tmp_path, {NFC: "x"})
    assert readers(tmp_path, Rule(NFD, frozenset({"hr"}))) == {NFC: {"hr"}}


def test_the_note_of_one_file_says_nothing_of_another_whose_name_differs_in_case(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x", "A.txt": "x", "a.txt.access.yaml": "groups: [hr]\n"})
    assert readers(tmp_path) == {"a.txt": {"hr"}, "A.txt": {"default"}}


@pytest.mark.parametrize("place", ["a.txt.access.yaml", "access.yaml"])
def test_a_note_that_is_no_file_leaves_its_files_out(tmp_path: Path, place: str) -> None:
    for folder in ("folder", "broken", "loop"):
        write(tmp_path, {f"{folder}/a.txt": "secret"})
    (tmp_path / "folder" / place).mkdir()
    (tmp_path / "broken" / place).symlink_to("nowhere")
    (tmp_path / "loop" / place).symlink_to(place)
    corpus = Corpus(tmp_path, "folder", frozenset({"default"}))
    assert list(corpus) == []
    assert [o.code for o in corpus.outcomes if o.path.endswith("/a.txt")] == ["access"] * 3


def test_a_note_about_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x", "b.txt.access.yaml": "groups: [hr]\n"})
    corpus = Corpus(tmp_path, "folder", frozenset({"default"}))
    assert [document.doc_id for document in corpus] == ["a.txt"]
    assert (
        next(o.reason for o in corpus.outcomes if o.path == "b.txt.access.yaml") == "is about a file that is not there"
    )
