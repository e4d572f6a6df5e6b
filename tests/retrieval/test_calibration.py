"""A calibration on disk is what its name says, or it is refused."""

import json
from pathlib import Path

import pytest

from domain.calibration import Calibration, Curve, Order, Signal
from domain.errors import ConfigError, StorageError
from retrieval.calibration import calibration_of, read, record_of, shipped_bar, write

RISING = Curve((0.0, 1.0), (0.2, 0.8))
WHOLE = Calibration("an encoder", RISING, RISING, (Order("a reranker", Signal.LEAD, RISING),))


@pytest.mark.parametrize("calibration", [WHOLE, Calibration("an encoder", RISING)])
def test_what_was_written_is_read(calibration: Calibration, tmp_path: Path) -> None:
    assert read(write(tmp_path / "made", calibration, {"questions": 300})) == calibration


def test_equal_calibrations_have_one_name_and_others_another(tmp_path: Path) -> None:
    one, again, other = (write(tmp_path, c, {}) for c in (WHOLE, WHOLE, Calibration("another", RISING)))
    assert one == again != other


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE, {})
    path.write_text(path.read_text("utf-8").replace("0.8", "0.9"), "utf-8")
    with pytest.raises(ConfigError, match="was changed after it was written"):
        read(path)


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, '{"a":' * 100_000])
def test_a_file_that_is_no_calibration_is_refused_with_the_way_out(content: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=r"calibration\.json.*tidegate calibrate"):
        read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "nothing.json")


def test_a_curve_that_falls_is_no_calibration(tmp_path: Path) -> None:
    record = record_of(WHOLE)
    record["relevance"]["values"] = [0.8, 0.2]
    with pytest.raises(ConfigError, match="must not fall"):
        calibration_of(record, tmp_path)


def test_a_disk_that_takes_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(StorageError, match="cannot be written"):
        write(tmp_path / "file", WHOLE, {})


def test_a_file_is_plain_json(tmp_path: Path) -> None:
    written = json.loads(write(tmp_path, WHOLE, {"questions": 300}).read_text("utf-8"))
    assert written["measured"] == {"questions": 300}


def test_a_bar_is_shipped_for_the_hashing_encoder_of_the_default_size_only() -> None:
    bar = shipped_bar("hashing-256-1")
    assert bar is not None
    assert 0.1 < bar.at(0.3) < 0.3
    assert shipped_bar("hashing-64-1") is None


def test_a_file_with_a_value_that_is_no_number_is_told(tmp_path: Path) -> None:
    (tmp_path / "calibration-0.json").write_text('{"embedder": NaN}')
    with pytest.raises(ConfigError, match="NaN is no number"):
        read(tmp_path / "calibration-0.json")
