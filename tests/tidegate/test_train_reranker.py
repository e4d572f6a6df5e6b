"""`tidegate train-reranker`: a folder that can be served, the same one twice, and what it refuses to begin."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from domain.errors import BadRequest, ConfigError, CorpusError, StorageError
from retrieval.cross_encoder import CrossEncoder
from retrieval.mixing import reader_of
from retrieval.pair_lists import DevList, LearnList, Lists
from tests.tidegate.tiny import sets
from tidegate.cli import main
from tidegate.console import Code
from tidegate.training_work import WORK, check_enough, check_memory, teller, working

Capture = pytest.CaptureFixture[str]
SHORT = ("--steps", "1", "--first-layer", "6", "--max-tokens", "32")  # six of six layers stay: only the head learns


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets: 60 pairs about parts of a machine to learn from, 9 about ropes to choose by."""
    folder = tmp_path_factory.mktemp("pairs")
    for name, thing, n in (("parts", "part", 60), ("ropes", "rope", 9)):
        (folder / name).mkdir()
        rows = [
            {
                "question": f"what holds {thing} {i}",
                "positive": f"The {thing} {i} hangs on hook {7 * i}.",
                "title": thing,
            }
            for i in range(n)
        ]
        with gzip.open(folder / name / "pairs.jsonl.gz", "wt", encoding="utf-8") as out:
            out.write("\n".join(map(json.dumps, rows)))
    (folder / "parts" / "SOURCE.md").write_text("# Parts\n- from: a drawing\n- licence: CC0\n")
    return folder


def train(pairs: Path, out: Path, data_dir: Path, *more: str) -> int:
    given = ["--pairs", str(pairs), "--choose-by", "ropes", "--out", str(out), *SHORT, *more]
    return main(["train-reranker", *given, *sets(data_dir)])


@pytest.fixture(scope="module")
def trained(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    assert train(pairs, folder / "reranker", folder / "data") == Code.DONE
    return folder / "reranker"


@pytest.mark.slow
def test_the_folder_can_be_served_as_it_is(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} == {
        "README.md", "config.json", "history.jsonl", "model.safetensors",
    }  # fmt: skip
    model, said = CrossEncoder(trained), reader_of(trained)
    assert (model.max_tokens, said.script) == (32, "latin")
    assert 0 <= said.share <= 1
    question, passage = model.cut("what holds part 3"), model.cut("The part 3 hangs on hook 21.")
    assert model.logits([model.join(question, passage)]).shape == (1,)


@pytest.mark.slow
def test_the_card_tells_sets_licences_counts_and_what_not_to_test_on(trained: Path) -> None:
    card = (trained / "README.md").read_text("utf-8")
    for told in (
        "--pairs",
        "from: a drawing; licence: CC0",
        "not stated",
        "seed 7",
        "| ropes | 0 | 9 |",
        "Not to be tested",
    ):
        assert told in card


@pytest.mark.slow
def test_so_many_steps_on_one_process_give_the_same_bytes_twice(pairs: Path, trained: Path, tmp_path: Path) -> None:
    assert train(pairs, tmp_path / "reranker", tmp_path) == Code.DONE
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "reranker" / name).read_bytes() == (trained / name).read_bytes()


@pytest.mark.slow
def test_a_finished_reranker_is_not_written_over(trained: Path, pairs: Path, tmp_path: Path, capsys: Capture) -> None:
    assert train(pairs, trained, tmp_path) == Code.USAGE
    assert "--fresh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "1"], "give --questions PATH or --pairs DIR"),
        (["--pairs", "here"], "give --minutes M or --steps N"),
        (["--pairs", "here", "--steps", "1", "--minutes", "1"], "give --minutes M or --steps N"),
        (["--pairs", "here", "--steps", "1", "--kind", "magic"], "no kind 'magic'"),
        (["--kind", "features"], "--pairs DIR"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, capsys: Capture, words: Sequence[str], said: str) -> None:
    assert main(["train-reranker", "--out", str(tmp_path / "out"), *words, *sets(tmp_path)]) == Code.USAGE
    assert said in capsys.readouterr().err


def test_a_folder_without_pairs_is_told(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").mkdir()
    assert train(tmp_path / "empty", tmp_path / "out", tmp_path) == Code.REFUSED
    assert "no NAME/pairs.jsonl.gz" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pooled", "features"])
def test_a_folder_of_pairs_that_is_not_there_is_told_as_that(tmp_path: Path, capsys: Capture, kind: str) -> None:
    words = ["--kind", kind, "--pairs", str(tmp_path / "nope"), "--out", str(tmp_path / "out")]
    steps = ["--steps", "1"] if kind == "pooled" else []
    assert main(["train-reranker", *words, *steps]) == Code.REFUSED
    assert "nope is not there, or is no folder" in capsys.readouterr().err


def test_two_trainings_cannot_share_a_folder(tmp_path: Path) -> None:
    with working(tmp_path, fresh=False), pytest.raises(BadRequest, match="Another process"), working(tmp_path, False):
        pass


def test_too_little_memory_is_told_before_anything_begins() -> None:
    check_memory(2, lambda: 4000.0)
    check_memory(2, lambda: None)  # a system that does not tell
    with pytest.raises(ConfigError, match="fewer --processes"):
        check_memory(2, lambda: 2000.0)


def test_too_few_questions_and_a_foreign_corpus_are_told_apart() -> None:
    learn = LearnList("s", "q", 0, (1, 2, 3, 4), ())
    dev = DevList("s", "q", (0, 1), (1.0, 0.0), (0,))
    check_enough(Lists((learn,) * 30, (dev,) * 8, 3))
    with pytest.raises(CorpusError, match="fewer --processes"):
        check_enough(Lists((learn,) * 30, (dev,) * 8, 3), processes=31)
    with pytest.raises(CorpusError, match="12 lists to learn from and 8 to choose by"):
        check_enough(Lists((learn,) * 12, (dev,) * 8, 3))
    with pytest.raises(CorpusError, match="belong to this corpus"):
        check_enough(Lists((learn,) * 30, (), 40))


def test_what_is_told_on_the_way_is_kept_with_its_step(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    tell = teller(tmp_path / "history.jsonl", lambda *what: seen.append(what))
    tell(1, 0.25, 1.5)
    tell(2, 0.5, 1.25)
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["loss"] for line in lines] == [1.5, 1.25]
    assert seen[-1] == ("training", 500, 1000)


def test_a_disk_that_does_not_take_the_curve_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="choose another --out"):
        teller(tmp_path / "gone" / "history.jsonl", lambda *_: None)(1, 0.25, 1.5)


def test_the_workplace_is_below_the_folder_and_hidden() -> None:
    assert WORK.startswith(".")
