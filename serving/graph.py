"""The request graph: four stages and a gateway as Ray Serve deployments, bound together and started.

Each deployment has its own autoscaling and its own share of CPUs and GPUs; how much is said by whoever makes the plan.
What a deployment does is in deployments/, how it is reached in remote.py, how Ray itself is started in ray_home.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import OK
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.request import ProxyHandler, build_opener

from domain.errors import ConfigError, NotReady
from domain.ports import Generator, Reranker, Rewriter
from serving.deployments.gateway import MakeService
from serving.deployments.retriever import Library
from serving.ray_home import Place, RayHome
from serving.remote import Merge, Patience, shard_name

APP = "tidegate"


@dataclass(frozen=True, slots=True)
class StageOptions:
    """The size of one deployment. Requests are counted per replica; shares of CPU and GPU are what Ray reserves."""

    min_replicas: int = 1
    max_replicas: int = 2
    num_cpus: float = 0.1
    num_gpus: float = 0.0
    max_ongoing_requests: int = 32
    target_ongoing_requests: float = 8.0
    max_queued_requests: int = 200  # waiting at one gateway for this stage; beyond it the gateway answers "overloaded"
    upscale_delay_s: float = 2.0
    downscale_delay_s: float = 120.0


GATEWAY = StageOptions(2, 4, 0.05, 0.0, 512, 64.0)  # two at least: one dies, the other answers


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """Everything the graph is built from. Every `make_...` is called inside the replica and must pickle: a function of
    a module, or functools.partial of one.
    """

    make_rewriter: Callable[[], Rewriter]
    make_retriever: Callable[[], Library]
    make_reranker: Callable[[], Reranker] | None
    make_generator: Callable[[], Generator]
    make_service: MakeService
    make_shards: tuple[Callable[[], Library], ...] = ()  # in the place of make_retriever, where a library is cut
    merge: Merge | None = None  # all shards to one retriever, in the gateway
    patience: Patience = field(default_factory=Patience)
    rewriter: StageOptions = StageOptions()
    retriever: StageOptions = StageOptions()
    reranker: StageOptions = StageOptions()
    generator: StageOptions = StageOptions()
    gateway: StageOptions = GATEWAY


def build(plan: GraphPlan, metrics_folder: Path | None = None) -> Any:  # Any: ray.serve's Application
    """The application: rewriter, retriever, reranker and generator bound into the gateway. Starts nothing."""
    from ray import serve

    from serving.deployments.gateway import Gateway
    from serving.deployments.generator import GeneratorHost
    from serving.deployments.reranker import RerankerHost
    from serving.deployments.retriever import RetrieverHost
    from serving.deployments.rewriter import RewriterHost

    def stage(name: str, host: type, options: StageOptions) -> Any:  # Any: ray.serve's Deployment
        return serve.deployment(name=name, **_deployment(options))(host)

    retrievers = {
        name: stage(name, RetrieverHost, plan.retriever).bind(make) for name, make in _retrievers(plan).items()
    }
    handles = {
        "rewriter": stage("rewriter", RewriterHost, plan.rewriter).bind(plan.make_rewriter),
        **retrievers,
        "generator": stage("generator", GeneratorHost, plan.generator).bind(plan.make_generator),
    }
    if plan.make_reranker is not None:
        handles["reranker"] = stage("reranker", RerankerHost, plan.reranker).bind(plan.make_reranker)
    ingress = serve.ingress()(Gateway)
    # The gateway refuses beyond its limit by itself, at once and in our error shape; Serve would queue or send text.
    at_once = plan.gateway.max_ongoing_requests
    gateway = {**_deployment(plan.gateway), "max_ongoing_requests": 10 * at_once, "max_queued_requests": -1}
    return serve.deployment(name="gateway", **gateway)(ingress).bind(
        plan.make_service, plan.patience, metrics_folder, at_once, handles, plan.merge if plan.make_shards else None
    )


def _retrievers(plan: GraphPlan) -> dict[str, Callable[[], Library]]:
    """What each retriever deployment makes: one, or one per shard, each with replicas and autoscaling of its own."""
    return {shard_name(i): make for i, make in enumerate(plan.make_shards)} or {"retriever": plan.make_retriever}


@dataclass(frozen=True, slots=True)
class Running:
    """A started graph. `notes` says what is less than it could be on this machine."""

    url: str
    home: RayHome
    notes: tuple[str, ...] = ()

    def stop(self) -> None:
        """Ends the graph and the Ray that was started for it, and nothing else."""
        from ray import serve

        serve.shutdown()
        self.home.close()


def start(plan: GraphPlan, place: Place) -> Running:
    """The graph, answering at `place`. Raises AddressTaken, ConfigError or NotReady, leaving nothing behind."""
    home = RayHome.open(place)
    try:
        _check_fits(plan)
        from ray import serve
        from ray.serve.schema import LoggingConfig

        quiet = LoggingConfig(log_level="WARNING", enable_access_log=False)
        serve.start(http_options={"host": place.host, "port": place.port}, logging_config=quiet)
        serve.run(build(plan, home.folder / "metrics"), name=APP, route_prefix="/", logging_config=quiet)
        _settle(place.url)
    except BaseException as error:
        home.close()
        if _rays_own(error):
            reason = " ".join(str(error).split())[:300]
            raise NotReady(
                f"Ray could not start the graph ({type(error).__name__}: {reason}): on a machine this busy, try again.",
                "gateway",
            ) from error
        raise
    return Running(place.url, home, home.notes)


def _rays_own(error: BaseException) -> bool:
    """True for what Ray and Serve raise when a process of theirs does not come up: no bug of ours, and it may pass."""
    from ray.exceptions import RayError
    from ray.serve.exceptions import RayServeException

    return isinstance(error, RayError | RayServeException) or type(error) is RuntimeError


def _settle(url: str, times: int = 10, every_s: float = 0.1, within_s: float = 60.0) -> None:
    """Returns when a gateway has answered `times` new connections in a row.

    HAProxy is started anew for each gateway that joins, and a connection opened just then may be closed unanswered.
    """
    direct = build_opener(ProxyHandler({}))  # whatever http_proxy says: the address is on this machine
    deadline, answered, said = monotonic() + within_s, 0, ""
    while answered < times:
        try:
            with direct.open(f"{url}/healthz", timeout=5) as reply:
                answered = answered + 1 if reply.status == OK else 0
        except OSError as error:
            answered, said = 0, str(error)
        if monotonic() > deadline:
            raise NotReady(f"The gateways do not answer at {url} ({said or 'no error'}): see Ray's logs.", "gateway")
        sleep(every_s)


def _deployment(options: StageOptions) -> dict[str, Any]:  # Any: arguments of serve.deployment
    return {
        "autoscaling_config": {
            "min_replicas": options.min_replicas,
            "max_replicas": options.max_replicas,
            "target_ongoing_requests": options.target_ongoing_requests,
            "upscale_delay_s": options.upscale_delay_s,
            "downscale_delay_s": options.downscale_delay_s,
        },
        "ray_actor_options": {"num_cpus": options.num_cpus, "num_gpus": options.num_gpus},
        "max_ongoing_requests": options.max_ongoing_requests,
        "max_queued_requests": options.max_queued_requests,
        # A dead replica is noticed by its health check: every second, so that its successor is there in a few.
        "health_check_period_s": 1.0,
        "health_check_timeout_s": 10.0,
        "graceful_shutdown_timeout_s": 10.0,
        "graceful_shutdown_wait_loop_s": 0.2,
    }


def _check_fits(plan: GraphPlan) -> None:
    """Raises ConfigError for a graph whose smallest size this Ray cannot place: Serve would wait without a word."""
    import ray

    there = ray.cluster_resources()
    stages = {"gateway": plan.gateway, "rewriter": plan.rewriter} | dict.fromkeys(_retrievers(plan), plan.retriever)
    stages |= {"generator": plan.generator} | ({"reranker": plan.reranker} if plan.make_reranker else {})
    for resource, name in (("CPU", "num_cpus"), ("GPU", "num_gpus")):
        wanted = sum(options.min_replicas * getattr(options, name) for options in stages.values())
        if wanted > there.get(resource, 0.0) + 1e-9:
            sizes = ", ".join(f"{n} {o.min_replicas} x {getattr(o, name):g}" for n, o in stages.items())
            raise ConfigError(
                f"The stages reserve {wanted:g} {resource}s ({sizes}) and this Ray has {there.get(resource, 0.0):g}: "
                f"lower serving.stages.*.{name} or min_replicas."
            )
