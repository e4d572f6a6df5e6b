"""The documents say what is so: links lead somewhere, commands and settings exist, the tree is the tree."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from domain.errors import TidegateError
from eval.questions import load as load_questions
from serving.statuses import status_of
from serving.telemetry import METRICS
from tidegate import keys
from tidegate.cli import VERBS, command
from tidegate.loading import load as load_settings

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
SOURCES = ("domain", "retrieval", "generation", "eval", "serving", "load", "tidegate")
SECTIONS = ("Context", "Decision", "What lost", "What would reopen it")
OPERATING = (ROOT / "docs" / "operating.md").read_text("utf-8")
FILES = (".py", ".yaml", ".yml", ".log")  # endings of files that are named like a setting: `access.yaml`
UNCHECKED = frozenset({"docs/log.md"})  # a record of the past: what it names may be gone

_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make, as the usual renderers name them."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page: Path) -> list[str]:
    """Every `tidegate ...` line of shell blocks, and every one in backticks."""
    text = page.read_text("utf-8")
    lines = [line.strip() for block in _FENCE.findall(text) for line in block.splitlines()]
    said = [line for line in [*lines, *_CODE.findall(prose(page))] if line.startswith("tidegate ")]
    return [line for line in said if not line.startswith("tidegate SECTION")]


def settings_keys(page: Path) -> set[str]:
    """Every word in backticks that begins with the name of a section and a dot."""
    sections = {key for key in keys.children("") if keys.children(key)}
    words = {word for code in _CODE.findall(prose(page)) for word in re.findall(r"[a-z][\w@]*(?:\.[\w@*]+)+", code)}
    modules = {word for word in words if (ROOT / f"{word.replace('.', '/')}.py").is_file()}
    named = {word for word in words - modules if word.split(".")[0] in sections and not word.endswith(FILES)}
    return {word.removesuffix(".*").replace("*", "retriever") for word in named}  # any stage will do for `stages.*.`


def tree() -> list[str]:
    """The files of the tree in docs/architecture.md, as paths from the root."""
    blocks = [block for block in _FENCE.findall((ROOT / "docs/architecture.md").read_text("utf-8")) if "\n  " in block]
    block = next(block for block in blocks if block.startswith("domain/ "))
    files, folder = [], ""
    for line in filter(None, block.splitlines()):
        word = line.split()[0]
        if line[0] != " ":
            folder = word
        else:
            files.append(folder + word)
    return files


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    lost = []
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / unquote(path)).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", [p for p in PAGES if name(p) not in UNCHECKED], ids=name)
def test_every_command_names_a_verb_and_options_that_exist(page: Path) -> None:
    wrong = []
    for line in commands(page):
        words = shlex.split(line, comments=True)[1:]
        verb = next((v for v in (" ".join(words[:2]), words[0]) if v in VERBS), None)
        if verb is None and not words[0].startswith("-") and words[0] not in ("bench", "config"):
            wrong.append(f"{line}: no such verb")
        elif verb is not None:
            wrong += [f"{line}: {word}" for word in words if word.startswith("--") and word not in options(verb)]
    assert wrong == []


def options(verb: str) -> set[str]:
    """The long options of a verb, with those that every verb shares."""
    root = command(VERBS)
    shared = {option for parameter in root.params for option in parameter.opts}
    node = root
    for word in verb.split():
        node = node.commands[word]
    own = [o for p in node.params for o in (*p.opts, *p.secondary_opts)]
    return shared | set(own) | {"--help"}


@pytest.mark.parametrize("page", [p for p in PAGES if name(p) not in UNCHECKED], ids=name)
def test_every_setting_that_is_named_exists(page: Path) -> None:
    assert {key for key in settings_keys(page) if keys.field_of(key) is None and not keys.children(key)} == set()


def test_every_file_in_the_tree_exists() -> None:
    assert [path for path in tree() if not (ROOT / path).is_file()] == []


def test_every_source_file_is_in_the_tree_once() -> None:
    python = [path for ring in SOURCES for path in (ROOT / ring).rglob("*.py") if path.name != "__init__.py"]
    page = list((ROOT / "serving" / "page").iterdir())
    assert sorted(tree()) == sorted(map(name, [*python, *page]))


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_sections_in_order_on_one_page(decision: Path) -> None:
    text = decision.read_text("utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(SECTIONS)
    assert re.match(rf"# {int(decision.name[:4])}\. \S", text), "the title is the number and the decision"
    assert len(text.splitlines()) <= 60


def test_decisions_are_numbered_from_one_and_all_listed() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    listed = _LINK.findall((ROOT / "docs/adr/README.md").read_text("utf-8"))
    assert listed == [path.name for path in DECISIONS]


def test_the_page_on_operating_names_every_metric_and_no_other() -> None:
    assert sorted(set(re.findall(r"^\| `(tidegate_\w+)` \|", OPERATING, re.MULTILINE))) == sorted(
        m.name for m in METRICS
    )


def test_the_page_on_operating_gives_every_error_code_its_status() -> None:
    told = {
        code: int(status)
        for codes, status in re.findall(r"^\| (`[a-z_`, ]+`) \| (\d{3}) \|", OPERATING, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert told.pop("method_not_allowed") == 405  # the framework's own, not a class of ours
    assert told == {kind.code: status_of(kind) for kind in family(TidegateError)}


def family(kind: type[TidegateError]) -> Iterator[type[TidegateError]]:
    """A class of the domain's and all below it; tests and the outer ring have classes of their own."""
    if kind.__module__ == "domain.errors":
        yield kind
    for child in kind.__subclasses__():
        yield from family(child)


@pytest.mark.parametrize("page", [p for p in PAGES if "```yaml" in p.read_text("utf-8")], ids=name)
def test_settings_that_are_shown_can_be_used(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    file = tmp_path / "tidegate.yaml"
    for block in blocks:
        file.write_text(re.sub(r"\bshort:", "success:", block), "utf-8")  # the metric that extending.md makes up
        load_settings(file, {}, {}, tmp_path)


def test_the_question_that_is_shown_can_be_read(tmp_path: Path) -> None:
    shown = re.search(r"^```json\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert shown
    (tmp_path / "questions.jsonl").write_text(shown[1].replace("\n", " "), "utf-8")
    (question,) = load_questions(tmp_path / "questions.jsonl")
    source = (ROOT / "examples" / "corpus" / question.evidence[0].doc_id).read_text("utf-8")
    assert question.evidence[0].text in " ".join(source.split())
