"""A question set: what is asked, by whom, what the answer is and which sentences hold it.

Read and written as JSON lines, one question a line, with every problem of a file told at once. Questions of public
collections are read in collection.py. Nothing here asks anything; harness.py does.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from domain.errors import BadRequest, CorpusError
from domain.types import Role, Scope, Turn

TYPES = ("inference", "comparison", "temporal", "null")
SLICES = ("dev", "frozen")
LONGEST_PROBLEM = 200  # characters


@dataclass(frozen=True, slots=True)
class Anchor:
    """A sentence that holds a part of the answer, exactly as it stands in its document.

    An empty text stands for the document: whoever judged it did not say where, so any passage of it counts.
    """

    doc_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its gold answer and evidence, asked by a persona that may read `groups` of `tenant`.

    A "null" question has no answer for this persona: `answer` is empty, `evidence` too and `hops` is 0. Another one
    without an `answer` has one that nobody wrote down. `history` holds the turns before a follow-up, `aliases` are
    further accepted spellings of the answer.
    """

    id: str
    query: str
    answer: str
    type: str
    evidence: tuple[Anchor, ...]
    hops: int
    slice: str
    persona: str
    tenant: str
    groups: frozenset[str]
    aliases: tuple[str, ...] = ()
    history: tuple[Turn, ...] = ()

    @property
    def scope(self) -> Scope:
        """Who is asking."""
        return Scope(self.tenant, self.groups)


def fingerprint(questions: Iterable[Question]) -> str:
    """Sixteen hex digits that change with any word of any question, and not with their order."""
    lines = sorted(json.dumps(to_record(question), sort_keys=True, ensure_ascii=False) for question in questions)
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def slices(question: Question) -> dict[str, str]:
    """Dimension to value: the parts of a question set that are looked at on their own, because a mean hides them.

    `source` is the kind of document of the first evidence, read off an id such as `minutes-0012`: "none" where there
    is no evidence, "unknown" where the id does not tell.
    """
    kind = re.fullmatch(r"([^\W\d_]+)-\d+", question.evidence[0].doc_id) if question.evidence else None
    return {
        "slice": question.slice,
        "type": question.type,
        "hops": str(question.hops),
        "source": kind[1] if kind else "unknown" if question.evidence else "none",
        "persona": question.persona,
        "tenant": question.tenant,
    }


def suggestions(questions: Iterable[Question], scope: Scope, n: int = 6) -> tuple[Question, ...]:
    """At most `n` questions that this reader can get answered: short, of many kinds, from the dev slice if possible.

    One fact each, or two side by side: a first question must not depend on arithmetic or on a chain of documents.
    """
    good = [
        question
        for question in questions
        if question.evidence and not question.history and scope.tenant == question.tenant
        if question.groups <= scope.groups and (question.hops == 1 or question.type == "comparison")
    ]
    good.sort(key=lambda question: (question.slice != "dev", len(question.query) > 70))
    kinds: dict[tuple[int, str], Question] = {}
    for question in good:
        place = question.evidence[0].doc_id.rsplit("-", 1)[0]
        kinds.setdefault((question.hops, place if question.hops == 1 else question.type), question)
    single = [question for (hops, _), question in kinds.items() if hops == 1]
    double = [question for (hops, kind), question in kinds.items() if hops == 2 and kind != "inference"]
    first = [*single[: n - len(double)], *double]
    rest = [question for question in good if question not in first]
    return tuple([*first, *rest][:n])


# ---------------------------------------------------------------------------------------------- JSON lines


def to_record(question: Question) -> dict[str, Any]:
    """The question as it is written to a file; the inverse of what `load` reads."""
    return {
        "id": question.id,
        "query": question.query,
        "answer": question.answer,
        "aliases": list(question.aliases),
        "type": question.type,
        "hops": question.hops,
        "slice": question.slice,
        "persona": question.persona,
        "tenant": question.tenant,
        "groups": sorted(question.groups),
        "evidence": [{"doc_id": anchor.doc_id, "text": anchor.text} for anchor in question.evidence],
        "history": [{"role": turn.role.value, "text": turn.text} for turn in question.history],
    }


def dump(questions: Iterable[Question]) -> str:
    """The questions as JSON lines."""
    return "".join(json.dumps(to_record(question), ensure_ascii=False) + "\n" for question in questions)


def load(path: Path) -> tuple[Question, ...]:
    """The questions of a JSON lines file, in its order.

    Raises BadRequest that lists every problem as `file:line field: what is wrong`, also when an id occurs twice or
    the file holds no question, and CorpusError when it cannot be read.
    """
    questions: list[Question] = []
    problems: list[str] = []
    lines: dict[str, int] = {}
    for number, line in numbered_lines(path):
        record, wrong = _record(line)
        if not wrong:
            question = _question(record)
            if question.id in lines:
                wrong = [f"id: '{question.id}' is also on line {lines[question.id]}"]
            lines[question.id] = number
            questions.append(question)
        problems += [f"{path}:{number} {clipped(text)}" for text in wrong]
    if problems:
        more = f"; and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise BadRequest(f"The question file cannot be used: {'; '.join(problems[:20])}{more}.", "questions")
    if not questions:
        raise BadRequest(f"{path} holds no question: write one JSON object a line.", "questions")
    return tuple(questions)


def _record(line: str) -> tuple[dict[str, Any], list[str]]:
    """The record of one line and all that is wrong with it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, [f"is not JSON: {error}"]
    if not isinstance(record, dict):
        return {}, [f"must be an object, not {type(record).__name__}"]
    if halved := half_characters(record):
        return record, [f"{name}: has half a character, which no text can carry" for name in halved]
    required = ("id", "query", "answer", "type", "hops", "slice", "persona", "tenant", "groups", "evidence")
    wrong = [f"{name}: is missing" for name in required if name not in record]
    wrong += [f"{name}: is not known" for name in record if name not in (*required, "aliases", "history")]
    present = {name: record[name] for name in ("id", "query", "answer", "persona", "tenant") if name in record}
    for name, value in present.items():
        if not isinstance(value, str) or not (value.strip() or name == "answer"):
            wrong.append(f"{name}: must be text, not {value!r}")
    for name, allowed in (("type", TYPES), ("slice", SLICES)):
        if name in record and record[name] not in allowed:
            wrong.append(f"{name}: must be one of {', '.join(allowed)}, not {record[name]!r}")
    hops = record.get("hops", 0)
    if not isinstance(hops, int) or isinstance(hops, bool) or hops < 0:
        wrong.append(f"hops: must be a whole number from 0, not {hops!r}")
    for name in ("groups", "aliases"):
        value = record.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            wrong.append(f"{name}: must be a list of names, not {value!r}")
    wrong += _pairs(record, "evidence", {"doc_id": None, "text": None}, blank="text")
    wrong += _pairs(record, "history", {"role": tuple(role.value for role in Role), "text": None})
    if not wrong:
        wrong += _sense(record)
    return record, wrong


def half_characters(record: Mapping[str, Any]) -> list[str]:
    """The fields that hold half of a surrogate pair, which JSON can escape and no file, header or digest can carry."""
    return [name for name, value in record.items() if not _encodes(f"{name}{json.dumps(value, ensure_ascii=False)}")]


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clipped(problem: str) -> str:
    """A problem of a file, without most of a value that would fill the screen of whoever reads it."""
    return problem if len(problem) <= LONGEST_PROBLEM else f"{problem[:LONGEST_PROBLEM]}..."


def _pairs(
    record: Mapping[str, Any], name: str, fields: Mapping[str, tuple[str, ...] | None], blank: str = ""
) -> list[str]:
    """What is wrong with a list of objects; the field `blank` may be an empty text."""
    value = record.get(name, [])
    if not isinstance(value, list):
        return [f"{name}: must be a list, not {value!r}"]
    wrong = []
    for number, item in enumerate(value, 1):
        for field, allowed in fields.items():
            found = item.get(field) if isinstance(item, dict) else None
            if found == "" and field == blank:
                continue
            if not isinstance(found, str) or not found.strip() or (allowed and found not in allowed):
                wanted = f"one of {', '.join(allowed)}" if allowed else "text"
                wrong.append(f"{name}[{number}].{field}: must be {wanted}, not {found!r}")
    return wrong


def _sense(record: Mapping[str, Any]) -> list[str]:
    """What contradicts itself although every field alone is fine."""
    null, evidence, answer = record["type"] == "null", record["evidence"], record["answer"].strip()
    if null and (evidence or answer or record["hops"]):
        return ["type: a null question has no answer, no evidence and 0 hops"]
    if not null and not (evidence and answer and record["hops"]):
        return [f"type: a question of type {record['type']} needs an answer, evidence and at least 1 hop"]
    return []


def _question(record: Mapping[str, Any]) -> Question:
    return Question(
        id=record["id"],
        query=record["query"],
        answer=record["answer"],
        type=record["type"],
        evidence=tuple(Anchor(item["doc_id"], item["text"]) for item in record["evidence"]),
        hops=record["hops"],
        slice=record["slice"],
        persona=record["persona"],
        tenant=record["tenant"],
        groups=frozenset(record["groups"]),
        aliases=tuple(record.get("aliases", ())),
        history=tuple(Turn(Role(item["role"]), item["text"]) for item in record.get("history", ())),
    )


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text or .gz file that are not blank, numbered from 1. Raises CorpusError when it is unreadable."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(cast("Iterable[str]", lines), 1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error
        raise CorpusError(f"{path} cannot be read: {reason}.") from error
