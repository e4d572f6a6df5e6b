"""What a run leaves: numbers that come back as they were."""

from pathlib import Path

import pytest

from load.samples import Sample, percentile, read, write


def test_samples_come_back_as_they_were_in_the_order_they_were_due(tmp_path: Path) -> None:
    late, early = (
        Sample("stream", 2.0, 30.5, 10.0, cost_usd=0.002),
        Sample("answer", 1.0, failure="HTTP 503 overloaded"),
    )
    write(tmp_path / "samples.jsonl", [late])
    write(tmp_path / "samples.jsonl", [early])
    assert read(tmp_path / "samples.jsonl") == [early, late]


@pytest.mark.parametrize("line", ["{", "[]", '{"kind": "answer"}', '{"kind": "answer", "due_s": 1, "colour": "red"}'])
def test_a_line_that_is_no_sample_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text(f"{line}\n")
    with pytest.raises(ValueError, match=r"samples\.jsonl:1 is no sample"):
        read(tmp_path / "samples.jsonl")


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    values = [float(v) for v in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50.0, 95.0, 99.0, 100.0]
    assert percentile([7.0], 0.01) == 7.0
    assert percentile([], 0.5) is None
