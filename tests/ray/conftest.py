"""One real graph per test session: Ray takes seconds to start, so every test here shares it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from serving.address import free_port
from serving.graph import Running, StageOptions, start
from serving.noop import noop_plan
from serving.ray_home import Place
from serving.remote import Patience
from tests.ray.stages import TroubledGenerator, TroubledLibrary, TroubledReranker, movable_service


@dataclass(frozen=True)
class Graph:
    """The graph, and the folder in which its generator says that it was closed, and where its pointer is."""

    running: Running
    folder: Path

    @property
    def url(self) -> str:
        return self.running.url


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Four quick stages, two replicas each, behind two gateways."""
    folder = tmp_path_factory.mktemp("stages with blanks ü")
    two = StageOptions(2, 2, 0.05, 0.0, 128, 64.0)
    plan = replace(
        noop_plan(two, two),
        make_retriever=partial(TroubledLibrary, folder),
        make_reranker=partial(TroubledReranker, folder),
        make_generator=partial(TroubledGenerator, folder),
        make_service=partial(movable_service, folder),
        patience=Patience(retrieve_s=5.0),
    )
    running = start(plan, Place(port=free_port(), num_cpus=max(2, os.cpu_count() or 2)))
    yield Graph(running, folder)
    running.stop()
    assert not running.home.folder.exists()
