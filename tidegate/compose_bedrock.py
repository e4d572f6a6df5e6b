"""Settings to clients of Bedrock, and to what is behind the ports of retrieval with them.

The only file that makes clients of boto3. Region, address and time limits are those of `generation`. No client repeats
a call: generation/efforts.py does, and all who ask one model in a process share its pace.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from domain.costs import Prices
from domain.errors import ConfigError
from domain.ports import Embedder, IndexRegistry, PairScorer
from retrieval.bedrock import Trying
from retrieval.library import Library
from tidegate.compose_generation import check_credentials, paces
from tidegate.settings import Settings

MODELS, AGENTS = "bedrock-runtime", "bedrock-agent-runtime"
AT_ONCE = 16  # calls in flight of one replica; Titan takes one text a call


def bedrock_client(settings: Settings, service: str = MODELS) -> Any:  # boto3
    """A client with our limits. Raises ConfigError when no region or no credentials are configured anywhere.

    `generation.endpoint_url` is the address of models. Reranking and knowledge bases have another one, which is the
    vendor's or boto3's own AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME.
    """
    import boto3
    from botocore.exceptions import BotoCoreError, NoRegionError

    from generation.bedrock_calls import client_config

    chosen = settings.generation
    ours = service == MODELS and chosen.backend != "openai_compatible"
    session = boto3.Session(region_name=chosen.region)
    try:
        client = session.client(
            service,
            endpoint_url=chosen.endpoint_url if ours else None,
            config=client_config(chosen.connect_timeout_s, chosen.read_timeout_s),
        )
    except NoRegionError as error:
        raise ConfigError("No cloud region is configured: set generation.region or AWS_DEFAULT_REGION.") from error
    except BotoCoreError:
        check_credentials(session)  # half a key, or a profile that is not there, is told as what it is
        raise
    check_credentials(session)
    return client


def check_bedrock(settings: Settings) -> None:
    """Raises ConfigError when something of these settings asks Bedrock and region or credentials are missing."""
    for service in services(settings):
        bedrock_client(settings, service).close()


def services(settings: Settings) -> tuple[str, ...]:
    """The services of Bedrock that these settings ask, by the names of their clients; empty for none."""
    models = "bedrock" in (settings.generation.backend, settings.rewriting.backend, settings.embedding.backend)
    agents = settings.rerank.backend == "bedrock" or settings.retrieval.knowledge_base is not None
    return (*((MODELS,) if models else ()), *((AGENTS,) if agents else ()))


def make_bedrock_embedder(settings: Settings) -> Embedder:
    """The encoder that Bedrock runs. Raises ConfigError as `bedrock_client`."""
    from retrieval.bedrock import BedrockEmbedder

    chosen = settings.embedding
    client = bedrock_client(settings)
    model_id = chosen.model_id or ""  # settings refuse the backend without one
    threads = ThreadPoolExecutor(AT_ONCE, "embedder")
    return BedrockEmbedder(client, model_id, chosen.dimensions, threads, make_trying(settings, model_id))


def make_bedrock_scorer(settings: Settings) -> PairScorer:
    """The reranking model that Bedrock runs. Raises ConfigError as `bedrock_client`."""
    from retrieval.bedrock import BedrockPairScorer

    client = bedrock_client(settings, AGENTS)
    model = settings.rerank.model_id or ""  # settings refuse the backend without one
    if not model.startswith("arn:"):
        model = f"arn:{client.meta.partition}:bedrock:{client.meta.region_name}::foundation-model/{model}"
    return BedrockPairScorer(client, model, make_trying(settings, model))


def make_trying(settings: Settings, asked: str) -> Trying:
    """What calls a model or a knowledge base again: as hard as for answers, at the pace of all who ask it."""
    from generation.efforts import Effort, tried

    chosen = settings.generation
    effort = Effort(attempts=chosen.attempts, deadline_s=chosen.deadline_s)
    return partial(tried, model_id=asked, effort=effort, pace=paces().of(asked))


def make_knowledge_library(settings: Settings, registry: IndexRegistry) -> Library:
    """The library over the configured Knowledge Base. Raises ConfigError as `bedrock_client`."""
    from retrieval.bedrock import KnowledgeBaseRetriever
    from retrieval.knowledge_library import KnowledgeLibrary

    client, base = bedrock_client(settings, AGENTS), settings.retrieval.knowledge_base or ""
    executor = ThreadPoolExecutor(AT_ONCE, "knowledge-base")
    retriever = KnowledgeBaseRetriever(client, base, executor, make_trying(settings, base))
    return KnowledgeLibrary(retriever, registry, settings.canary.drill_ms / 1000)


def prices_of(settings: Settings) -> Prices | None:
    """What an answer's tokens cost; None where that is not known.

    Bedrock counts neither the tokens of a search nor those of reranking for us, so with them the cost of an answer is
    not measured: the tokens of its text alone would be told as all there is.
    """
    uncounted = "bedrock" in (settings.embedding.backend, settings.rerank.backend)
    if uncounted or settings.retrieval.knowledge_base is not None:
        return None
    return settings.costs.of(settings.generation.model)


def rewriter_prices_of(settings: Settings) -> Prices | None:
    """What the tokens of a rewritten question cost; None where that is not known, or no model rewrites."""
    chosen = settings.rewriting
    return settings.costs.of(chosen.model_id or "") if chosen.backend == "bedrock" else None
