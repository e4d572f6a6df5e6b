"""The composition root: where settings become the things that answer.

Every `make_...` is called in the process that needs the thing (a Serve replica, the command line), so this module
imports nothing heavy and its functions travel by name. To add a back end, add its line here. What is deployed of it
is compose_graph.py; what watches and moves versions is compose_releases.py; clients of Bedrock are compose_bedrock.py.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from domain.errors import ConfigError
from domain.naming import Naming
from domain.ports import Embedder, Generator, IndexRegistry, PairScorer, Reranker, Rewriter, Stages
from domain.types import OnUnsupported, Rules, Scope
from retrieval.index import HybridIndex
from retrieval.library import Library
from retrieval.registry import FolderRegistry
from retrieval.tokenizing import Tokenizer
from serving.address import is_loopback
from serving.auth import Authenticate, OpenTo, TrustedHeaders
from serving.deployments.gateway import Ready
from serving.keyring import KeyRing, read_keys
from serving.schemas import Limits
from serving.service import Service, always_ready
from serving.telemetry import Silent, Telemetry
from tidegate.api_keys import key_file
from tidegate.compose_bedrock import (
    AT_ONCE,
    bedrock_client,
    check_bedrock,
    make_bedrock_embedder,
    make_bedrock_scorer,
    make_knowledge_library,
    prices_of,
    rewriter_prices_of,
)
from tidegate.compose_calibration import check_calibration, make_bar, make_calibration
from tidegate.compose_covering import make_covering
from tidegate.compose_generation import check_hosted, make_hosted_generator, paces
from tidegate.settings import Settings
from tidegate.suggestions import offered

# ---------------------------------------------------------------------------------------------- records


def make_registry(settings: Settings) -> IndexRegistry:
    """Versions, decisions and the pointer, below the data folder or in a bucket."""
    if settings.registry.url is None:
        return FolderRegistry(settings.data_dir / "registry")
    from tidegate.compose_registry import make_s3_registry

    return make_s3_registry(settings)


def anonymous(settings: Settings) -> Scope:
    """The reader that everybody is while access is open."""
    return Scope(settings.access.tenant, frozenset(settings.access.groups))


# ---------------------------------------------------------------------------------------------- retrieval


def make_embedder(settings: Settings) -> Embedder:
    """The encoder that builds and searches; equal settings give equal tags."""
    from retrieval.embedding import CachedQueries, HashingEmbedder

    chosen = settings.embedding
    embedder: Embedder
    if chosen.backend == "hashing":
        embedder = HashingEmbedder(chosen.dimensions)
    elif chosen.backend == "bedrock":
        embedder = make_bedrock_embedder(settings)
    else:
        from retrieval.model_folder import minilm_folder
        from retrieval.neural import SentenceEncoder
        from retrieval.runtimes import Choice

        own = chosen.folder if chosen.backend == "folder" else None
        choice = Choice(chosen.runtime, chosen.dtype, chosen.device, chosen.threads)
        embedder = SentenceEncoder(own or minilm_folder(), choice, name="" if own else "minilm")
    return CachedQueries(embedder, chosen.query_cache) if chosen.query_cache else embedder


def make_tokenizer(settings: Settings) -> Tokenizer | None:
    """The tokenizer that a version keeps its passages for: that of the cross-encoder; None where none reads."""
    if not settings.rerank.reads:
        return None
    from retrieval.cross_encoder import tokenizer_of

    return tokenizer_of(_reading_folder(settings))


def _reading_folder(settings: Settings) -> Path:
    """The folder of the cross-encoder that reads: one that is named counts for its own backend alone."""
    from retrieval.opening import shipped_folder

    chosen = settings.rerank
    return chosen.folder if chosen.backend == "cross_encoder" and chosen.folder else shipped_folder()


def open_index(settings: Settings, embedder: Embedder, version: str) -> HybridIndex:
    """A version, open for searching. Raises IncompatibleIndex when it was built with another encoder or analyser."""
    return open_folder(settings, embedder, sound_folder(settings, version))


def sound_folder(settings: Settings, version: str) -> Path:
    """The folder of a version about to be opened, once it was seen to be what was published: whole up to
    `registry.verify_mb`, by its manifest and the size of every file above that.
    """
    registry = make_registry(settings)
    if registry.size(version) <= settings.registry.verify_mb * 1_000_000:
        registry.verify(version)
    else:
        registry.check(version)
    return registry.folder(version)


def open_folder(settings: Settings, embedder: Embedder, folder: Path) -> HybridIndex:
    """As `open_index`, by the folder of a version or of a shard of one."""
    chosen = settings.retrieval
    return HybridIndex.open(
        folder,
        embedder,
        lexical=chosen.lexical,
        k1=chosen.k1,
        b=chosen.b,
        dense=chosen.dense,
        nprobe=chosen.nprobe,
        ef_search=chosen.ef_search,
        exact_bytes=chosen.exact_mb << 20,
        fusion=chosen.fusion,
        dense_share=chosen.dense_share,
        rrf_k=chosen.rrf_k,
        arm_candidates=chosen.candidates,
    )


def make_library(settings: Settings) -> Library:
    """The Retriever of one process; `refresh` it before the first question."""
    if settings.retrieval.knowledge_base is not None:
        return make_knowledge_library(settings, make_registry(settings))
    embedder = make_embedder(settings)
    check_calibration(settings, embedder)
    opening = partial(open_index, settings, embedder)
    return Library(opening, make_registry(settings), settings.canary.drill_ms / 1000)


def make_reranker(settings: Settings, *, hurried: bool = True) -> Reranker:
    """The configured reranker. Raises ConfigError for a model that cannot be loaded or does not rank.

    Not `hurried`, it reads everything however long that takes: an evaluation must not depend on a busy machine.
    """
    from retrieval.reranking import FeatureReranker, ScoredReranker, read_weights

    def features() -> PairScorer:
        return FeatureReranker(read_weights(), word_vectors_of(settings))

    chosen = settings.rerank
    if chosen.backend == "bedrock":
        return ScoredReranker(make_bedrock_scorer(settings), chosen.depth, ThreadPoolExecutor(AT_ONCE, "reranker"))
    executor = ThreadPoolExecutor(1, "reranker")
    if not chosen.reads:
        return ScoredReranker(features(), chosen.depth, executor)
    from retrieval.mixing import ReadingReranker, reader_of
    from retrieval.opening import open_engine

    folder = _reading_folder(settings)
    reader = reader_of(folder)
    share = reader.share if chosen.share is None else chosen.share
    engine = open_engine(
        folder,
        runtime=chosen.runtime,
        dtype=chosen.dtype,
        device=chosen.device,
        threads=chosen.threads,
        batch_tokens=chosen.batch_tokens,
        within_s=chosen.within_ms / 1000 if hurried else None,
    )
    # A model that has a script of its own leaves other scripts to what was known before, whatever its share.
    prior = features() if share < 1 or reader.script else None
    return ReadingReranker(engine, chosen.depth, executor, share=share, script=reader.script, prior=prior)


def word_vectors_of(settings: Settings) -> Any:  # Callable[[Sequence[str]], numpy float32 [n, d]] | None
    """Static word vectors of the bundled encoder, where the settings use a neural encoder at all."""
    if settings.embedding.backend == "hashing":
        return None
    from retrieval.model_folder import minilm_folder
    from retrieval.word_vectors import word_vectors

    return word_vectors(minilm_folder())


# ---------------------------------------------------------------------------------------------- generation


def make_rewriter(settings: Settings) -> Rewriter:
    """The configured rewriter."""
    chosen = settings.rewriting
    if chosen.backend == "bedrock" and chosen.model_id:
        from generation.bedrock_rewriter import BedrockRewriter

        pace = paces().of(chosen.model_id)
        return BedrockRewriter(bedrock_client(settings), chosen.model_id, timeout_s=chosen.timeout_s, pace=pace)
    from generation.rewriting import AsTyped, RulesRewriter

    return AsTyped() if chosen.backend == "none" else RulesRewriter()


def make_generator(settings: Settings) -> Generator:
    """The configured generator. Raises CannotCache for a model that would silently not cache our prefix."""
    chosen = settings.generation
    if chosen.hosted:
        return make_hosted_generator(settings, bedrock_client)
    if chosen.backend == "ungrounded":
        from generation.ungrounded import UngroundedGenerator

        return UngroundedGenerator()
    from generation.extractive import ExtractiveGenerator

    # Where the evidence is weighed before anybody writes, declining once more would undo what was learned.
    return ExtractiveGenerator(nearest=make_covering(settings) is not None)


def check_startable(settings: Settings) -> None:
    """Raises at start what would otherwise be found out by the first question."""
    if settings.generation.hosted:
        check_hosted(settings)
    check_bedrock(settings)
    check_access(settings)
    make_naming(settings)


def check_access(settings: Settings) -> None:
    """Raises ConfigError for a service open to a network without keys, or by keys of which there are none."""
    access, host = settings.access, settings.serving.host
    if access.mode == "open" and not access.open_to_network and not is_loopback(host):
        raise ConfigError(
            f"serving.host {host} can be reached from other machines, and access.mode open lets everybody read: set "
            "access.mode to keys or header, serving.host to 127.0.0.1, or access.open_to_network to true."
        )
    if access.mode == "keys" and not read_keys(key_file(settings)):
        raise ConfigError(
            f"access.mode is keys and {key_file(settings)} has none: `tidegate keys add NAME --groups GROUP` makes one."
        )


# ---------------------------------------------------------------------------------------------- policies


def make_rules(settings: Settings) -> Rules:
    """The numbers of the policies, the trigger's in cosines of the encoder that searches."""
    chosen, bar = settings.answering, make_bar(settings)
    return Rules(
        k=chosen.k,
        wide_k=chosen.wide_k,
        rerank_depth=settings.rerank.depth,
        max_rounds=chosen.max_rounds,
        trigger_cosine=chosen.trigger_cosine if bar is None else bar.at(chosen.trigger_cosine),
        trigger_min_chunks=chosen.trigger_min_chunks,
        pool_cap=chosen.pool_cap,
        history_turns=chosen.history_turns,
        evidence_token_cap=chosen.evidence_token_cap,
        max_question_chars=chosen.max_question_chars,
        on_unsupported=OnUnsupported(settings.citations.unsupported),
        session_turns=settings.sessions.turns,
        session_chars=settings.sessions.chars,
        agent_steps=settings.seeking.steps if settings.seeking.mode == "agent" else 0,
        agent_covered=settings.seeking.covered,
        calibration=make_calibration(settings),
        covering=make_covering(settings),
        prices=prices_of(settings),
        rewriter_prices=rewriter_prices_of(settings),
    )


def make_naming(settings: Settings) -> Naming:
    """The naming policy over the terms in a private file, read now and kept nowhere else."""
    path = settings.answering.forbidden_terms_file
    if path is None:
        return Naming(())
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(
            f"answering.forbidden_terms_file {path} cannot be read ({reason}): mend it, or remove the setting."
        ) from error
    return Naming([line.strip() for line in lines if line.strip()])


def make_authenticate(settings: Settings) -> Authenticate:
    """Who a request is, by the configured mode."""
    modes: dict[str, Callable[[], Authenticate]] = {
        "open": lambda: OpenTo(anonymous(settings)),
        "header": TrustedHeaders,
        "keys": lambda: KeyRing(key_file(settings)),
    }
    return modes[settings.access.mode]()


# ---------------------------------------------------------------------------------------------- the service


def make_service(settings: Settings, stages: Stages, ready: Ready, telemetry: Telemetry) -> Service:
    """What the HTTP surface needs, around stages wherever they are."""
    authenticate = make_authenticate(settings)
    return Service(
        stages=stages,
        rules=make_rules(settings),
        naming=make_naming(settings),
        registry=make_registry(settings),
        authenticate=authenticate,
        admin_of=authenticate.admin_of if isinstance(authenticate, KeyRing) else None,
        limits=Limits(max_body_bytes=settings.serving.max_body_bytes, max_k=settings.retrieval.max_k),
        ready=ready,
        telemetry=telemetry,
        suggestions=offered(settings.data_dir),
    )


def in_process_stages(settings: Settings, library: Library, *, hurried: bool = True) -> Stages:
    """All four stages in this process: for the command line and for evaluation, over the same answering path."""
    reranker = None if settings.rerank.backend == "none" else make_reranker(settings, hurried=hurried)
    return Stages(make_rewriter(settings), library, reranker, make_generator(settings))


def evaluation_service(settings: Settings, library: Library) -> Service:
    """The service over stages in this process, for a harness that names the reader and the version itself."""
    service = make_service(settings, in_process_stages(settings, library, hurried=False), always_ready, Silent())
    limits = replace(service.limits, max_k=10_000)  # a collection's recall@100 needs several chunks per document
    return replace(service, authenticate=TrustedHeaders(), limits=limits, pinnable=True)
