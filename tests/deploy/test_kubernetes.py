"""The manifests for KubeRay: known keys, probes, limits, no rights, and the same graph as everywhere."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.loading import load

ROOT = Path(__file__).parents[2]
MANIFESTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "deploy" / "kuberay" / "rayservice.yaml").read_text("utf-8"))
)
ADMIT: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "kuberay" / "admit.yaml").read_text("utf-8"))
SERVICE = next(one for one in MANIFESTS if one["kind"] == "RayService")
CLUSTER: dict[str, Any] = SERVICE["spec"]["rayClusterConfig"]
GROUPS = {"head": CLUSTER["headGroupSpec"]} | {one["groupName"]: one for one in CLUSTER["workerGroupSpecs"]}
PODS = {name: group["template"] for name, group in GROUPS.items()} | {"admit": ADMIT["spec"]["template"]}

KNOWN = {
    "RayService": {
        "serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold", "serveConfigV2", "rayClusterConfig",
    },
    "cluster": {"rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headGroupSpec", "workerGroupSpecs"},
    "autoscaler": {"upscalingMode", "idleTimeoutSeconds", "resources", "securityContext"},
    "group": {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"},
    "pod": {"automountServiceAccountToken", "securityContext", "tolerations", "containers", "volumes", "restartPolicy"},
    "container": {
        "name", "image", "command", "ports", "resources", "securityContext", "readinessProbe", "livenessProbe",
        "volumeMounts",
    },
    "probe": {"exec", "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold"},
}  # fmt: skip


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in PODS.items():
        for container in pod["spec"]["containers"]:
            yield name, container


def test_no_key_is_one_that_we_did_not_mean() -> None:
    assert set(SERVICE["spec"]) <= KNOWN["RayService"]
    assert set(CLUSTER) <= KNOWN["cluster"]
    assert set(CLUSTER["autoscalerOptions"]) <= KNOWN["autoscaler"]
    assert all(set(group) <= KNOWN["group"] for group in GROUPS.values())
    assert all(set(pod["spec"]) <= KNOWN["pod"] for pod in PODS.values())
    assert all(set(container) <= KNOWN["container"] for _, container in containers())


def test_the_graph_is_that_of_the_serve_config_word_for_word() -> None:
    wanted = (ROOT / "deploy" / "serve.yaml").read_text("utf-8")
    assert textwrap.dedent(SERVICE["spec"]["serveConfigV2"]) == wanted


def test_ray_is_the_one_in_the_image() -> None:
    assert f"ray=={CLUSTER['rayVersion']}" in (ROOT / "deploy" / "run.lock").read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", list(GROUPS))
def test_every_node_is_asked_whether_it_lives_and_is_ready(name: str) -> None:
    (container,) = PODS[name]["spec"]["containers"]
    for probe in (container["readinessProbe"], container["livenessProbe"]):
        assert set(probe) == KNOWN["probe"]
        script = Path(probe["exec"]["command"][1])
        assert (ROOT / "deploy" / script.relative_to("/opt/deploy")).is_file()


def test_every_container_has_limits_equal_to_its_requests_and_no_rights() -> None:
    for name, container in containers():
        assert container["resources"]["limits"] == container["resources"]["requests"], name
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        secured = container["securityContext"]
        assert secured["allowPrivilegeEscalation"] is False
        assert secured["readOnlyRootFilesystem"] is True
        assert secured["capabilities"] == {"drop": ["ALL"]}
    for pod in PODS.values():
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["runAsUser"] == 10001, "the user of the Dockerfile"


def test_gpus_are_limited_and_only_where_the_reranker_is() -> None:
    gpus = {name: c["resources"]["limits"].get("nvidia.com/gpu", 0) for name, c in containers()}
    assert gpus == {"head": 0, "cpu": 0, "gpu": 1, "admit": 1}
    assert GROUPS["gpu"]["rayStartParams"] == {"num-cpus": "0", "num-gpus": "1"}
    assert {c["image"].rpartition("-")[2] for n, c in containers() if n in ("gpu", "admit")} == {"gpu"}


def test_groups_grow_between_bounds_and_can_hold_the_graph() -> None:
    assert CLUSTER["enableInTreeAutoscaling"] is True
    for group in CLUSTER["workerGroupSpecs"]:
        assert 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"] <= 8
    stages = dict(load(ROOT / "deploy" / "tidegate.yaml", {}, {}).settings.serving.stages)
    for bound in ("min_replicas", "max_replicas"):
        cpus = sum(getattr(stage, bound) * stage.num_cpus for stage in stages.values())
        gpus = sum(getattr(stage, bound) * stage.num_gpus for stage in stages.values())
        assert cpus <= GROUPS["cpu"]["maxReplicas"] * int(GROUPS["cpu"]["rayStartParams"]["num-cpus"])
        assert gpus <= GROUPS["gpu"]["maxReplicas"]
    least = sum(stage.min_replicas * stage.num_cpus for stage in stages.values())
    assert least <= GROUPS["cpu"]["minReplicas"] * int(GROUPS["cpu"]["rayStartParams"]["num-cpus"])


def test_what_is_mounted_is_there_and_the_writable_places_are_named() -> None:
    for name, pod in PODS.items():
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in pod["spec"]["containers"]:
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            assert set(mounts) == volumes, name
            assert {"/data", "/data/payload", "/tmp"} <= set(mounts.values())


def test_secrets_are_mounted_closed_to_others() -> None:
    for pod in PODS.values():
        (payload,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == "payload")
        assert payload["projected"]["defaultMode"] & 0o007 == 0


def test_nobody_reaches_rays_own_ports() -> None:
    policy = next(one for one in MANIFESTS if one["kind"] == "NetworkPolicy")
    for rule in policy["spec"]["ingress"]:
        assert rule["from"], "an empty list would be everybody"
        same = rule["from"] == [{"podSelector": policy["spec"]["podSelector"]}]
        ports = {entry["port"] for entry in rule.get("ports", [])}
        assert same or (ports and ports <= {8000, 8080, 8265, 30000})
