"""Asks a served Tidegate five questions, as a client that carries its conversation, and writes down what came back.

    python scripts/conversation.py http://127.0.0.1:8000 > docs/conversation.md

Knows HTTP and the sample library's questions, nothing else. Times and made-up ids are left out, so that the same
library gives the same page; tests/test_conversation.py holds the page to that.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

Reply = dict[str, Any]  # JSON of POST /v1/answers
Asking = Callable[[dict[str, Any]], Reply]

TURNS: tuple[tuple[str, bool, str], ...] = (
    ("Who manufactures the LN-3?", False, "A first question is searched for as it stands."),
    (
        "And how long is its warranty?",
        False,
        "*Its* is the LN-3's: the service reads that off the turns that the client sent, and says what it searched "
        "for. The passages of the first answer come back with the session and stay in the pool.",
    ),
    (
        "What continuous power is the LN-3 rated for?",
        True,
        "`deeper` asks for one round more, wider and in one more wording.",
    ),
    (
        "In which paint finishes is the LN-33 available?",
        False,
        "Nothing in the library says that. So the answer says so and cites nothing: that is not a failed search, which "
        "would be an error with a code.",
    ),
    (
        "After how many running hours must the LN-3 be serviced?",
        False,
        "The conversation goes on as if nothing had been.",
    ),
)

HEAD = """\
# A conversation

Five questions to the sample library under the settings that `make serve` has, over `POST /v1/answers`, by a client that
carries the conversation: it sends back the `session` of the last reply, and nothing else. What follows is what came
back. Made with `python scripts/conversation.py http://127.0.0.1:8000 > docs/conversation.md`; the page at
`/` does the same.

The first request, and every later one:

```json
{"question": "Who manufactures the LN-3?"}
{"question": "And how long is its warranty?", "session": {"id": "...", "turns": [...], "pool": [...]}}
```
"""


def over_http(url: str) -> Asking:
    """Asks the service at `url`. Raises OSError when it is not there, HTTPError when it refuses."""

    def asking(body: dict[str, Any]) -> Reply:
        head = {"Content-Type": "application/json"}
        request = Request(f"{url.rstrip('/')}/v1/answers", json.dumps(body).encode(), head)  # noqa: S310 - as told
        with urlopen(request, timeout=120) as reply:  # noqa: S310
            told: Reply = json.load(reply)
        return told

    return asking


def talk(asking: Asking) -> Iterator[Reply]:
    """The reply to every question, each asked with the session of the one before."""
    session: dict[str, Any] | None = None
    for question, deeper, _ in TURNS:
        body: dict[str, Any] = {"question": question}
        if deeper:
            body["deeper"] = True
        if session:
            body["session"] = session
        reply = asking(body)
        session = reply["session"]
        yield reply


def page(replies: list[Reply]) -> str:
    """The replies as Markdown."""
    told = zip(TURNS, replies, strict=True)
    turns = [turn(number, *asked, reply) for number, (asked, reply) in enumerate(told, 1)]
    return "\n".join([HEAD, *turns])


def turn(number: int, question: str, deeper: bool, why: str, reply: Reply) -> str:
    """One question with what came back for it."""
    rows = [
        ("status, grounding", f"`{reply['status']}`, `{reply['grounding']}`"),
        ("searched for", f"“{reply['rewrite']['query']}” (`{reply['rewrite']['status']}`)"),
        ("steps", "; then ".join(step(taken) for taken in reply["rounds"])),
        ("passages of the session", pool(reply)),
    ]
    lines = [f"## {number}. {question}", "", why, ""]
    lines += [f"> {line}".rstrip() for line in reply["answer"].splitlines()]
    lines += ["", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    lines += [f"| {one['marker']} | {source(one)} |" for one in reply["citations"]]
    if deeper:
        lines[4:4] = ['Sent with `"deeper": true`.', ""]
    return "\n".join(lines) + "\n"


def step(taken: dict[str, Any]) -> str:
    """A step of the search, and why another followed."""
    wordings = f" in {1 + len(taken['variants'])} wordings" if taken["variants"] else ""
    why = f", because: {taken['next']}" if taken["next"] else ""
    return f"{taken['found']} of {taken['wanted']} passages{wordings}{why}"


def pool(reply: Reply) -> str:
    """What became of the passages that came with the session."""
    told = reply["pool"]
    dropped = sum(told["dropped"].values())
    return f"{told['kept']} came and stayed, {told['joined']} joined, {told['evicted']} left, {dropped} were dropped"


def source(cited: dict[str, Any]) -> str:
    """A cited passage: its document, and the question that it was found for."""
    return f"{cited['title']} (`{cited['doc_id']}`), found for question {cited['joined_turn']}"


if __name__ == "__main__":
    sys.stdout.write(page(list(talk(over_http(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")))))
