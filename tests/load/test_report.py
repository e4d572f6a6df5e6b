"""The page about a run."""

import re
from pathlib import Path

from load.report import write
from load.samples import Sample
from load.slo import judged, threshold

SAMPLES = [
    Sample("stream", 0.1, 900.0, 120.0, 12.5, 800.0, True, 900, 60, 0.002),
    Sample("stream", 0.2, 1100.0, 180.0, 13.0, 950.0, False, 900, 60, None),
    Sample("search", 0.3, 12.0),
    Sample("answer", 0.4, failure="HTTP 500 <script>alert(1)</script>"),
]


def page(folder: Path, samples: list[Sample], *thresholds: str) -> str:
    verdicts = judged(samples, [threshold(text) for text in thresholds], 10.0)
    return write(folder, samples, verdicts, "http://127.0.0.1:8000: mixed").read_text("utf-8")


def test_it_has_verdicts_series_failures_and_pictures_and_loads_nothing_else(tmp_path: Path) -> None:
    text = page(tmp_path, SAMPLES, "stream.p95_first_ms=150", "error_share=0.3")
    assert "Load: <span" in text
    assert '<td>180</td><td>2</td><td><span class="missed">missed</span>' in text
    assert "<td>stream: first visible text, ms</td><td>2</td><td>120</td>" in text
    assert "<td>search: complete, ms</td><td>1</td><td>12</td>" in text
    assert "<td>0.002 (1 of 2)</td><td>1 of 2</td>" in text, "a cost that nobody knows is not added as 0"
    for name in re.findall(r'src="([^"]+)"', text):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert "http" not in text.replace("http://127.0.0.1:8000: mixed", "").replace("HTTP", "")


def test_what_a_server_says_cannot_become_markup(tmp_path: Path) -> None:
    text = page(tmp_path, SAMPLES)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_a_run_without_a_success_has_a_page_too(tmp_path: Path) -> None:
    text = page(tmp_path, [SAMPLES[3]], "p95_complete_ms=100")
    assert '<span class="missed">missed</span>' in text
    assert '<td>not measured</td><td>0</td><td><span class="not-measured">not measured</span>' in text
    assert "<img" not in text
