"""A corpus on disk: everything that is read, and everything that is left out with its reason."""

import gzip
import json
import os
from pathlib import Path

import pytest

from domain.errors import ConfigError, CorpusError
from domain.ingestion import FileOutcome, FileStatus
from domain.types import Document
from retrieval.documents import Corpus
from retrieval.records import clean, decode

STAFF = frozenset({"staff"})


def read(root: Path, **settings: object) -> tuple[dict[str, Document], dict[str, FileOutcome]]:
    corpus = Corpus(root, default_groups=STAFF, **settings)  # type: ignore[arg-type]  # settings are literals here
    return {document.doc_id: document for document in corpus}, {outcome.path: outcome for outcome in corpus.outcomes}


def lines(path: Path, *records: object) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def test_a_text_file_is_named_by_its_path_whatever_letters_it_has(tmp_path: Path) -> None:
    (tmp_path / "my pumps ü").mkdir()
    (tmp_path / "my pumps ü" / "pump 1.txt").write_text("The pump runs.", "utf-8")
    documents, outcomes = read(tmp_path)
    assert documents["my pumps ü/pump 1.txt"].title == "pump 1"
    assert outcomes["my pumps ü/pump 1.txt"].status is FileStatus.INDEXED


def test_a_decomposed_name_gives_the_composed_id(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301.txt").write_text("open", "utf-8")
    assert list(read(tmp_path)[0]) == ["caf\u00e9.txt"]


def test_front_matter_says_title_groups_tenant_date_source_and_uri(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "---\ntitle: Pump P3\ngroups: [ops, finance]\ntenant: harbour\npublished: 2026-01-31\n"
        "source: wiki\nuri: https://wiki.example/p3\nlayout: page\n---\n# Other\n\nIt runs.\n",
        "utf-8",
    )
    found = read(tmp_path)[0]["a.md"]
    assert (found.title, found.groups, found.tenant) == ("Pump P3", frozenset({"ops", "finance"}), "harbour")
    assert (found.published, found.source, found.uri) == ("2026-01-31", "wiki", "https://wiki.example/p3")
    assert found.text == "# Other\n\nIt runs.\n"


def test_without_front_matter_the_first_heading_is_the_title(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("## Aside\n\n# Pump P3 #\n\nIt runs.", "utf-8")
    assert read(tmp_path)[0]["a.md"].title == "Pump P3"


def test_text_between_two_rulers_is_no_front_matter(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nJust words.\n---\nMore.", "utf-8")
    assert "Just words." in read(tmp_path)[0]["a.md"].text


@pytest.mark.parametrize(
    "front", ["groups: [ops", "published: 2026-13-45", "groups: 7", "groups: [on]", "groups: ['']"]
)
def test_access_that_is_not_understood_is_refused_rather_than_widened(tmp_path: Path, front: str) -> None:
    (tmp_path / "a.md").write_text(f"---\n{front}\n---\nSecret.", "utf-8")
    documents, outcomes = read(tmp_path)
    assert not documents
    assert outcomes["a.md"].status is FileStatus.FAILED


def test_json_lines_know_both_spellings_of_id_and_groups(tmp_path: Path) -> None:
    lines(
        tmp_path / "notes.jsonl",
        {"id": "a", "text": "one", "groups": ["ops"]},
        {"doc_id": "b", "text": "two", "acl": "ops"},
        {"_id": 3, "text": "three", "acl": None},
    )
    documents, outcomes = read(tmp_path)
    assert {name: document.groups for name, document in documents.items()} == {
        "a": frozenset({"ops"}),
        "b": frozenset({"ops"}),
        "3": STAFF,
    }
    assert outcomes["notes.jsonl"].reason == "3 of 3 indexed"


def test_a_bad_line_does_not_cost_its_neighbours_and_says_all_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{oops\n[1]\n{"text": 7, "title": true}\n\n{"id": "b", "text": "?!"}\n')
    documents, outcomes = read(tmp_path)
    assert list(documents) == ["a"]
    assert outcomes["notes.jsonl:2"].code == outcomes["notes.jsonl:3"].code == "not_json"
    assert outcomes["notes.jsonl:4"].reason == "text must be a string; id is missing; title must be text, not bool"
    assert outcomes["notes.jsonl:6"].status is FileStatus.SKIPPED


def test_an_empty_list_of_groups_means_nobody_and_is_remarked(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": "a", "text": "one", "groups": []})
    documents, outcomes = read(tmp_path)
    assert documents["a"].groups == frozenset()
    assert outcomes["a.jsonl"].status is FileStatus.WARNING
    assert "nobody may read it" in outcomes["a.jsonl"].reason


def test_a_remark_that_repeats_is_told_once_with_its_count(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", *({"id": str(i), "text": "one", "groups": []} for i in range(3)))
    assert read(tmp_path)[1]["a.jsonl"].reason.endswith("(3 records)")


def test_a_beir_folder_is_its_corpus_without_questions(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as file:
        file.write('{"_id": "d1", "title": "Wings", "text": "Lift."}\n')
    lines(tmp_path / "queries.jsonl", {"_id": "q1", "text": "what lifts"})
    for form in ("beir", "auto"):
        documents, _ = read(tmp_path, format=form)
        assert {name: document.title for name, document in documents.items()} == {"d1": "Wings"}


def test_a_folder_without_a_beir_corpus_is_refused_when_beir_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="has no corpus"):
        read(tmp_path, format="beir")


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="absent does not exist"):
        read(tmp_path / "absent")


def test_an_unknown_format_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'parquet' is not known"):
        Corpus(tmp_path, format="parquet")


def test_unknown_kinds_are_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / "sheet.ods").write_bytes(b"x")
    assert "'.ods' is not read here" in read(tmp_path)[1]["sheet.ods"].reason


@pytest.mark.parametrize("content", [b"", b" \t ", b"\n\r\n\r\n", b"... --- !!! ###", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_blank_files_are_skipped_and_reported(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    documents, outcomes = read(tmp_path)
    assert not documents
    assert (outcomes[name].status, outcomes[name].code) == (FileStatus.SKIPPED, "blank")


def test_links_are_followed_only_within_the_corpus(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (root / "sub" / "a.txt").write_text("inside")
    (root / "leaves.txt").symlink_to(outside / "secret.txt")
    (root / "leaves").symlink_to(outside)
    (root / "again.txt").symlink_to(root / "sub" / "a.txt")
    (root / "loop").symlink_to(root)
    (root / "broken.txt").symlink_to(root / "gone.txt")
    (root / "itself.txt").symlink_to(root / "itself.txt")
    documents, outcomes = read(root)
    assert set(documents) == {"sub/a.txt", "again.txt"}
    assert outcomes["leaves.txt"].code == outcomes["leaves"].code == "outside"
    assert (outcomes["loop"].code, outcomes["broken.txt"].code) == ("link", "not_a_file")
    assert outcomes["itself.txt"].code == "not_a_file"


def test_hidden_files_and_folders_are_skipped_with_one_line_each(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config.txt").write_text("x")
    (tmp_path / ".notes.txt").write_text("x")
    documents, outcomes = read(tmp_path)
    assert not documents
    assert {name: outcome.code for name, outcome in outcomes.items()} == {".git": "hidden", ".notes.txt": "hidden"}


def test_a_file_that_may_not_be_read_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "a.txt").chmod(0)
    if os.access(tmp_path / "a.txt", os.R_OK):
        pytest.skip("this user may read everything")
    documents, outcomes = read(tmp_path)
    assert list(documents) == ["b.txt"]
    assert outcomes["a.txt"].code == "unreadable"


def test_a_folder_that_may_not_be_entered_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    for mode in (0o000, 0o400):  # not even its names; its names, but nothing in it
        (tmp_path / "a").chmod(mode)
        try:
            if os.access(tmp_path / "a", os.X_OK):
                pytest.skip("this user may enter every folder")
            documents, outcomes = read(tmp_path)
        finally:
            (tmp_path / "a").chmod(0o700)
        assert list(documents) == ["b.txt"]
        assert {outcome.code for path, outcome in outcomes.items() if path.startswith("a")} == {"unreadable"}


def test_a_broken_archive_fails_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": "a", "text": "one"}\n')[:-9])
    (tmp_path / "b.txt").write_text("two")
    documents, outcomes = read(tmp_path)
    assert "b.txt" in documents
    assert (outcomes["a.jsonl.gz"].status, outcomes["a.jsonl.gz"].code) == (FileStatus.FAILED, "unreadable")


def test_two_documents_with_one_id_are_refused_naming_both_places(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": "x", "text": "one"}, {"id": "y", "text": "one"})
    lines(tmp_path / "b.jsonl", {"id": "y", "text": "two"}, {"id": "x", "text": "two"})
    with pytest.raises(CorpusError) as raised:
        read(tmp_path)
    assert "'y' in a.jsonl:2 and in b.jsonl:1; 'x' in a.jsonl:1 and in b.jsonl:2" in str(raised.value)


def test_an_impossible_date_is_left_out_with_a_remark(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"id": "a", "text": "one", "published": "last spring"})
    documents, outcomes = read(tmp_path)
    assert documents["a"].published == ""
    assert "is not an ISO date" in outcomes["a.jsonl"].reason


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("The pump – “naïve” façade", "utf-8-sig"),
        ("The pump", "utf-16"),
        ("“Kühlkörper” prüfen, 5 €", "cp1252"),
        ("café", "cp1252"),
        ("冷却水の交換は月曜日に行います。", "shift_jis"),
        ("更换冷却液之前请先关闭主阀门。每周五检查皮带的松紧。", "gb18030"),
        ("Перед заменой закройте клапан", "cp1251"),
    ],
)
def test_text_in_a_usual_encoding_is_read_as_it_was_written(text: str, encoding: str) -> None:
    read_as, remarks = decode(text.encode(encoding))
    assert clean(read_as) == text
    assert bool(remarks) == (encoding not in ("utf-8-sig", "utf-16"))


def test_control_characters_and_torn_surrogates_leave_and_line_ends_become_plain() -> None:
    assert clean("\ufeffa\x00b\r\nc\rd\x0ce\tf\ud83dg\x9bh") == "ab\nc\nd\ne\tf\ufffdgh"


def test_zero_width_characters_stay_because_quotes_show_the_file() -> None:
    assert clean("pass\u200bword") == "pass\u200bword"


def test_reading_twice_gives_the_same_documents_and_outcomes(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.xyz"):
        (tmp_path / name).write_text(f"text {name}")
    corpus = Corpus(tmp_path)
    first, outcomes = list(corpus), list(corpus.outcomes)
    assert (list(corpus), corpus.outcomes) == (first, outcomes)
    assert [document.doc_id for document in first] == ["a.txt", "b.txt"]


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_a_binary_file_with_the_name_of_a_text_fails_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(range(256)))
    (tmp_path / "b.txt").write_text("two")
    documents, outcomes = read(tmp_path)
    assert list(documents) == ["b.txt"]
    assert (outcomes[name].status, outcomes[name].code) == (FileStatus.FAILED, "not_text")


def test_a_binary_line_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\x00\xff\n{"id": "one", "text": "one"}\n')
    documents, outcomes = read(tmp_path)
    assert list(documents) == ["one"]
    assert outcomes["a.jsonl:1"].code == "not_json"


def test_front_matter_that_unfolds_without_end_is_told_in_a_line(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, 10)]  # 8 ** 10 names
    (tmp_path / "a.md").write_text("\n".join(["---", *lines, "groups: *a9", "---", "text"]))
    documents, outcomes = read(tmp_path)
    assert not documents
    assert outcomes["a.md"].code == "bad_record"
    assert len(outcomes["a.md"].reason) < 200
