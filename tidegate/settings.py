"""Every number and name a person can set, as frozen data with bounds; no logic beyond "these two cannot both stand".

`Settings()` is what an installation without a file runs with. How a version reaches people is settings_release.py, the
encoder settings_embedding.py, what reorders candidates settings_rerank.py, who writes settings_generation.py, what that
costs settings_costs.py. Reading files, variables and `--set` is loading.py; printing and hashing them is effective.py;
turning them into objects is compose.py. examples/tidegate.yaml is all of it as YAML, complete.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tidegate.section import Folder, Name, Names, Seconds, Section, Share
from tidegate.settings_abstaining import Abstaining
from tidegate.settings_citations import Citations
from tidegate.settings_costs import Costs
from tidegate.settings_embedding import Embedding
from tidegate.settings_generation import Generation, Rewriting
from tidegate.settings_ingestion import Ingestion
from tidegate.settings_judge import Judge
from tidegate.settings_registry import Registry
from tidegate.settings_release import Canary, Evaluation, Tracking
from tidegate.settings_rerank import Rerank
from tidegate.settings_seeking import Seeking
from tidegate.settings_sessions import Sessions
from tidegate.settings_uploads import Uploads

Replicas = Annotated[int, Field(ge=1, le=1000)]
KnowledgeBaseId = Annotated[str, StringConstraints(pattern=r"^[0-9a-zA-Z]{10}$"), "ten letters and digits"]


class AccessRule(Section):
    """Who may read the files of a part of the corpus that do not say it themselves."""

    path: Name = Field(description="Path in the corpus: ** stands for any folders, * for any name.")
    groups: Names = Field(description="Their groups; an empty list is nobody.")


class Access(Section):
    """Who may read what."""

    mode: Literal["open", "header", "keys"] = Field(
        default="open",
        description="open: every caller is `anonymous`; header: a proxy's headers say who; keys: `tidegate keys add`.",
    )
    keys_file: Folder | None = Field(
        default=None, description="File of the keys. Absent: keys.json in data_dir, made by the first key."
    )
    open_to_network: bool = Field(
        default=False, description="With mode open, serve on an address that other machines can reach."
    )
    tenant: Name = Field(
        default="harbour", description="Tenant of an anonymous caller, and of documents that name none."
    )
    groups: Names = Field(
        default=("public",), description="Groups of an anonymous caller; an empty list reads nothing."
    )
    default_groups: Names = Field(
        default=(), description="Groups of a document that names none; an empty list is nobody."
    )
    rules: Annotated[
        tuple[AccessRule, ...], Field(strict=False), "a list of rules like [{path: hr/**, groups: [hr]}]"
    ] = Field(default=(), description="Groups of documents by their path; the first that fits counts.")
    admin_key_file: Folder | None = Field(
        default=None,
        description="File with the key that moves the pointer over HTTP. Absent: admin.key in data_dir, made once.",
    )


class Chunking(Section):
    """How documents become passages. Part of an index version: a change needs a new build."""

    strategy: Literal[
        "heading", "fixed", "sentence", "paragraph", "semantic", "contextual", "hierarchical", "whole"
    ] = Field(default="heading", description="Where passages may begin and end, and what of them is searched.")
    tokens: int = Field(default=200, ge=8, le=8192, description="Size a passage aims for, in estimated tokens.")
    overlap: int = Field(
        default=0, ge=0, le=4096, description="Tokens repeated from the passage before; below `tokens`."
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.overlap >= self.tokens:
            yield "overlap", f"less than chunking.tokens ({self.tokens}), or chunking would never advance"


class Retrieval(Section):
    """How candidates are found and fused."""

    lexical: Literal["bm25", "rank_bm25"] = Field(default="bm25", description="Lexical arm.")
    k1: float = Field(default=0.9, ge=0, le=10, description="BM25 term saturation, no unit.")
    b: Share = Field(default=0.4, description="BM25 length normalisation, 0 (none) to 1 (full).")
    dense: Literal["auto", "exact", "faiss", "codes", "ivf", "hnsw", "gpu"] = Field(
        default="auto",
        description="Dense arm. auto, by size; exact in numpy, faiss or gpu; approximate: codes, ivf or hnsw.",
    )
    nprobe: int = Field(default=256, ge=1, le=65_536, description="Lists that arm ivf looks into.")
    ef_search: int = Field(
        default=64, ge=1, le=10_000, description="Chunks that arm hnsw chooses from; more find more and take longer."
    )
    exact_mb: int = Field(
        default=64,
        ge=0,
        le=1_000_000,
        description="A reader who sees at most so many MiB of vectors is searched exactly, whatever others have.",
    )
    fusion: Literal["convex", "rrf", "weighted", "dense", "lexical"] = Field(
        default="convex", description="How the two arms become one ranking."
    )
    dense_share: Share = Field(default=0.6, description="Weight of the dense arm in convex and weighted fusion.")
    rrf_k: int = Field(default=60, ge=1, le=10_000, description="Rank constant of reciprocal rank fusion.")
    candidates: int = Field(default=100, ge=1, le=10_000, description="Chunks each arm contributes to fusion.")
    max_k: int = Field(default=100, ge=1, le=10_000, description="Most chunks one search may ask for.")
    shards: int = Field(
        default=1, ge=1, le=1000, description="Parts a served version is cut into, each with retriever replicas."
    )
    knowledge_base: KnowledgeBaseId | None = Field(
        default=None,
        description="Id of a Bedrock Knowledge Base that is searched. Absent: the index of a version is.",
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.max_k > self.candidates:
            yield "max_k", f"at most retrieval.candidates ({self.candidates})"
        if self.shards > 1 and self.dense not in ("exact", "faiss", "gpu"):
            yield (
                "dense",
                "exact, faiss or gpu: shards answer exactly what one index answers, and others are approximate",
            )
        if self.shards > 1 and self.lexical != "bm25":
            yield "lexical", "bm25, the only lexical arm that scores with the statistics of all shards"
        if self.shards > 1 and self.knowledge_base is not None:
            yield "shards", "1, because retrieval.knowledge_base is searched and no index is cut"


class Answering(Section):
    """The numbers of the answering policies."""

    k: int = Field(default=6, ge=1, le=1000, description="Chunks of the first round.")
    wide_k: int = Field(default=12, ge=1, le=1000, description="Chunks of the second, wider round.")
    max_rounds: int = Field(default=2, ge=1, le=2, description="Retrieval rounds per turn, at most.")
    trigger_cosine: float = Field(
        default=0.30,
        ge=-1,
        le=1,
        description="Best cosine under which a second round starts; never a reason to abstain. Written in cosines of "
        "the bundled encoder; for another one the calibration gives the cosine that as many questions stay under.",
    )
    trigger_min_chunks: int = Field(default=3, ge=0, le=1000, description="Chunks under which a second round starts.")
    calibration: Folder | None = Field(
        default=None,
        description="File that `tidegate calibrate` wrote: what scores are worth. Absent: nobody measured it.",
    )
    pool_cap: int = Field(default=24, ge=1, le=1000, description="Chunks a conversation remembers.")
    history_turns: int = Field(default=10, ge=0, le=200, description="Turns of the conversation shown to the model.")
    evidence_token_cap: int = Field(default=6000, ge=64, le=1_000_000, description="Tokens of evidence per prompt.")
    max_question_chars: int = Field(default=4000, ge=1, le=1_000_000, description="Longest question, in characters.")
    forbidden_terms_file: Folder | None = Field(
        default=None,
        description="File of terms never shown, one per line, read at run time. Absent: no term is forbidden.",
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.wide_k < self.k:
            yield "wide_k", f"at least answering.k ({self.k}): the second round is the wider one"
        if self.pool_cap < self.wide_k:
            yield "pool_cap", f"at least answering.wide_k ({self.wide_k}), or a round would evict itself"
        if self.trigger_min_chunks > self.k:
            yield "trigger_min_chunks", f"at most answering.k ({self.k}), or every question takes two rounds"


class Stage(Section):
    """The size of one Serve deployment. Nothing has a default here: each stage below states its own."""

    min_replicas: Replicas = Field(description="Replicas that always run.")
    max_replicas: Replicas = Field(description="Replicas under load.")
    num_cpus: float = Field(ge=0, le=1024, description="CPUs reserved per replica; a share below 1 is fine.")
    num_gpus: float = Field(ge=0, le=64, description="GPUs reserved per replica; a share below 1 is fine.")
    max_ongoing_requests: int = Field(ge=1, le=100_000, description="Requests a replica works on at once.")
    target_ongoing_requests: float = Field(ge=0.1, le=100_000, description="Requests per replica to scale for.")

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.max_replicas < self.min_replicas:
            yield "max_replicas", f"at least min_replicas ({self.min_replicas})"
        if self.target_ongoing_requests > self.max_ongoing_requests:
            yield "target_ongoing_requests", f"at most max_ongoing_requests ({self.max_ongoing_requests})"
        for key, amount in (("num_cpus", self.num_cpus), ("num_gpus", self.num_gpus)):
            if amount > 1 and not amount.is_integer():
                yield key, "a share up to 1 or a whole number, the only amounts Ray can reserve"


def _stage(min_replicas: int, max_replicas: int, num_cpus: float, ongoing: int, target: float) -> Stage:
    return Stage(
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        num_cpus=num_cpus,
        num_gpus=0.0,
        max_ongoing_requests=ongoing,
        target_ongoing_requests=target,
    )


class StageSizes(Section):
    """The deployments. At their maximum the defaults reserve 1.7 CPUs, so everything fits on a two-core machine."""

    gateway: Stage = _stage(2, 4, 0.05, 128, 32.0)  # two at least: one dies, the other answers
    rewriter: Stage = _stage(1, 2, 0.05, 64, 16.0)
    retriever: Stage = _stage(2, 4, 0.2, 16, 4.0)
    reranker: Stage = _stage(1, 2, 0.2, 32, 8.0)
    generator: Stage = _stage(2, 4, 0.05, 32, 8.0)


class Serving(Section):
    """Where and how large the service runs."""

    host: Name = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 opens it to the network.")
    port: int = Field(default=8000, ge=1, le=65535, description="Port to listen on.")
    haproxy: Literal["auto", "on", "off"] = Field(default="auto", description="auto: where its binary exists.")
    rewrite_s: Seconds = Field(default=5.0, description="Seconds for rewriting; then the question is used as typed.")
    retrieve_s: Seconds = Field(default=10.0, description="Seconds for one search; then the request fails.")
    rerank_s: Seconds = Field(default=10.0, description="Seconds for reranking; then fused order stands.")
    first_token_s: Seconds = Field(default=60.0, description="Seconds to the first piece of an answer; then it fails.")
    idle_s: Seconds = Field(
        default=30.0, description="Seconds between two pieces of an answer; then it is interrupted."
    )
    write_s: Seconds = Field(default=120.0, description="Seconds for a whole answer that is not streamed.")
    max_body_bytes: int = Field(
        default=1_000_000, ge=1024, le=100_000_000, description="Largest request body, in bytes."
    )
    stages: StageSizes = StageSizes()


class Sample(Section):
    """The library that is made up when no corpus is named."""

    seed: int = Field(default=7, ge=0, le=2**31 - 1, description="Seed: the same seed gives the same library.")
    documents: int = Field(default=300, ge=100, le=1200, description="Documents to write.")
    questions: int = Field(default=1200, ge=10, le=1_000_000, description="Questions to write.")


class Settings(Section):
    """Everything. Paths in a loaded object are absolute; see loading.py for what they are relative to."""

    data_dir: Folder = Field(default=Path(".tidegate"), description="Folder of versions and records.")
    registry: Registry = Registry()
    access: Access = Access()
    ingestion: Ingestion = Ingestion()
    chunking: Chunking = Chunking()
    embedding: Embedding = Embedding()
    retrieval: Retrieval = Retrieval()
    rerank: Rerank = Rerank()
    answering: Answering = Answering()
    abstaining: Abstaining = Abstaining()
    citations: Citations = Citations()
    seeking: Seeking = Seeking()
    sessions: Sessions = Sessions()
    generation: Generation = Generation()
    rewriting: Rewriting = Rewriting()
    costs: Costs = Costs()
    serving: Serving = Serving()
    evaluation: Evaluation = Evaluation()
    judge: Judge = Judge()
    tracking: Tracking = Tracking()
    canary: Canary = Canary()
    sample: Sample = Sample()
    uploads: Uploads = Uploads()

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.answering.wide_k > self.retrieval.max_k:
            yield "answering.wide_k", f"at most retrieval.max_k ({self.retrieval.max_k})"
        if self.rerank.depth > self.retrieval.candidates:
            yield "rerank.depth", f"at most retrieval.candidates ({self.retrieval.candidates})"
        if self.answering.evidence_token_cap < self.chunking.tokens:
            yield "answering.evidence_token_cap", f"at least chunking.tokens ({self.chunking.tokens}): chunks go whole"
        if self.sessions.turns < self.answering.history_turns:
            yield "sessions.turns", f"at least answering.history_turns ({self.answering.history_turns})"
        if self.retrieval.knowledge_base is not None and self.answering.calibration is not None:
            yield "answering.calibration", "null: it measured an index, and retrieval.knowledge_base is searched"
        if self.retrieval.dense == "gpu" and not self.serving.stages.retriever.num_gpus:
            yield "serving.stages.retriever.num_gpus", "more than 0, because retrieval.dense is gpu"
        if self.embedding.on_gpu and not self.serving.stages.retriever.num_gpus:
            yield "serving.stages.retriever.num_gpus", "more than 0, because embedding.device is cuda"
        reranker = self.serving.stages.reranker
        if self.rerank.reads and self.rerank.device == "cuda" and not reranker.num_gpus:
            # Ray hides every GPU from a replica that reserves none.
            yield "serving.stages.reranker.num_gpus", "more than 0, because rerank.device is cuda"
        if self.rerank.reads and self.rerank.within_ms >= self.serving.rerank_s * 1000:
            yield (
                "rerank.within_ms",
                f"less than serving.rerank_s ({self.serving.rerank_s:g} s), or nothing would be read",
            )
        if self.rerank.reads and (too_few := self.rerank.too_few(reranker.max_ongoing_requests, self.chunking.tokens)):
            yield "serving.stages.reranker.max_ongoing_requests", too_few
