"""The Protocols, nothing else.

*Stages* are async and request-shaped: they may be a process away. *Compute* ports are synchronous and batch-shaped:
they want full batches. *Records* remember. Errors a port may raise are in errors.py; anything else is a bug.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from domain.amending import DocumentChange
from domain.evaluation import Evaluation
from domain.ingestion import FileOutcome
from domain.judging import Judgement, Submission
from domain.prompt import PromptPlan
from domain.releases import Decision, IndexVersion, Kept, Leftover, Move, Observation, Rollout
from domain.types import (
    Chunk,
    Delta,
    Draft,
    Encoded,
    Hit,
    Mode,
    Query,
    Reranking,
    Retrieval,
    Rewrite,
    Scope,
    Session,
    TextSide,
    Trace,
    Turn,
)
from domain.uploading import Upload, UploadJob

Vectors = Any  # numpy float32 [n, dimensions], rows of unit length; the domain imports no array library

# ---------------------------------------------------------------------------------------------- stages


class Rewriter(Protocol):
    """Turns a follow-up into a query that stands alone."""

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """The effective query. A model's nonsense is a FALLBACK with a reason; its silence raises StageFailed."""
        ...

    async def paraphrase(self, query: Query) -> Rewrite:
        """The same query with one more variant, for a second, wider round; UNCHANGED when none comes to mind."""
        ...


class Retriever(Protocol):
    """Finds evidence. Scope first: nothing the reader may not see influences ids, scores, counts or order."""

    async def retrieve(self, query: Query, scope: Scope, version: str, n: int, mode: Mode = Mode.HYBRID) -> Retrieval:
        """At most `n` hits, best first, ties by chunk id. Nothing found is an empty tuple; a failure raises."""
        ...

    async def chunks(self, ids: Sequence[str], scope: Scope, version: str) -> tuple[Chunk, ...]:
        """The chunks of `ids` that exist and are visible, in the order asked; others are left out silently."""
        ...


class TextEncoder(Protocol):
    """Gives the vectors that a version is searched with, of texts of the caller's own. Nothing of it is read."""

    async def encode(self, texts: Sequence[str], version: str, side: TextSide) -> Encoded:
        """A vector a text, in their order; what is longer than the encoder reads is cut. Raises as `retrieve` does, and
        BadRequest where the encoder cannot be asked.
        """
        ...


class Reranker(Protocol):
    """Reorders hits by reading question and passage together."""

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        """A permutation of `hits` with new scores and ranks: never more, never fewer.

        What cannot be read within `within_s` seconds (None: as long as the reranker itself allows) keeps its order
        below what was read, and the notes say so. Cancelling the call drops the work that has not begun.
        """
        ...


class Generator(Protocol):
    """Writes the answer."""

    def generate(self, plan: PromptPlan) -> AsyncGenerator[Delta | Draft, None]:
        """Deltas of raw text, then exactly one Draft whose text is their join. Closing it cancels the call."""
        ...


@dataclass(frozen=True, slots=True)
class Stages:
    """The four stages of the answering path. A missing reranker means fused order, by choice."""

    rewriter: Rewriter
    retriever: Retriever
    reranker: Reranker | None
    generator: Generator


# ---------------------------------------------------------------------------------------------- compute


class Embedder(Protocol):
    """Texts to unit vectors. `tag` pins model, weights and pooling: equal tags mean comparable vectors. `runtime` names
    what computes them, where that decides their last bits: with tag and runtime equal, equal texts get equal bits.
    """

    tag: str
    runtime: str  # empty where the tag says it all
    dimensions: int

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimensions], unit rows; an empty list gives shape [0, dimensions]."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """As `embed_documents`, for the asking side."""
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """An embedder that can say how many tokens it reads."""

    def count_tokens(self, texts: Sequence[str]) -> int:
        """The tokens of all texts together, as far as they are read, special ones included, prompts not."""
        ...


class PairScorer(Protocol):
    """Scores (question, hit) pairs jointly; higher is better. Scores do not depend on the rest of the batch
    unless `listwise` says that they are made for one list and mean nothing outside of it.
    """

    tag: str
    listwise: bool

    def score(self, query: str, hits: Sequence[Hit]) -> Sequence[float]:
        """One finite score per hit, in the order given."""
        ...


class Judge(Protocol):
    """Grades answers by a rubric. `name` pins what judges and `rubric` what it judges by, so that equal ones mean equal
    grades; `families` says whose model it is, empty when nobody can tell.
    """

    @property
    def name(self) -> str: ...
    @property
    def rubric(self) -> str: ...
    @property
    def families(self) -> frozenset[str]: ...

    async def judge(self, submission: Submission) -> Judgement:
        """A grade with its reason, or none: a verdict that cannot be read is "not judged", never a grade.

        Raises StageFailed and its kinds when the judge cannot be asked.
        """
        ...


# ---------------------------------------------------------------------------------------------- records


class IndexRegistry(Protocol):
    """Versions, decisions and the rollout pointer. Versions are immutable; the pointer moves by compare-and-set."""

    def publish(self, staged: Path, version: IndexVersion) -> bool:
        """Make a staged folder a version, all or nothing. False when that very version was already there."""
        ...

    def folder(self, version: str) -> Path:
        """The version's folder. Raises NotFound, naming the versions there are."""
        ...

    def versions(self) -> tuple[IndexVersion, ...]:
        """All versions, oldest first, without those that are damaged."""
        ...

    def damaged(self) -> Mapping[str, str]:
        """Why a version cannot be told apart from damage, by its id. It stands in nobody's way, and can be removed."""
        ...

    def size(self, version: str) -> int:
        """Bytes that a version takes where it is kept."""
        ...

    def record(self, decision: Decision) -> None:
        """Remember a decision; decisions are only ever added."""
        ...

    def decisions(self, version: str) -> tuple[Decision, ...]:
        """All decisions about a version, oldest first."""
        ...

    def rollout(self) -> Rollout:
        """The pointer as it stands; an empty one before the first promotion."""
        ...

    def move(self, move: Move) -> None:
        """Move the pointer from `before` to `after` if it still is `before`, and write the ledger's line, both or
        neither. Raises PointerMoved otherwise, saying what moved, and changes nothing.

        A forced decision that the move bears is recorded with it, if it is not on record already. Raises NotAdmitted
        when the last word on record about what the move was decided on has become no.
        """
        ...

    def ledger(self) -> tuple[Move, ...]:
        """Every move of the pointer, oldest first; only ever added to."""
        ...

    def remove(self, version: str) -> None:
        """Remove a version's folder; its decisions stay. Raises BadRequest for stable, previous and canary."""
        ...

    def verify(self, version: str) -> None:
        """Raises StorageError when the folder's content is not what its name says: damaged or tampered with."""
        ...

    def check(self, version: str) -> None:
        """As `verify`, but reads the manifest alone: what every opening can afford, whatever the size."""
        ...

    def leftovers(self) -> tuple[Leftover, ...]:
        """What killed or given up work left behind here. Work that goes on is none, and is not disturbed."""
        ...

    def clear_leftovers(self) -> tuple[Leftover, ...]:
        """Remove what is left over; what was removed comes back. Raises StorageError when something cannot be."""
        ...

    def tombstones(self) -> frozenset[str]:
        """Document ids that no version may return any more."""
        ...

    def tombstone(self, doc_ids: Iterable[str]) -> None:
        """Let no version return these documents any more, whether or not they exist. Doing it twice is the same."""
        ...

    def restore(self, doc_ids: Iterable[str]) -> None:
        """Let versions that hold these documents return them again; ids that are not tombstones change nothing."""
        ...

    def access(self) -> Mapping[str, frozenset[str]]:
        """The groups of documents whose readers were changed after they were built; they count in every version.

        An empty set is nobody. The tenant of a document never changes.
        """
        ...

    def set_access(self, doc_id: str, groups: frozenset[str] | None) -> None:
        """Let exactly these groups read a document in every version, whether or not it exists; None: as it was built.

        Two writers at once may set the readers of two documents, and neither loses what the other set.
        """
        ...

    def note_change(self, change: DocumentChange) -> None:
        """Put on record who changes documents and why, before it is done; only ever added to."""
        ...

    def changes(self) -> tuple[DocumentChange, ...]:
        """Every change of documents on record, oldest first."""
        ...


class Observations(Protocol):
    """Keeps what is observed live about a canary: numbers, never text. One log per canary, named by `began` too."""

    def write(self, canary: str, began: int, observation: Observation) -> bool:
        """Remember an observation; False when it is lost, which the caller counts. Never raises on account of disks.

        A log that has grown long keeps a sample of the answers, chosen by their trace ids alone, and all feedback.
        """
        ...

    def lose(self, canary: str, began: int, count: int) -> None:
        """Remember that so many observations were lost before they could be written. Raises as little as `write`."""
        ...

    def read(self, canary: str, began: int) -> tuple[Observation, ...]:
        """All observations of all processes, oldest first. Raises StorageError when they cannot be read."""
        ...

    def kept(self, canary: str, began: int) -> Kept:
        """How much of what happened is in `read`. Raises StorageError when it cannot be read."""
        ...


class Outcomes(Protocol):
    """What became of the files that a version was built from."""

    def read(self, version: str) -> tuple[FileOutcome, ...] | None:
        """An outcome a file, and one a record that was left out; None where nobody kept them. Raises StorageError."""
        ...


class Uploads(Protocol):
    """Takes documents that are sent in; what becomes of them is a job that outlives whoever took them."""

    max_bytes: int  # of one request

    def accept(self, uploads: Sequence[Upload], who: str) -> UploadJob:
        """A job for these files, remembered when this returns. Raises BadRequest for names, Overloaded when too many
        wait, and StorageError.
        """
        ...

    def job(self, id: str) -> UploadJob:
        """How far a job is. Raises NotFound."""
        ...


class TraceSink(Protocol):
    """Keeps traces under the reader's scope."""

    def write(self, trace: Trace, scope: Scope) -> None:
        """Remember a trace. Must not raise into the answering path; a lost trace is counted."""
        ...


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A conversation as a store has it. `revision` counts its saves, from 1."""

    session: Session
    revision: int


class SessionStore(Protocol):
    """Remembers conversations between requests, each for exactly the reader who held it, for a limited time.

    `keeps` False is a store that remembers nothing, by choice: the client carries the conversation. `now_s` is in
    seconds since 1970. Both methods raise StorageError when the store cannot be reached or is damaged.
    """

    keeps: bool

    def load(self, session_id: str, scope: Scope, now_s: float) -> KeptSession | None:
        """The conversation. None for one that never was, has expired or is another reader's: nobody can tell which."""
        ...

    def save(self, session: Session, scope: Scope, revision: int, now_s: float) -> bool:
        """Remember it in the place of `revision`, 0 where there was none; this renews its time. False, and nothing has
        changed, when another save came first.
        """
        ...


class Tracker(Protocol):
    """Writes evaluations down where people compare them. It is told what was decided and decides nothing."""

    def record(self, evaluation: Evaluation, folder: Path) -> str:
        """The id of the run that now holds the evaluation and every file of `folder`.

        Recording the same evaluation again gives the same run. Raises StorageError, naming the tracker, when it could
        not be written; a run that was begun is then marked as failed, and becomes whole when it is recorded again.
        """
        ...

    def follow(self, rollout: Rollout, candidate: str | None) -> None:
        """Make the aliases `stable`, `canary` and `candidate` name what they are given, and nothing where that is
        None. Raises StorageError, naming the tracker.
        """
        ...
