"""A small sample library on disk, built without a model: what evaluations here run over."""

from pathlib import Path

from tidegate.build import build_version
from tidegate.loading import load
from tidegate.sample import corpus_path, make_sample
from tidegate.settings import Settings

SMALL = {
    "embedding.backend": "hashing",
    "rerank.backend": "none",
    "sample.documents": "100",
    "sample.questions": "60",
    "evaluation.questions": "40",
    "evaluation.slo_ms": "600000",  # a busy machine must not change a number
    "tracking.enabled": "false",
}


def small_library(folder: Path) -> tuple[Settings, str]:
    """The settings of a library below `folder`, and the id of its one version."""
    settings = load(None, {}, SMALL | {"data_dir": str(folder)}, cwd=folder).settings
    make_sample(settings)
    return settings, build_version(settings, corpus_path(settings), lambda *_: None).version.id
