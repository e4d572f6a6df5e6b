"""The cluster file for `ray up`: Ray's own schema, keys that we meant, bounds, and nothing open."""

import re
from pathlib import Path
from typing import Any

import yaml

from tidegate.loading import load

ROOT = Path(__file__).parents[2]
CLUSTER: dict[str, Any] = yaml.safe_load((ROOT / "ray_cluster.yaml").read_text("utf-8"))
NODES: dict[str, dict[str, Any]] = CLUSTER["available_node_types"]


def test_ray_takes_it() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(CLUSTER))


def test_no_key_is_one_that_ray_would_swallow() -> None:
    """Ray's schema is strict about the file and open below `provider`, `docker` of a node and `node_config`."""
    assert set(CLUSTER["provider"]) == {"type", "region", "cache_stopped_nodes"}
    for node in NODES.values():
        assert set(node) <= {"min_workers", "max_workers", "resources", "node_config", "docker"}
        assert set(node["node_config"]) == {"InstanceType", "LaunchTemplate", "IamInstanceProfile"}
        assert set(node.get("docker", {})) <= {"worker_image", "pull_before_run"}


def test_the_head_has_no_gpu_and_gpu_workers_come_and_go() -> None:
    assert "GPU" not in NODES[CLUSTER["head_node_type"]]["resources"]
    gpu = NODES["gpu_worker"]
    assert gpu["resources"] == {"CPU": 0, "GPU": 1}, "only what asks for a GPU settles there"
    assert gpu["min_workers"] == 0 < gpu["max_workers"]
    assert gpu["docker"]["worker_image"].endswith("-gpu")


def test_types_grow_between_bounds_that_hold_the_graph() -> None:
    workers = {name: node for name, node in NODES.items() if name != CLUSTER["head_node_type"]}
    assert sum(node["max_workers"] for node in workers.values()) <= CLUSTER["max_workers"]
    reranker = load(ROOT / "deploy" / "tidegate.yaml", {}, {}).settings.serving.stages.reranker
    assert reranker.max_replicas * reranker.num_gpus <= NODES["gpu_worker"]["max_workers"]


def test_nodes_get_their_network_rules_from_the_stack_and_ray_opens_nothing() -> None:
    """Without a security group of its own a node would get Ray's, which opens SSH to everybody."""
    template = (ROOT / "deploy" / "cloudformation.yaml").read_text("utf-8")
    assert "SecurityGroupIds: [!Ref NodeGroup]" in template
    named = {node["node_config"]["LaunchTemplate"]["LaunchTemplateName"] for node in NODES.values()}
    assert named == {f"{CLUSTER['cluster_name']}-node"}
    commands = [*CLUSTER["head_start_ray_commands"], *CLUSTER["worker_start_ray_commands"]]
    assert not any("0.0.0.0" in command for command in commands)  # the dashboard is for the head itself
    assert not any(re.match(r"-p|--publish", option) for option in CLUSTER["docker"]["run_options"])


def test_only_the_head_has_the_role_that_makes_machines() -> None:
    profiles = {name: node["node_config"]["IamInstanceProfile"]["Name"] for name, node in NODES.items()}
    assert profiles == {"head": "tidegate-head", "cpu_worker": "tidegate-worker", "gpu_worker": "tidegate-worker"}


def test_what_the_commands_name_is_in_the_image() -> None:
    commands = [*CLUSTER["head_setup_commands"], *CLUSTER["head_start_ray_commands"]]
    scripts = {word for command in commands for word in command.split() if word.startswith("/opt/deploy/")}
    assert len(scripts) == 3
    assert all((ROOT / "deploy" / script.removeprefix("/opt/deploy/")).is_file() for script in scripts)
