"""The glossary: what a question, a chunk, a hit, an answer and a verdict *are*.

Frozen, slotted dataclasses with tuples and frozensets inside, so that they cross process borders unchanged and
nobody can edit what somebody else is reading. No behaviour beyond what the words themselves mean; rules live in
policies.py and rollout.py, the main path in answering.py.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from domain.calibration import Calibration
    from domain.costs import Prices
    from domain.covering import Coverage, Covering

# ---------------------------------------------------------------------------------------------- who is asking


@dataclass(frozen=True, slots=True)
class Scope:
    """Who is asking. No retrieval, chunk lookup, trace or cache signature exists without one.

    Names are compared exactly: `Staff` is not `staff`. A scope without groups may read nothing.
    """

    tenant: str
    groups: frozenset[str]

    def may_read(self, tenant: str, groups: frozenset[str]) -> bool:
        """True when something of this tenant with these access groups is visible to the reader."""
        return tenant == self.tenant and not self.groups.isdisjoint(groups)


# ---------------------------------------------------------------------------------------------- the library


@dataclass(frozen=True, slots=True)
class Mark:
    """From the character `start` of a text on, something is at `name`: "page 12", "slide 3", "00:01:23"."""

    start: int
    name: str


@dataclass(frozen=True, slots=True)
class Document:
    """One source text as it came in, before chunking. `published` is an ISO date or empty when unknown.

    `marks` say by offset where in its file the text stands. Where there are none, lines may: the text begins at line
    `first_line` of its file, 0 where lines mean nothing to a person.
    """

    doc_id: str
    title: str
    text: str
    uri: str
    source: str
    published: str
    groups: frozenset[str]
    tenant: str
    content_hash: str
    marks: tuple[Mark, ...] = ()
    first_line: int = 0


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where a chunk came from, as a person would be told. `uri` may be empty.

    `place` is where in the document it stands, "pages 12-13" or "lines 40-52", or empty where nobody can say.
    """

    doc_id: str
    title: str
    uri: str
    source: str
    published: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage that can be retrieved and cited whole. `id` is document id, ordinal and content hash.

    `heading` is the path of headings above the passage, joined by " > ", or empty. `context` helps to find it and is
    no part of the document: nobody is shown it, and nothing rests on it.
    """

    id: str
    text: str
    ordinal: int
    heading: str
    source: SourceRef
    tenant: str
    groups: frozenset[str]
    context: str = ""


# ---------------------------------------------------------------------------------------------- questions and hits


class Mode(StrEnum):
    """Which first-stage arms answer a search."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    DENSE = "dense"


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for after rewriting, with paraphrases that widen the search in a second round."""

    text: str
    variants: tuple[str, ...] = ()


class RewriteStatus(StrEnum):
    """What became of the rewrite: USED changed the query, the other three left the question as typed."""

    NOT_NEEDED = "not_needed"
    UNCHANGED = "unchanged"
    USED = "used"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of model calls by class. `input_tokens` excludes both cache classes, as the vendors report it.

    Not `measured`, a model was asked and did not say what it used: the zeros mean nothing.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The effective query of a turn and how it came about; `reason` explains a fallback, `usage` is what it took."""

    query: Query
    status: RewriteStatus
    reason: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class PassageTokens:
    """A passage as a tokenizer cut it when the version was built: `ids` are little-endian int32, special ones left out.

    `stamp` names the tokenizer; a scorer with another one must read the text instead.
    """

    stamp: str
    ids: bytes


@dataclass(frozen=True, slots=True)
class Hit:
    """The one currency of every retrieval stage: a chunk, its score and its rank (from 1) under `method`.

    `cosine` and `bm25` say what each first-stage arm thought; None means that arm did not return the chunk, which
    is different from 0. Scores of different methods are not comparable. `tokens` are None where the version keeps none.
    """

    chunk: Chunk
    score: float
    rank: int
    method: str
    cosine: float | None = None
    bm25: float | None = None
    tokens: PassageTokens | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The candidates of one search, best first, and the version that really answered.

    `version` differs from the one asked for when a canary was not open yet and stable answered; `notes` says so.
    """

    hits: tuple[Hit, ...]
    version: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reranking:
    """A permutation of the hits that were given, with new scores and ranks.

    `notes` says what is less than it could be: hits that were not read in time, passages that were read in part.
    """

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()


class TextSide(StrEnum):
    """What a text is to an encoder: some read the one that is asked unlike the one that answers."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Texts as `encoder` sees them: a row of little-endian float32 each, of unit length. `version` is the one whose
    encoder it was; `tokens` were read, None where nobody counts them.
    """

    rows: tuple[bytes, ...]
    dimensions: int
    encoder: str
    version: str
    tokens: int | None = None


# ---------------------------------------------------------------------------------------------- conversation


class Role(StrEnum):
    """Who said a turn."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation so far."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """A chunk that joined the conversation, and the number of the user turn (from 1) in which it did."""

    chunk_id: str
    joined_turn: int


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation as the client carries it: whatever comes in is re-validated, whoever kept it.

    `version` is the one that answered last, "" before any did; it explains what is gone and decides nothing. `earlier`
    counts the user turns that are no longer in `turns`.
    """

    id: str
    turns: tuple[Turn, ...] = ()
    pool: tuple[PoolEntry, ...] = ()
    version: str = ""
    earlier: int = 0

    @property
    def turn_number(self) -> int:
        """The number of the user turn being answered now, from 1."""
        return 1 + self.earlier + sum(turn.role is Role.USER for turn in self.turns)


@dataclass(frozen=True, slots=True)
class PoolTally:
    """What became of a conversation's chunks in one turn, in chunks. `unknown` does not say whether one exists."""

    kept: int = 0
    joined: int = 0
    unknown: int = 0  # forged, or not this reader's
    stale: int = 0  # of the version that answered before, and not in this one
    duplicate: int = 0
    over_cap: int = 0
    evicted: int = 0  # any number of them changes the evidence before them once

    @property
    def dropped(self) -> int:
        """How many of the entries that came were not believed."""
        return self.unknown + self.stale + self.duplicate + self.over_cap


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the library. `k` None means the configured number of chunks; `deeper` asks for a second round."""

    question: str
    session: Session
    scope: Scope
    version: str
    trace_id: str
    k: int | None = None
    deeper: bool = False


class OnUnsupported(StrEnum):
    """What becomes of a sentence that its sources do not state: shown and named, or held back and not shown."""

    FLAG = "flag"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Rules:
    """Every number and list a policy uses. They arrive from settings; no policy holds a number of its own.

    Counts are chunks unless named otherwise; `trigger_cosine` is the bar under which the best hit is "thin", in cosines
    of the encoder that searches. `calibration` says what its scores are worth, None where nobody measured it.
    """

    k: int
    wide_k: int
    rerank_depth: int
    max_rounds: int
    trigger_cosine: float
    trigger_min_chunks: int
    pool_cap: int
    history_turns: int
    evidence_token_cap: int
    max_question_chars: int
    session_turns: int
    session_chars: int
    calibration: "Calibration | None" = None
    agent_steps: int = 0  # 0: rounds
    agent_covered: float = 0.6  # share of a part's words that one passage must have
    on_unsupported: OnUnsupported = OnUnsupported.FLAG
    prices: "Prices | None" = None  # of the generating model
    covering: "Covering | None" = None  # None: whether the evidence covers a question is left to the generator
    rewriter_prices: "Prices | None" = None


# ---------------------------------------------------------------------------------------------- answering


@dataclass(frozen=True, slots=True)
class Evidence:
    """A chunk as the model sees it: numbered `S1`..`Sn` by packing."""

    sid: str
    chunk: Chunk
    joined_turn: int
    tokens: int


class StopReason(StrEnum):
    """Why a generator stopped. Values a vendor invents later map to UNKNOWN, never to a normal end."""

    END = "end"
    LENGTH = "length"
    CONTEXT_FULL = "context_full"
    FILTERED = "filtered"
    NOT_COVERED = "not_covered"
    TOOL = "tool"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of raw generated text, before any policy has seen it."""

    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """How a generator ends: the whole raw text, why it stopped and what it used. `detail` is the vendor's own word."""

    text: str
    stop: StopReason
    usage: Usage = Usage()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim's pointer to its source. Only ever built by the citation policy, from packed evidence."""

    sid: str
    chunk_id: str
    doc_id: str
    label: str
    uri: str
    quote: str
    joined_turn: int
    source: str = ""  # the kind of document, as a person would be told
    published: str = ""
    place: str = ""  # where in the document: "pages 12-13"


class Grounding(StrEnum):
    """How much of the answer rests on cited evidence."""

    GROUNDED = "grounded"
    PARTIAL = "partial"
    UNGROUNDED = "ungrounded"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A sentence that cites, without its markers, and what it states that none of the cited passages states."""

    text: str
    sids: tuple[str, ...]
    lacking: tuple[str, ...]


class Status(StrEnum):
    """How the answer ended. Values, not moods: only COMPLETE may be scored as a whole answer."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    BLOCKED = "blocked"
    REFUSED = "refused"
    NO_SOURCES = "no_sources"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RetrievalRound:
    """One retrieval round: what was searched, how many chunks were wanted, what came back, why another followed.

    `relevance` is the chance, 0..1, that the best hit holds evidence on the question; None where it is not calibrated.
    """

    query: Query
    k: int
    candidates: tuple[tuple[str, float], ...]  # (chunk id, score), best first, after reranking
    reranked: bool
    trigger: str = ""
    relevance: float | None = None
    tool: str = "search"


@dataclass(frozen=True, slots=True)
class Trace:
    """Enough to replay and to explain an answer. Ids and numbers only; text stays under the corpus's access rules."""

    id: str
    version: str
    rounds: tuple[RetrievalRound, ...]
    packed: tuple[str, ...]
    stage_ms: tuple[tuple[str, float], ...]
    usage: Usage
    pool: PoolTally = PoolTally()
    stopped: str = ""  # why an agent looked no further
    coverage: "Coverage | None" = None  # None: it did not come to that
    notes: tuple[str, ...] = ()  # every degradation: what fell back, and why
    dropped: int = 0  # markers that named nothing which was supplied, and were not shown
    unsupported: int = 0  # sentences that their sources do not state, shown or not
    rewriting: Usage = Usage()  # of the model that rewrites and paraphrases; `usage` is of the generating one alone
    cost_usd: float | None = None  # of both; None: not measured


@dataclass(frozen=True, slots=True)
class Answer:
    """The finished answer. Every visible string in it has already been scrubbed."""

    text: str
    citations: tuple[Citation, ...]
    consulted: tuple[Citation, ...]  # all packed evidence, cited or not, in packing order
    grounding: Grounding
    status: Status
    session: Session
    rewrite: Rewrite
    trace: Trace
    unsupported: tuple[Unsupported, ...] = ()  # of the sentences shown


# ---------------------------------------------------------------------------------------------- answer events


@dataclass(frozen=True, slots=True)
class Started:
    """First event of an answer: what is searched for, and in which version."""

    trace_id: str
    version: str
    rewrite: Rewrite


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Visible text, safe to show now and never withdrawn."""

    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A source is cited for the first time; its marker is in the text delta just before."""

    citation: Citation


@dataclass(frozen=True, slots=True)
class Done:
    """Terminal: the answer ended, well or not; `answer.status` says how."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """Terminal: no answer. `code` is stable, `message` is scrubbed, `partial` is what was already shown.

    `error` is the exception itself, for an edge that maps classes to statuses; it is never shown.
    """

    code: str
    message: str
    retryable: bool
    partial: str = ""
    retry_after_s: float | None = None
    trace: Trace | None = None
    error: Exception | None = field(default=None, repr=False, compare=False)


Event = Started | TextDelta | Cited | Done | Failed
