"""One real graph per test session: Ray takes seconds to start, so every test here shares it."""

import os
from collections.abc import Iterator

import pytest

from serving.address import free_port
from serving.graph import Running, StageOptions, start
from serving.noop import noop_plan
from serving.ray_home import Place


@pytest.fixture(scope="session")
def graph() -> Iterator[Running]:
    """Four stages that do nothing, two replicas each, behind two gateways."""
    two = StageOptions(2, 2, 0.05, 0.0, 128, 64.0)
    running = start(noop_plan(two, two), Place(port=free_port(), num_cpus=max(2, os.cpu_count() or 2)))
    yield running
    running.stop()
