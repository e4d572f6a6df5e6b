"""What the suite promises about itself: what starts a Ray can be told from the rest before anything is imported."""

from pathlib import Path

TESTS = Path(__file__).parent


def test_every_test_marked_ray_lies_in_tests_ray_where_it_is_looked_for() -> None:
    mark = "pytest.mark." + "ray"
    marked = {
        path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py") if mark in path.read_text("utf-8")
    }
    assert marked
    assert {path for path in marked if not path.startswith("ray/")} == set()
