"""The graph as an application that Ray Serve builds by name: what `serve deploy` and KubeRay import.

`tidegate serve` starts a Ray of its own and does not come here. How many replicas there are is said by the Serve config
(deploy/serve.yaml), which is stronger than the sizes of the settings; everything else is the settings'.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from domain.errors import ConfigError


def app(args: dict[str, str]) -> Any:  # Any: ray.serve's Application
    """The application under the settings file that `args` names as `config`.

    Raises ConfigError for any other argument, and whatever a start would raise: Serve shows it as its reason.
    """
    from serving.graph import build
    from tidegate import compose, compose_graph
    from tidegate.loading import load

    if set(args) != {"config"}:
        raise ConfigError(f"The Serve config passes {sorted(args) or 'no args'}, wanted args: {{config: FILE}}.")
    settings = load(Path(args["config"]), os.environ, {}).settings
    compose.check_startable(settings)
    return build(compose_graph.graph_plan(settings), metrics_folder())


def metrics_folder() -> Path:
    """Where the gateways of one machine keep their counts together: local, because files there are named by process."""
    return Path(tempfile.gettempdir()) / "tidegate-metrics"
