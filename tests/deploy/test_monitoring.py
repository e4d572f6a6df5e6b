"""Dashboard, alerts and scrape config: every metric and label in them is one that the service has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from serving.telemetry import METRICS

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
ALERTS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
SCRAPE: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))

# What Prometheus makes of a metric by its kind: a histogram is three series, and has `le` on one of them.
SERIES = {
    f"{metric.name}{suffix}": {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
    for metric in METRICS
    for suffix in (("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",))
}
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
ALL = [*EXPRESSIONS, *(alert["expr"] for alert in ALERTS)]


def named(expression: str) -> set[str]:
    return set(re.findall(r"\btidegate_\w+", expression))


@pytest.mark.parametrize("expression", ALL)
def test_every_series_exists(expression: str) -> None:
    assert named(expression) <= set(SERIES)
    assert named(expression) or expression.startswith("up{")


@pytest.mark.parametrize("expression", ALL)
def test_every_label_is_one_of_the_series(expression: str) -> None:
    grouped = {label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in re.split(r",\s*", group)}
    matched = set(re.findall(r"[{,]\s*(\w+)\s*=~?", expression))
    known = set().union(
        *(SERIES[name] for name in named(expression)), {"job"} if expression.startswith("up{") else set()
    )
    assert grouped | matched <= known


@pytest.mark.parametrize("expression", ALL)
def test_a_counter_is_never_shown_without_its_rate(expression: str) -> None:
    counters = {m.name for m in METRICS if m.kind == "counter"}
    for name in named(expression) & counters:
        assert re.search(rf"(rate|increase)\({name}[{{\[]", expression)


def test_every_metric_is_on_the_dashboard() -> None:
    shown = set().union(*map(named, EXPRESSIONS))
    assert [m.name for m in METRICS if not any(series.startswith(m.name) for series in shown)] == []


def test_panels_have_their_own_place_and_number() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels}) == len(panels)


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for alert in ALERTS:
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert set(alert["annotations"]) == {"summary", "action"}
        assert set(alert) <= {"alert", "expr", "for", "labels", "annotations"}
    assert len({alert["alert"] for alert in ALERTS}) == len(ALERTS)


def test_prometheus_asks_where_metrics_are() -> None:
    assert SCRAPE["rule_files"] == ["alerts.yml"]
    assert {job["metrics_path"] for job in SCRAPE["scrape_configs"]} == {"/metrics"}
    jobs = {job["job_name"] for job in SCRAPE["scrape_configs"]}
    assert {job for alert in ALERTS for job in re.findall(r'job="([^"]+)"', alert["expr"])} <= jobs
