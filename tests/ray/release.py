"""A release as an operator makes it, through the command line alone, and everything that was seen on the way."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from domain.releases import Move
from domain.types import Scope
from eval.collection import load_questions
from retrieval.registry import FolderRegistry
from tests.ray.visitors import Visit, Visitors

Done = subprocess.CompletedProcess[str]

FOLLOWED_S = 2.0  # after which everybody is answered from where the pointer points
START_S = 300.0
COMMAND_S = 600.0

# The gates are those of the product, with bounds for a few hundred questions: two sensible cuts differ by less than
# a tenth in any of them, and cutting every twelve tokens loses several. A busy machine must not change a number.
SETTINGS = """
serving: {{port: {port}}}
chunking: {{strategy: sentence, tokens: 60}}
embedding: {{backend: hashing}}
rerank: {{backend: none}}
tracking: {{enabled: false}}
sample: {{documents: 100, questions: 300}}
evaluation:
  question_set: {question_set}
  slo_ms: 600000
  gates:
    - {{metric: recall@6, floor: 0.7, max_drop: 0.1}}
    - {{metric: citation_precision, floor: 0.6, max_drop: 0.1}}
    - {{metric: citation_recall, floor: 0.25, max_drop: 0.1}}
canary: {{shares: [0.25, 0.5], min_requests: 10, max_drop: 0.15, slo_ms: 20000, timeout_s: 300}}
"""
WORSE = {"chunking.strategy": "fixed", "chunking.tokens": "12"}
BETTER = {"chunking.strategy": "paragraph", "chunking.tokens": "200"}  # the default size: of a collection, all of it
OTHER = {"chunking.strategy": "whole", "chunking.tokens": "700"}
DRILL = {"canary.drill_ms": "4000", "canary.slo_ms": "3000"}  # at 24 visitors inside, six of them on the slow version


@dataclass(frozen=True)
class Operator:
    """Somebody in a folder that has a settings file and nothing else to go by."""

    folder: Path
    port: int

    def run(self, *words: str, sets: dict[str, str] | None = None) -> Done:
        """One command, waited for."""
        return subprocess.run(
            self._command(words, sets),
            **self._surroundings(),
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    def must(self, *words: str, sets: dict[str, str] | None = None) -> str:
        """What a command printed that nothing here is about: it has to work."""
        done = self.run(*words, sets=sets)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def build(self, corpus: Path, cut: dict[str, str]) -> str:
        """The version of a corpus that is cut like this."""
        return str(json.loads(self.must("build", str(corpus), "--json", sets=cut))["version"]["id"])

    def pointer(self) -> dict[str, Any]:
        """What people get."""
        told: dict[str, Any] = json.loads(self.run("status", "--json").stdout)["rollout"]
        return told

    def told_over_http(self) -> dict[str, Any]:
        """`GET /v1/rollout`, as the operator is told it."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our loopback
        key = (self.folder / ".tidegate" / "admin.key").read_text().strip()
        asked = urllib.request.Request(f"{self.url}/v1/rollout", headers={"Authorization": f"Bearer {key}"})
        with direct.open(asked, timeout=60) as reply:
            told: dict[str, Any] = json.load(reply)
        return told

    @contextmanager
    def serving(self, sets: dict[str, str]) -> Iterator[None]:
        """A server in another terminal, ready; ended by `tidegate down`."""
        log = self.folder / "serve.log"
        with log.open("ab") as output:
            child = subprocess.Popen(
                self._command(["serve"], sets), **self._surroundings(), stdout=output, stderr=output
            )
        try:
            deadline = time.monotonic() + START_S
            while self.run("status").returncode:
                assert child.poll() is None, log.read_text("utf-8")
                assert time.monotonic() < deadline, log.read_text("utf-8")
                time.sleep(0.5)
            yield
        finally:
            self.run("down")
            child.kill()  # a server that has ended does not mind
            child.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def registry(self) -> FolderRegistry:
        return FolderRegistry(self.folder / ".tidegate" / "registry")

    def _command(self, words: Sequence[str], sets: dict[str, str] | None) -> list[str]:
        given = [word for key, value in (sets or {}).items() for word in ("--set", f"{key}={value}")]
        return [sys.executable, "-P", "-m", "tidegate", *words, *given]

    def _surroundings(self) -> dict[str, Any]:
        env = {key: value for key, value in os.environ.items() if not key.upper().startswith("TIDEGATE_")}
        return {"cwd": self.folder, "env": env | {"HOME": str(self.folder)}}


@dataclass(frozen=True)
class Library:
    """What a release is made of: documents, questions, and what `up` has to be told to find them.

    The sample library lies in the data folder once `up` has written it.
    """

    corpus: Path = Path(".tidegate/sample/seed-7-100-300/documents.jsonl")
    questions: Path = Path(".tidegate/sample/seed-7-100-300/questions.jsonl")
    told: tuple[str, ...] = ()
    question_set: Path | None = None

    @classmethod
    def of(cls, collection: Path) -> Self:
        """A collection in BEIR's layout."""
        return cls(collection, collection, (str(collection),), collection)


@dataclass(frozen=True)
class Story:
    """How it went: the versions, what every deciding command said, the pointer before and after, and the visitors."""

    first: str
    worse: str
    better: str
    slow: str
    gate_worse: Done
    canary_worse: Done
    pointer_before: dict[str, Any]
    pointer_after: dict[str, Any]
    gate_better: Done
    canary_better: Done
    gate_slow: Done
    canary_slow: Done
    rollback: Done
    visits: tuple[tuple[Visit, ...], tuple[Visit, ...]]  # while the better one widened, while the slow one was tried
    told: dict[str, Any]
    ledger: tuple[Move, ...]


def release(operator: Operator, library: Library) -> Story:
    """Four versions: served, refused, widened to everybody, turned back; at last the first one comes back."""
    chosen = SETTINGS.format(port=operator.port, question_set=json.dumps(library.question_set, default=str))
    (operator.folder / "tidegate.yaml").write_text(chosen, "utf-8")
    operator.must("up", *library.told)
    try:
        asked = load_questions(operator.folder / library.questions, Scope("harbour", frozenset({"public"})))
        questions = [question.query for question in asked]
        pointer_before = operator.pointer()
        worse, better, slow = (operator.build(library.corpus, cut) for cut in (WORSE, BETTER, OTHER))
        gate_worse, canary_worse = operator.run("gate", worse), operator.run("canary", worse)
        pointer_after = operator.pointer()
        gate_better = operator.run("gate", better)
        with Visitors(operator.url, questions, "early visitor") as early:
            canary_better = operator.run("canary", better, "--auto")
            time.sleep(FOLLOWED_S + 3.0)
    finally:
        operator.run("down")
    gate_slow = operator.run("gate", slow)
    with operator.serving(DRILL):
        with Visitors(operator.url, questions, "late visitor") as late:
            canary_slow = operator.run("canary", slow, "--auto", sets=DRILL)
            rollback = operator.run("rollback", "--reason", "the readers liked the first one better")
            time.sleep(FOLLOWED_S + 3.0)
        told = operator.told_over_http()
    return Story(
        first=pointer_before["stable"],
        worse=worse,
        better=better,
        slow=slow,
        gate_worse=gate_worse,
        canary_worse=canary_worse,
        pointer_before=pointer_before,
        pointer_after=pointer_after,
        gate_better=gate_better,
        canary_better=canary_better,
        gate_slow=gate_slow,
        canary_slow=canary_slow,
        rollback=rollback,
        visits=(tuple(early.visits), tuple(late.visits)),
        told=told,
        ledger=operator.registry.ledger(),
    )
