"""The application that Serve builds by name: from a settings file, or with a reason why not."""

from pathlib import Path

import pytest

from domain.errors import ConfigError, TidegateError
from tidegate.serve_app import app

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")  # Ray's own models


def test_it_is_the_graph_under_the_settings_that_are_named(tmp_path: Path) -> None:
    from ray import serve  # noqa: F401 - first, or the import below goes in a circle
    from ray.serve._private.build_app import build_app

    config = tmp_path / "tidegate.yaml"
    config.write_text("rerank: {backend: none}\nserving: {stages: {retriever: {max_replicas: 3}}}\n")
    built = build_app(app({"config": str(config)}), name="tidegate")
    sizes = {d.name: d._deployment_config.autoscaling_config.max_replicas for d in built.deployments}
    assert set(sizes) == {"gateway", "rewriter", "retriever", "generator"}
    assert sizes["retriever"] == 3


def test_other_arguments_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"passes \['confg'\], wanted args: \{config: FILE\}"):
        app({"confg": "a.yaml"})


def test_settings_that_cannot_start_are_refused_when_it_is_built(tmp_path: Path) -> None:
    config = tmp_path / "tidegate.yaml"
    config.write_text("answering: {forbidden_terms_file: gone.txt}\n")
    with pytest.raises(TidegateError, match=r"gone\.txt"):
        app({"config": str(config)})
