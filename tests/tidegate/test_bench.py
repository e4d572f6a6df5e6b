"""What a benchmark says when there was nothing to measure; the measuring itself starts a real Ray."""

import json

import pytest

from load.closed_loop import Result
from tidegate.bench import figures, finish
from tidegate.console import Code


def test_where_every_request_failed_there_is_no_latency_and_the_reason_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [Result(1, 2.0, [], ["HTTP 503: b'busy'"]), Result(8, 2.0, [], ["timeout"])]
    assert finish(figures(*results), results, as_json=True) is Code.NOT_MEASURED
    out, err = capsys.readouterr()
    assert json.loads(out) == {"p50_ms": None, "rps_c8": 0.0, "failed": 2}
    assert err == "error: 2 requests failed, the first with HTTP 503: b'busy'\n"


def test_figures_are_the_median_of_one_client_and_the_throughput_of_eight() -> None:
    assert figures(Result(1, 2.0, [3.0, 1.0, 2.0]), Result(8, 2.0, [1.0] * 9)) == {"p50_ms": 2.0, "rps_c8": 4.5}
