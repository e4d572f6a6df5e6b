"""A library of our own invention with questions whose answers are true by construction.

A seeded graph of facts is told by documents in six source kinds and two tenants; questions are walks over the graph,
so every gold answer and every gold sentence is known before anything is retrieved. The graph is dealt out in
factgraph_coast.py, written in factgraph_rendering.py, and asked about in factgraph_asking.py.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from domain.errors import BadRequest, StorageError
from domain.types import Document, Scope
from eval.factgraph_asking import deal
from eval.factgraph_coast import build
from eval.factgraph_graph import PERSONAS, Absence, Draft, Graph
from eval.factgraph_rendering import render
from eval.factgraph_world import Fact
from eval.questions import Anchor, Question, dump

FEWEST, MOST = 100, 1200  # documents: below, some kind of document is missing; above, the names run out
DEV = 300  # questions open to tuning; every further one is frozen
FILES = ("documents.jsonl", "questions.jsonl", "README")
ABOUT = (
    "An invented harbour and tidal energy library with questions, made by Tidegate: index documents.jsonl, "
    "ask questions.jsonl.\n"
)


@dataclass(frozen=True, slots=True)
class Library:
    """Generated documents and questions, the personas who ask, and the graph behind them.

    `told` says for every fact which sentence of which document tells it; `absent` says for every null question what
    the library does not tell its persona.
    """

    documents: list[Document]
    questions: list[Question]
    personas: dict[str, Scope]
    told: dict[Fact, Anchor]
    absent: dict[str, Absence]


def generate(seed: int = 7, documents: int = 300, questions: int = 1200) -> Library:
    """The library of `seed`: equal arguments give equal bytes, and more questions leave the earlier ones as they are.

    About a quarter of the first questions are "dev", until there are 300; the others are "frozen". Raises BadRequest
    when there are not as many questions in so many documents, or the number of documents is out of bounds.
    """
    if not FEWEST <= documents <= MOST:
        raise BadRequest(f"documents = {documents}: a library has {FEWEST} to {MOST} documents.", "documents")
    if questions < 0:
        raise BadRequest(f"questions = {questions}: ask for 0 or more.", "questions")
    world = build(seed, documents)
    written, told = render(world)
    graph = Graph(world, documents, "\n".join(document.text for document in written))
    asked: list[Question] = []
    dev = 0
    absent: dict[str, Absence] = {}
    for number, (turn, draft) in enumerate(islice(deal(graph), questions), 1):
        # Ten of every forty, shifted by one each round, so that no kind of question is always on the same side.
        open_to_tuning = (number + turn) % 4 == 0 and dev < DEV
        dev += open_to_tuning
        question = _question(f"q{number:05d}", draft, told, "dev" if open_to_tuning else "frozen")
        asked.append(question)
        if draft.absent:
            absent[question.id] = draft.absent
    if len(asked) < questions:
        raise BadRequest(
            f"questions = {questions}: {documents} documents hold {len(asked)}, ask for fewer or raise documents.",
            "questions",
        )
    return Library(written, asked, dict(PERSONAS), told, absent)


def _question(number: str, draft: Draft, told: dict[Fact, Anchor], part: str) -> Question:
    scope = PERSONAS[draft.persona]
    evidence = tuple(dict.fromkeys(told[fact] for fact in draft.facts))
    return Question(
        id=number,
        query=draft.query,
        answer=draft.answer,
        type=draft.type,
        evidence=evidence,
        hops=len(evidence),
        slice=part,
        persona=draft.persona,
        tenant=scope.tenant,
        groups=scope.groups,
        aliases=draft.aliases,
        history=draft.history,
    )


def write(library: Library, folder: Path) -> None:
    """Put documents.jsonl, questions.jsonl and a README into `folder`, all or nothing.

    An earlier library there is replaced. Raises StorageError when the folder holds anything else or cannot be
    written, and leaves it as it was.
    """
    folder = Path(folder)
    try:
        foreign = sorted(path.name for path in folder.iterdir() if path.name not in FILES) if folder.exists() else []
        if foreign:
            raise StorageError(
                f"{folder} holds {', '.join(foreign[:5])}, which is not ours: name an empty folder for the library."
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
            fresh, earlier = Path(aside, "fresh"), Path(aside, "earlier")
            _fill(fresh, library)
            if folder.exists():
                folder.rename(earlier)  # a folder with files in it cannot be renamed over
            try:
                fresh.rename(folder)
            except OSError:
                if earlier.exists():
                    earlier.rename(folder)
                raise
    except OSError as error:
        raise StorageError(f"The library cannot be written to {folder}: {error}.") from error


def _fill(folder: Path, library: Library) -> None:
    folder.mkdir()
    (folder / "README").write_text(ABOUT, encoding="utf-8")
    (folder / "questions.jsonl").write_text(dump(library.questions), encoding="utf-8")
    (folder / "documents.jsonl").write_text(dump_documents(library.documents), encoding="utf-8")


def dump_documents(documents: Sequence[Document]) -> str:
    """The documents as JSON lines, in the fields a corpus is read from."""
    records = (
        {
            "id": document.doc_id,
            "title": document.title,
            "text": document.text,
            "uri": document.uri,
            "source": document.source,
            "published": document.published,
            "groups": sorted(document.groups),
            "tenant": document.tenant,
        }
        for document in documents
    )
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
