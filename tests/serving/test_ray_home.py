"""How long a Ray of our own is waited for. That it starts at all is tests/ray."""

import pytest
from ray._private import services

from serving.ray_home import _waiting_longer


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ray's own look for a node, which finds it at the third time."""
    seen: list[str] = []

    def look(address: str, node: str) -> str:
        seen.append(node)
        if len(seen) < 3:
            raise RuntimeError("no such node yet")
        return f"{node} at {address}"

    monkeypatch.setattr(services, "get_node", look)
    return seen


def test_a_node_that_comes_up_late_is_waited_for_and_ray_is_left_as_it_was(looks: list[str]) -> None:
    before = services.get_node
    with _waiting_longer(60.0):
        assert services.get_node("here", "n1") == "n1 at here"
    assert looks == ["n1"] * 3
    assert services.get_node is before


def test_a_node_that_never_comes_up_is_given_up_with_rays_own_error(looks: list[str]) -> None:
    with _waiting_longer(0.0), pytest.raises(RuntimeError, match="no such node yet"):
        services.get_node("here", "n1")
    assert looks == ["n1"]
