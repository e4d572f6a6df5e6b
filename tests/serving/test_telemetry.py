"""Metrics: named with their units, the same from every process of a machine, and never holding what people wrote."""

import subprocess
import sys
from pathlib import Path

from serving.telemetry import ANSWERS, IN_FLIGHT, METRICS, SECONDS, Prometheus, Silent

WORKER = """
import sys
from pathlib import Path
from serving.telemetry import ANSWERS, IN_FLIGHT, Prometheus
telemetry = Prometheus(Path(sys.argv[1]))
telemetry.add(ANSWERS, 2, "v1", "complete", "grounded")
telemetry.add(IN_FLIGHT, 1)
if len(sys.argv) > 2:
    print(telemetry.exposition().decode())
"""


def run(folder: Path, *more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(folder), *more], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_every_name_says_what_it_counts_or_its_unit() -> None:
    for metric in METRICS:
        assert metric.name.startswith("tidegate_")
        assert metric.name.endswith({"counter": "_total", "histogram": "_seconds"}.get(metric.kind, ""))
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_one_process_tells_its_own_figures() -> None:
    telemetry = Prometheus()
    telemetry.add(ANSWERS, 1, "v1", "complete", "grounded")
    telemetry.observe(SECONDS, 0.02, "/v1/answers")
    text = telemetry.exposition().decode()
    assert 'tidegate_answers_total{grounding="grounded",status="complete",version="v1"} 1.0' in text
    assert 'tidegate_request_seconds_bucket{le="0.025",route="/v1/answers"} 1.0' in text


def test_whichever_process_is_asked_speaks_for_all_and_the_dead_have_nothing_in_flight(tmp_path: Path) -> None:
    run(tmp_path)
    text = run(tmp_path, "tell")
    assert 'tidegate_answers_total{grounding="grounded",status="complete",version="v1"} 4.0' in text
    assert "tidegate_requests_in_flight 1.0" in text


def test_silence_is_telemetry_too() -> None:
    silent = Silent()
    silent.add(IN_FLIGHT, 1)
    silent.observe(SECONDS, 1.0, "/")
    assert silent.exposition() == b""
