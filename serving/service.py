"""What the HTTP surface is made of: one frozen object, put together by the composition root."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter, time
from uuid import uuid4

from starlette.datastructures import Headers

from domain.amending import Amending
from domain.canary import Advice
from domain.naming import Naming
from domain.ports import (
    Generator,
    IndexRegistry,
    Observations,
    Outcomes,
    SessionStore,
    Stages,
    TextEncoder,
    TraceSink,
    Uploads,
)
from domain.releases import Evidence
from domain.releasing import Releases
from domain.types import Rules
from serving.auth import Authenticate
from serving.schemas import Limits
from serving.sessions import NoSessions
from serving.telemetry import Silent, Telemetry


def fresh_id() -> str:
    """An id nobody has used before."""
    return uuid4().hex


async def always_ready() -> dict[str, bool]:
    """Readiness of stages that live in this process: they are there or the process is not."""
    return {}


@dataclass(frozen=True, slots=True)
class Service:
    """Everything the surface needs. `ready` names each stage and whether it answers.

    `writer` writes the answers that are not streamed; None leaves them to the generator of the stages. `encoder` gives
    vectors of a caller's own texts; None gives none.

    `pinnable` lets X-Index-Version choose any version: for evaluation alone, because people are only ever answered
    from a version that was admitted. Otherwise it may name stable or canary.

    `observations` keeps what a canary is judged by, and an answer is within its time up to `live_slo_ms` milliseconds.
    `live` gives what is known live and what it asks for, None without a canary; it may take a moment and read files.
    `releases` moves the pointer for whoever shows `admin_key`; without either nobody can over HTTP. A canary for which
    no share is named gets `canary_share` of the sessions.

    `amending` changes documents that are in a version already; what it did has reached every replica after `settle_s`.
    `admin_of` gives name and tenant of the admin whose key a request shows, None for any other request.

    `outcomes` tells the operator what became of the files of a version; `uploads` takes documents from him.

    `sessions` remembers conversations; NoSessions leaves that to the client.

    `clock` gives seconds and only times things; `wall` gives the seconds since 1970 that records bear.
    """

    stages: Stages
    rules: Rules
    naming: Naming
    registry: IndexRegistry
    authenticate: Authenticate
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = perf_counter
    wall: Callable[[], float] = time
    new_id: Callable[[], str] = fresh_id
    ready: Callable[[], Awaitable[Mapping[str, bool]]] = always_ready
    telemetry: Telemetry = field(default_factory=Silent)
    traces: TraceSink | None = None
    sessions: SessionStore = field(default_factory=NoSessions)
    title: str = "Tidegate"
    suggestions: tuple[str, ...] = ()
    pinnable: bool = False
    writer: Generator | None = None
    encoder: TextEncoder | None = None
    pointer_ttl_s: float = 1.0
    observations: Observations | None = None
    live_slo_ms: float = 2000.0
    live: Callable[[], tuple[Evidence, Advice] | None] | None = None
    releases: Releases | None = None
    admin_key: str | None = field(default=None, repr=False)
    amending: Amending | None = None
    admin_of: Callable[[Headers], tuple[str, str] | None] | None = None
    settle_s: float = 0.0
    canary_share: float = 0.05
    outcomes: Outcomes | None = None
    uploads: Uploads | None = None
