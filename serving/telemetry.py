"""What the service counts and times, and the port it does so through.

Every metric has its name, unit and labels in METRICS; nothing else is ever recorded, and no label holds text that a
person wrote. Gateways on one machine share a folder, so that whichever of them answers `/metrics` speaks for all of
them; Ray's own figures (queues, replicas) stay at Ray's endpoint.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER_ENV = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own name: read once, when it is first imported


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its exported name (with its unit), what it means, and the names of its labels."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


class Telemetry(Protocol):
    """Where counts and times go. Must never raise into a request."""

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Adds to a counter or a gauge."""
        ...

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Puts a value into a histogram."""
        ...

    def exposition(self) -> bytes:
        """Everything recorded on this machine, in Prometheus text format."""
        ...


_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

REQUESTS = Metric("tidegate_requests_total", "counter", "Requests answered, by route and status", ("route", "status"))
SECONDS = Metric("tidegate_request_seconds", "histogram", "Seconds to the end of a reply", ("route",), _SECONDS)
FIRST_SECONDS = Metric(
    "tidegate_first_text_seconds", "histogram", "Seconds to the first text of a stream", (), _SECONDS
)
STAGE_SECONDS = Metric("tidegate_stage_seconds", "histogram", "Seconds in one stage of an answer", ("stage",), _SECONDS)
IN_FLIGHT = Metric("tidegate_requests_in_flight", "gauge", "Answers and searches being worked on now")
REFUSED = Metric("tidegate_refused_total", "counter", "Requests refused because too many were in flight")
ANSWERS = Metric("tidegate_answers_total", "counter", "Finished answers", ("version", "status", "grounding"))
FAILURES = Metric("tidegate_failures_total", "counter", "Failed answers and searches", ("version", "code"))
DEGRADED = Metric("tidegate_degraded_total", "counter", "Answers with a note about something that fell back", ())
RETRIES = Metric("tidegate_retries_total", "counter", "Calls made again because a replica died", ("stage",))
DISCONNECTS = Metric("tidegate_disconnects_total", "counter", "Clients that left before their reply was complete", ())
TOKENS = Metric("tidegate_tokens_total", "counter", "Tokens of the models that write and rewrite, by class", ("kind",))
TRACES_LOST = Metric("tidegate_traces_lost_total", "counter", "Traces that could not be written", ())
OBSERVATIONS = Metric(
    "tidegate_observations_total", "counter", "Requests observed while a canary ran, by who answered", ("version",)
)
OBSERVATIONS_LOST = Metric("tidegate_observations_lost_total", "counter", "Observations that could not be written", ())
SHADOWS = Metric(
    "tidegate_shadow_searches_total", "counter", "Canaried questions searched on stable too, by result", ("result",)
)
FEEDBACK = Metric("tidegate_feedback_total", "counter", "Answers called helpful, or not", ("helpful",))

METRICS = (
    REQUESTS, SECONDS, FIRST_SECONDS, STAGE_SECONDS, IN_FLIGHT, REFUSED,
    ANSWERS, FAILURES, DEGRADED, RETRIES, DISCONNECTS, TOKENS, TRACES_LOST,
    OBSERVATIONS, OBSERVATIONS_LOST, SHADOWS, FEEDBACK,
)  # fmt: skip


class Prometheus:
    """Telemetry in prometheus_client: in this process alone, or in `folder`, shared by the processes of one machine."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            os.environ[FOLDER_ENV] = str(folder)
        import prometheus_client as prometheus  # reads FOLDER_ENV now and never again

        self._folder = folder
        self._registry = prometheus.CollectorRegistry()
        self._children: dict[tuple[str, tuple[str, ...]], Any] = {}  # Any: prometheus_client's labelled children
        self._families: dict[str, Any] = {m.name: self._family(prometheus, m) for m in METRICS}

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Adds to a counter or a gauge."""
        self._child(metric, labels).inc(amount)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Puts a value into a histogram."""
        self._child(metric, labels).observe(value)

    def exposition(self) -> bytes:
        """Everything recorded on this machine when a folder is shared, otherwise by this process."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        if self._folder is None:
            return generate_latest(self._registry)
        self._forget_the_dead(self._folder)
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=str(self._folder))  # type: ignore[no-untyped-call]  # prometheus_client
        return generate_latest(shared)

    @staticmethod
    def _forget_the_dead(folder: Path) -> None:
        """Removes what processes that are gone said is in flight; what they counted stays."""
        for path in folder.glob("gauge_live*_*.db"):
            if not Path(f"/proc/{path.stem.rpartition('_')[2]}").exists() and Path("/proc/self").exists():
                path.unlink(missing_ok=True)

    def _child(self, metric: Metric, labels: tuple[str, ...]) -> Any:  # Any: prometheus_client
        # Looking a child up takes a lock and a tuple of checks in the library; the answer never changes.
        key = (metric.name, labels)
        child = self._children.get(key)
        if child is None:
            family = self._families[metric.name]
            child = self._children[key] = family.labels(*labels) if metric.labels else family
        return child

    def _family(self, prometheus: Any, metric: Metric) -> Any:  # Any: prometheus_client
        common: dict[str, Any] = {"labelnames": metric.labels, "registry": self._registry}
        if metric.kind == "histogram":
            return prometheus.Histogram(metric.name, metric.help, buckets=metric.bounds, **common)
        if metric.kind == "gauge":
            return prometheus.Gauge(metric.name, metric.help, multiprocess_mode="livesum", **common)
        return prometheus.Counter(metric.name, metric.help, **common)


class Silent:
    """Telemetry that forgets: for evaluation in process and for tests which do not look."""

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Forgets."""

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Forgets."""

    def exposition(self) -> bytes:
        """Nothing."""
        return b""
