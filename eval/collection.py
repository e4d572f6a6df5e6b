"""A public collection on disk, in BEIR's layout: query texts, judgements, and questions where it has answers.

    queries.jsonl[.gz]   {"_id", "text", "answers"?, "metadata"?: {"answerable"?, "type"?, "history"?}}
    qrels/SPLIT.tsv      query-id, corpus-id, score

Every problem of a file is told at once. Our own question sets are questions.py.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from domain.errors import CorpusError
from domain.types import Role, Scope, Turn
from eval.questions import Anchor, Question, clipped, half_characters, load, numbered_lines

Qrels = dict[str, dict[str, int]]  # query id -> document id -> grade

LONGEST_ANSWER = 80  # characters: what is told in sentences can be told in others, and is in no text as it stands
PERSONA = "anonymous"
GRADE = re.compile("-?[0-9]{1,9}")
OPEN_SPLITS = ("train", "dev")  # to be tuned on, where there is another one to be held to


def load_questions(path: Path, scope: Scope) -> tuple[Question, ...]:
    """The questions of a JSON lines file, or of a folder in BEIR's layout, which `scope` asks.

    Raises what `load` and `load_beir_questions` raise.
    """
    return load_beir_questions(path, scope) if Path(path).is_dir() else load(path)


def load_beir_questions(folder: Path, scope: Scope) -> tuple[Question, ...]:
    """The questions of a collection in the order of its queries, of all splits together.

    A query is a question when a document is judged relevant to it, or when it is marked unanswerable: then it is
    "null". Of any other nobody knows what a good answer is. Evidence is the relevant documents, whole. An answer that
    is long, or only yes or no, cannot be recognised in a text and is left out. Of several splits train and dev are
    "dev" and the others "frozen"; a single one is "frozen". Raises CorpusError naming every broken line, judgements
    of unknown queries, and a folder without a question.
    """
    folder = Path(folder)
    splits = {name: _qrels(path) for name, path in _splits(folder).items()}
    if not splits:
        raise CorpusError(f"{folder} is no question set: it has no judgements in qrels/*.tsv; name a folder that has.")
    queries = _queries_path(folder, None)
    records = _records(queries)
    if textless := sorted({query for qrels in splits.values() for query in qrels} - records.keys()):
        raise CorpusError(
            f"{folder}/qrels judges {len(textless)} queries that have no text in {queries.name}, as "
            f"{', '.join(textless[:5])}: put the queries that belong to it there."
        )
    relevant, parts = dict[str, list[str]](), dict[str, str]()
    for name, qrels in splits.items():
        for query, grades in qrels.items():
            relevant.setdefault(query, [doc_id for doc_id, grade in grades.items() if grade > 0])
            parts.setdefault(query, "dev" if name in OPEN_SPLITS and len(splits) > 1 else "frozen")
    questions = tuple(
        _question(query, record, parts.get(query, "frozen"), relevant.get(query, ()), scope)
        for query, record in records.items()
        if relevant.get(query) or _unanswerable(record)
    )
    if not questions:
        raise CorpusError(f"{folder} has no question: no query is judged relevant to a document or unanswerable.")
    return questions


def _question(query: str, record: Mapping[str, Any], part: str, relevant: Sequence[str], scope: Scope) -> Question:
    metadata, null = record.get("metadata", {}), _unanswerable(record)
    told = [answer for answer in record.get("answers", ()) if _recognisable(answer)]
    documents = [] if null else relevant
    return Question(
        id=query,
        query=record["text"],
        answer="" if null or not told else told[0],
        type="null" if null else "comparison" if metadata.get("type") == "comparison" else "inference",
        evidence=tuple(Anchor(doc_id, "") for doc_id in documents),
        hops=len(documents),
        slice=part,
        persona=PERSONA,
        tenant=scope.tenant,
        groups=scope.groups,
        aliases=() if null else tuple(told[1:]),
        history=tuple(
            Turn(Role.USER if turn["speaker"] == "user" else Role.ASSISTANT, turn["text"])
            for turn in metadata.get("history", ())
        ),
    )


def _unanswerable(record: Mapping[str, Any]) -> bool:
    return record.get("metadata", {}).get("answerable") is False


def _recognisable(answer: str) -> bool:
    return 0 < len(answer.strip()) <= LONGEST_ANSWER and answer.strip().casefold() not in ("yes", "no")


# ---------------------------------------------------------------------------------------------- texts, judgements


def load_beir(folder: Path, split: str | None = None, queries_file: str | None = None) -> tuple[dict[str, str], Qrels]:
    """Query texts by id, and graded judgements by query and document.

    `queries_file` is a file of the folder, by default queries.jsonl or queries.jsonl.gz. Without a `split` there must
    be exactly one. Raises CorpusError with what is there, or with every broken line.
    """
    folder = Path(folder)
    splits = _splits(folder)
    if split not in splits and (split is not None or len(splits) != 1):
        raise CorpusError(_no_split(folder, splits, split))
    records = _records(_queries_path(folder, queries_file))
    texts = {query: record["text"] for query, record in records.items()}
    return texts, _qrels(splits[split] if split else next(iter(splits.values())))


def _splits(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}


def _no_split(folder: Path, splits: Mapping[str, Path], split: str | None) -> str:
    names = ", ".join(splits) or "none"
    if not folder.is_dir():
        return f"{folder} is not there, or is no folder: name a folder in BEIR's layout, judged in qrels/SPLIT.tsv."
    if not splits:
        return f"{folder}/qrels has 0 splits (none): name a folder in BEIR's layout, judged in qrels/SPLIT.tsv."
    if split is None:
        return f"{folder}/qrels has {len(splits)} splits ({names}): choose one with --split."
    return f"{folder}/qrels has no split '{split}', there are: {names}."


def _queries_path(folder: Path, queries_file: str | None) -> Path:
    wanted: Sequence[str] = [queries_file] if queries_file else ["queries.jsonl", "queries.jsonl.gz"]
    for name in wanted:
        if (folder / name).is_file():
            return folder / name
    there = ", ".join(sorted(path.name for path in folder.glob("*.jsonl*"))) or "no JSON lines at all"
    raise CorpusError(f"{folder} has no {' or '.join(wanted)}, there is: {there}.")


def _records(path: Path) -> dict[str, dict[str, Any]]:
    """The records of the queries by id, their fields as the layout above says."""
    records: dict[str, dict[str, Any]] = {}
    problems = []
    for number, line in numbered_lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if wrong := _wrong(record) or _halved(record):
            problems.append(f"line {number} ({wrong})")
        else:
            query = str(record["_id"])
            if query in records:
                problems.append(clipped(f"line {number} (_id {query!r} again)"))
            records[query] = record | {"text": str(record["text"])}
    if problems:
        more = f" and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise CorpusError(f"{path} needs one JSON object a line: {', '.join(problems[:20])}{more}.")
    if not records:
        raise CorpusError(f"{path} holds no query: write one JSON object with _id and text a line.")
    return records


def _wrong(record: object) -> str:
    """What keeps a record from being a query; empty when nothing does."""
    if not isinstance(record, dict):
        return "no object"
    if lacking := [name for name in ("_id", "text") if not str(record.get(name, "")).strip()]:
        return f"no {' and no '.join(lacking)}"
    answers, metadata = record.get("answers", []), record.get("metadata", {})
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        return "answers is no list of texts"
    if not isinstance(metadata, dict):
        return "metadata is no object"
    history = metadata.get("history", [])
    if not isinstance(history, list) or not all(_is_turn(turn) for turn in history):
        return "history is no list of turns with speaker and text"
    return ""


def _halved(record: Mapping[str, Any]) -> str:
    halved = half_characters(record)
    return clipped(f"half a character in {', '.join(halved)}") if halved else ""


def _is_turn(turn: object) -> bool:
    return isinstance(turn, dict) and all(isinstance(turn.get(name), str) for name in ("speaker", "text"))


def _qrels(path: Path) -> Qrels:
    """Judgements from query-id, corpus-id and score separated by tabs; the first line is the header."""
    qrels: Qrels = {}
    problems = []
    for number, line in numbered_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if number == 1 and fields[-1:] == ["score"]:
            continue
        if len(fields) == 3 and GRADE.fullmatch(fields[2].strip()):
            qrels.setdefault(fields[0], {})[fields[1]] = int(fields[2])
        else:
            problems.append(f"line {number}")
    if problems or not qrels:
        where = ", ".join(problems[:20]) or "anywhere"
        raise CorpusError(f"{path} needs query-id, corpus-id and score with tabs between, not found on {where}.")
    return qrels
