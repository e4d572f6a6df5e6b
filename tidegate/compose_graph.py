"""Settings to the service that people reach: the stages as deployments, and around them what observes and releases.

Everything in a plan is made inside the replica that needs it, so nothing here is made yet. The things themselves are
compose.py and compose_releases.py.
"""

from dataclasses import replace
from functools import partial

from domain.ports import Stages
from serving.deployments.gateway import Ready
from serving.graph import GraphPlan, StageOptions
from serving.ray_home import Place
from serving.remote import Patience
from serving.service import Service
from serving.telemetry import Telemetry
from tidegate.admin import read_key
from tidegate.compose import make_generator, make_library, make_reranker, make_rewriter, make_service
from tidegate.compose_documents import SETTLE_S, make_amending
from tidegate.compose_ingestion import make_outcomes
from tidegate.compose_releases import make_lookout, make_observations, make_releases
from tidegate.compose_sessions import make_sessions
from tidegate.compose_shards import make_shard, make_sharded
from tidegate.settings import Settings, Stage
from tidegate.uploading import make_uploads
from tidegate.watching import live


def make_served(settings: Settings, stages: Stages, ready: Ready, telemetry: Telemetry) -> Service:
    """The service that people reach: beside answering it observes a canary, and moves the pointer for who may."""
    observations = make_observations(settings)
    return replace(
        make_service(settings, stages, ready, telemetry),
        sessions=make_sessions(settings),
        observations=observations,
        live_slo_ms=settings.canary.slo_ms,
        live=live(make_lookout(settings, observations)),
        releases=make_releases(settings),
        admin_key=read_key(settings),
        outcomes=make_outcomes(settings),
        uploads=make_uploads(settings),
        amending=make_amending(settings),
        settle_s=SETTLE_S,
        canary_share=settings.canary.shares[0],
    )


def graph_plan(settings: Settings) -> GraphPlan:
    """The same stages as Serve deployments; everything in it is made inside the replica."""
    sizes, limits, shards = settings.serving.stages, settings.serving, settings.retrieval.shards
    return GraphPlan(
        make_rewriter=partial(make_rewriter, settings),
        make_retriever=partial(make_library, settings),
        make_reranker=None if settings.rerank.backend == "none" else partial(make_reranker, settings),
        make_generator=partial(make_generator, settings),
        make_service=partial(make_served, settings),
        make_shards=tuple(partial(make_shard, settings, number) for number in range(shards)) if shards > 1 else (),
        merge=partial(make_sharded, settings),
        patience=Patience(
            rewrite_s=limits.rewrite_s,
            retrieve_s=limits.retrieve_s,
            rerank_s=limits.rerank_s,
            first_token_s=limits.first_token_s,
            idle_s=limits.idle_s,
            write_s=limits.write_s,
        ),
        rewriter=_options(sizes.rewriter),
        retriever=_options(sizes.retriever),
        reranker=_options(sizes.reranker),
        generator=_options(sizes.generator),
        gateway=_options(sizes.gateway),
    )


def place(settings: Settings) -> Place:
    """Where the graph listens."""
    return Place(host=settings.serving.host, port=settings.serving.port, haproxy=settings.serving.haproxy)


def _options(stage: Stage) -> StageOptions:
    return StageOptions(
        min_replicas=stage.min_replicas,
        max_replicas=stage.max_replicas,
        num_cpus=stage.num_cpus,
        num_gpus=stage.num_gpus,
        max_ongoing_requests=stage.max_ongoing_requests,
        target_ongoing_requests=stage.target_ongoing_requests,
    )
