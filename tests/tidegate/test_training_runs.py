"""A training as the tracker and the card tell it: the curve once, sets with licences, intervals, nothing made up."""

from pathlib import Path

import pytest

from retrieval.pair_looks import SHARES, Chosen, Look
from tests.tidegate.tiny import settings
from tidegate.reranker_card import Facts, SetFacts, card, gains
from tidegate.training_runs import TrainingRun, track_training

CHOSEN = [Chosen("ropes", 0.5, 0.5, 1.0), Chosen("ropes", 1.0, 0.5, 1.0), Chosen("bells", 1.0, 1.0, 0.5)]
FACTS = Facts(
    command="tidegate train-reranker --steps 20",
    base="all-minilm-l6-v2",
    started_from="",
    steps=20,
    minutes=1.5,
    processes=1,
    seed=7,
    encoder="minilm",
    reading_share=0.3,
    sets=[SetFacts("ropes", 40, 2, "from: a | drawing\nlicence: CC0"), SetFacts("bells", 0, 1, "")],
    left_out={"frozen": 3},
    missed=4,
    gains=gains(CHOSEN, "fusion"),
    over_prior=gains(CHOSEN, "prior"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    lines = ['{"step": 1, "loss": 2.0}', '{"step": 2, "loss": 1.5}', '{"step": 2, "loss": 1.25}']
    (tmp_path / "history.jsonl").write_text("\n".join(lines), "utf-8")
    return tmp_path


def test_a_step_that_was_done_twice_is_told_once_as_it_went_the_last_time(folder: Path) -> None:
    seen = Look(2, 1.0, {"ropes": dict.fromkeys(SHARES, (0.5, 0.7))})
    points = TrainingRun.of(FACTS, [seen], folder).points
    assert [point for point in points if point[0] == "loss"] == [("loss", 1, 2.0), ("loss", 2, 1.25)]
    assert ("dev/ndcg_at_10/ropes", 2, pytest.approx(0.6)) in points


def test_a_run_is_named_by_its_weights(folder: Path) -> None:
    before = TrainingRun.of(FACTS, [], folder).digest
    (folder / "model.safetensors").write_bytes(b"others")
    assert TrainingRun.of(FACTS, [], folder).digest != before


def test_nothing_is_told_while_tracking_is_off(folder: Path) -> None:
    assert track_training(settings(folder), TrainingRun.of(FACTS, [], folder), folder) == ""


def test_gains_are_by_set_against_either_order() -> None:
    assert {name: gain.difference for name, gain in FACTS.gains.items()} == {"ropes": 0.25, "bells": -0.5}
    assert FACTS.over_prior["ropes"].difference == 0.5


def test_a_card_has_a_row_for_each_set_and_says_what_is_not_known() -> None:
    told = card(FACTS)
    assert "| ropes | 40 | 2 | from: a / drawing licence: CC0 |" in told
    assert "| bells | 0 | 1 | not stated |" in told
    assert "Left out: 3 questions (frozen)." in told
    assert "| ropes | 2 | 0.750 | 1.000 | +0.250 [" in told
    assert told.rstrip().endswith("over their passages: ropes, bells.")
