"""The Serve config: valid for Ray, free of keys that Ray would swallow, and of one mind with settings and graph."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from serving.graph import APP, build
from tidegate.compose_graph import graph_plan
from tidegate.loading import load
from tidegate.serve_app import app

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")  # Ray's own models

ROOT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "serve.yaml").read_text("utf-8"))
SETTINGS = load(ROOT / "deploy" / "tidegate.yaml", {}, {}).settings
DEPLOYMENTS: list[dict[str, Any]] = CONFIG["applications"][0]["deployments"]


def unknown(given: Any, model: type[BaseModel], at: str = "") -> list[str]:
    """Keys that a model of Ray would take without a word, and do nothing with."""
    names = {*model.model_fields, *(f.alias for f in model.model_fields.values() if f.alias)}
    return [f"{at}{key}" for key in given if key not in names]


@pytest.fixture(scope="module")
def graph() -> dict[str, Any]:
    """The deployments of the graph under the cluster's settings, by name."""
    from ray import serve  # noqa: F401 - first, or the import below goes in a circle
    from ray.serve._private.build_app import build_app

    built = build_app(build(graph_plan(SETTINGS)), name=APP)
    return {deployment.name: deployment for deployment in built.deployments}


def test_ray_takes_it() -> None:
    from ray.serve.schema import ServeDeploySchema

    taken = ServeDeploySchema(**CONFIG)
    assert [one.name for one in taken.applications] == [APP]


def test_no_key_is_one_that_ray_does_not_know() -> None:
    from ray.serve.config import AutoscalingConfig
    from ray.serve.schema import (
        DeploymentSchema,
        HTTPOptionsSchema,
        LoggingConfig,
        RayActorOptionsSchema,
        ServeApplicationSchema,
        ServeDeploySchema,
    )

    found = unknown(CONFIG, ServeDeploySchema)
    found += unknown(CONFIG["http_options"], HTTPOptionsSchema, "http_options.")
    found += unknown(CONFIG["logging_config"], LoggingConfig, "logging_config.")
    found += unknown(CONFIG["applications"][0], ServeApplicationSchema, "applications.")
    for one in DEPLOYMENTS:
        found += unknown(one, DeploymentSchema, f"{one['name']}.")
        found += unknown(one["autoscaling_config"], AutoscalingConfig, f"{one['name']}.autoscaling_config.")
        found += unknown(one["ray_actor_options"], RayActorOptionsSchema, f"{one['name']}.ray_actor_options.")
    assert found == []


def test_its_deployments_are_those_of_the_graph(graph: dict[str, Any]) -> None:
    assert {one["name"] for one in DEPLOYMENTS} == set(graph)
    assert len({one["name"] for one in DEPLOYMENTS}) == len(DEPLOYMENTS)


@pytest.mark.parametrize("one", DEPLOYMENTS, ids=lambda one: one["name"])
def test_a_deployment_is_as_large_as_the_settings_say(one: dict[str, Any], graph: dict[str, Any]) -> None:
    made = graph[one["name"]]
    autoscaling = made._deployment_config.autoscaling_config.model_dump()
    assert one["autoscaling_config"] == {key: autoscaling[key] for key in one["autoscaling_config"]}
    assert one["ray_actor_options"] == {key: made.ray_actor_options.get(key, 0) for key in one["ray_actor_options"]}
    assert one["max_ongoing_requests"] == made.max_ongoing_requests
    assert one["max_queued_requests"] == made.max_queued_requests


@pytest.mark.parametrize("one", DEPLOYMENTS, ids=lambda one: one["name"])
def test_every_deployment_scales_between_bounds(one: dict[str, Any]) -> None:
    scaling = one["autoscaling_config"]
    assert 1 <= scaling["min_replicas"] <= scaling["max_replicas"] <= 16
    assert 0 < scaling["target_ongoing_requests"] <= one["max_ongoing_requests"]
    assert (one["ray_actor_options"]["num_gpus"] > 0) == (one["name"] == "reranker")


def test_the_import_path_is_the_builder_and_its_argument_the_settings() -> None:
    application = CONFIG["applications"][0]
    assert application["import_path"] == f"{app.__module__}:{app.__name__}"
    assert set(application["args"]) == {"config"}
    assert CONFIG["http_options"]["port"] == SETTINGS.serving.port
