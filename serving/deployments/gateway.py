"""The gateway: the HTTP surface in a Serve replica, with the four stages behind handles.

Ray Serve calls the constructor with the handles and then asks for the ASGI application.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from domain.ports import Stages
from serving.api import create_app
from serving.collector import collect_less
from serving.remote import Merge, Patience, readiness, remote_encoder, remote_stages
from serving.service import Service
from serving.telemetry import Prometheus, Telemetry

Ready = Callable[[], Awaitable[Mapping[str, bool]]]
MakeService = Callable[[Stages, Ready, Telemetry], Service]


class Gateway:
    """One gateway replica. `make_service` comes from the composition root and adds rules, registry and access."""

    def __init__(
        self,
        make_service: MakeService,
        patience: Patience,
        metrics_folder: Path | None,
        max_in_flight: int,
        handles: Mapping[str, Any],  # Any: Ray's DeploymentHandle, by stage name
        merge: Merge | None = None,
    ) -> None:
        collect_less()
        # Serve's own loggers stay as they are; ours speak only when something is wrong.
        logging.getLogger("tidegate").setLevel(logging.WARNING)
        telemetry = Prometheus(metrics_folder)
        stages, writer = remote_stages(handles, patience, telemetry, merge)
        encoder = remote_encoder(handles, patience, telemetry)
        service = make_service(stages, readiness(handles, patience), telemetry)
        limits = replace(service.limits, max_in_flight=max_in_flight)
        self._service = replace(service, limits=limits, writer=writer, encoder=encoder)

    def __serve_build_asgi_app__(self) -> Starlette:
        """The application Serve puts behind its port; Serve itself sends `X-Request-Id` back."""
        return create_app(self._service, echo_request_id=False)
