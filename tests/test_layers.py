"""Who may import whom, read off the source: dependencies point inward, and heavy vendors live in named files."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RINGS = {
    "domain": {"domain"},
    "retrieval": {"domain", "retrieval"},
    "generation": {"domain", "generation"},
    "eval": {"domain", "eval"},
    "serving": {"domain", "serving"},
    "load": {"load"},
    "tidegate": {"domain", "retrieval", "generation", "eval", "serving", "load", "tidegate"},
}
# A model with its gradients, and what moves its weights: what serves models must not know how they are trained.
TRAINING = {
    "retrieval/pooled_pair.py",
    "retrieval/pair_training.py",
    "retrieval/pair_checkpoint.py",
    "retrieval/pair_processes.py",
}
HOMES = {
    "torch": {"retrieval/gpu_arm.py", "retrieval/torch_runtime.py", "retrieval/transformers_runtime.py", *TRAINING},
    "transformers": {"retrieval/transformers_runtime.py"},
    "openvino": {"retrieval/openvino_runtime.py"},
    "onnxruntime": {"retrieval/onnx_runtime.py"},
    "onnx": {"retrieval/bert_graph.py"},
    "faiss": {
        "retrieval/faiss_arm.py",
        "retrieval/codes_arm.py",
        "retrieval/ivf_arm.py",
        "retrieval/hnsw_arm.py",
        "tidegate/bench_dense_peers.py",
    },
    "mlflow": {"eval/tracking.py"},
    "matplotlib": {"eval/plots.py", "load/plots.py"},
    "mcp": {"serving/mcp.py"},
    "boto3": {"tidegate/compose_bedrock.py", "tidegate/compose_registry.py", "tidegate/compose_source.py"},
    "pypdfium2": {"retrieval/parsing/pdf.py"},
    "docx": {"retrieval/parsing/word.py"},
    "pptx": {"retrieval/parsing/slides.py"},
    "openpyxl": {"retrieval/parsing/sheets.py"},
    "lxml": {"retrieval/parsing/web_pages.py", "retrieval/parsing/epub.py"},
    "sqlalchemy": {"serving/session_sql.py"},
    "ray": {
        "serving/graph.py",
        "serving/ray_home.py",
        "serving/remote.py",
        "serving/deployments",
        "tidegate/build_on_ray.py",
    },
}
FILES = sorted(path for ring in RINGS for path in (ROOT / ring).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module imported anywhere in a file, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}: relative imports hide which ring is meant"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_only_its_own_ring_and_inner_rings(path: Path) -> None:
    ring = path.relative_to(ROOT).parts[0]
    foreign = {name for name in imports(path) if name.split(".")[0] in RINGS} - {
        name for name in imports(path) if name.split(".")[0] in RINGS[ring]
    }
    assert not foreign


@pytest.mark.parametrize("path", sorted((ROOT / "domain").rglob("*.py")), ids=lambda p: p.name)
def test_the_domain_knows_only_the_standard_library(path: Path) -> None:
    outside = {n for n in imports(path) if n.split(".")[0] not in {*sys.stdlib_module_names, "domain"}}
    assert not outside


@pytest.mark.parametrize("vendor", sorted(HOMES))
def test_a_heavy_vendor_is_imported_only_at_home(vendor: str) -> None:
    homes = HOMES[vendor]
    users = {p.relative_to(ROOT).as_posix() for p in FILES if any(n.split(".")[0] == vendor for n in imports(p))}
    assert {user for user in users if not any(user == home or user.startswith(f"{home}/") for home in homes)} == set()


def test_the_rule_is_looking_at_real_files() -> None:
    assert len(FILES) > 30
