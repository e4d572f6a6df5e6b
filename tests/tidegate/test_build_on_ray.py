"""What workers of a cluster are given, what they give back, and what is refused; tests/ray has the cluster itself."""

import pickle
from pathlib import Path

import numpy as np
import orjson
import pytest

from domain.errors import BadRequest, ConfigError, StageFailed
from retrieval.documents import Corpus
from retrieval.reading import Source
from retrieval.work import Cutting, cut
from tests.retrieval.parsing.made import pdf
from tests.tidegate.tiny import settings
from tidegate.build import OfRay, place
from tidegate.build_on_ray import _CutTask, _EmbedTask, _EncodedCutTask, _told, cluster

HOW = Cutting("heading", 200, 0)


def test_a_worker_cuts_a_file_and_sends_its_account_along(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "The pump runs."}\nno JSON\n')
    task = pickle.loads(pickle.dumps(_CutTask(HOW, frozenset({"public"}), "default")))
    (row,) = task({"part": pickle.dumps((3, Source(tmp_path / "a.jsonl", "a.jsonl")))})
    number, reading = pickle.loads(row["made"])
    ((doc_id, where, cut),) = reading.found
    assert (number, reading.records, doc_id, where, len(cut.passages)) == (3, 2, "a", "a.jsonl:1", 1)
    assert [outcome.code for outcome in reading.left_out] == ["not_json"]


def test_a_worker_reads_what_takes_a_library_as_this_process_does(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(["Gears need oil."], []))
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.4")
    found, left_out = [], []
    task = pickle.loads(pickle.dumps(_CutTask(HOW, frozenset({"public"}), "default")))
    for name in ("a.pdf", "b.pdf"):
        (row,) = task({"part": pickle.dumps((0, Source(tmp_path / name, name)))})
        _, reading = pickle.loads(row["made"])
        found += [cut for _, _, cut in reading.found]
        left_out += [reading.trouble] if reading.trouble else []
    corpus = Corpus(tmp_path, default_groups=frozenset({"public"}))
    assert found == [cut(document, HOW) for document in corpus]
    assert orjson.loads(found[0].passages[0].line)["place"] == "page 1"
    assert left_out == [outcome for outcome in corpus.outcomes if outcome.status == "failed"]


def test_a_worker_that_compares_meanings_cuts_with_the_encoder_of_the_build(tmp_path: Path) -> None:
    text = " ".join([*["The pump moves cold water."] * 9, *["The bank lends farmers money."] * 9])
    (tmp_path / "a.txt").write_text(text)
    part = {"part": pickle.dumps((0, Source(tmp_path / "a.txt", "a.txt")))}
    task = _CutTask(Cutting("semantic", 200, 0), frozenset({"x"}), "t")
    (row,) = _EncodedCutTask(task, settings(tmp_path), ("hashing-256-1", ""))(part)
    ((_, _, cut),) = pickle.loads(row["made"])[1].found
    assert [orjson.loads(passage.line)["text"].count("pump") for passage in cut.passages] == [9, 0]
    with pytest.raises(ConfigError, match="has the encoder hashing-256-1, the build wants minilm-1 on openvino"):
        _EncodedCutTask(task, settings(tmp_path), ("minilm-1", "openvino"))


def test_a_worker_embeds_what_the_build_would(tmp_path: Path) -> None:
    (cut,) = (
        pickle.loads(row["made"])[1].found[0][2]
        for row in _CutTask(HOW, frozenset({"x"}), "t")({"part": pickle.dumps((0, written(tmp_path)))})
    )
    (tmp_path / "chunks.jsonl").write_bytes(cut.passages[0].line + b"\n")
    spans = np.array([[0, len(cut.passages[0].line)]])
    task = _EmbedTask(settings(tmp_path), ("hashing-256-1", ""))
    (row,) = task({"part": pickle.dumps((tmp_path / "chunks.jsonl", spans))})
    assert pickle.loads(row["made"]).shape == (1, 256)


def written(folder: Path) -> Source:
    (folder / "a.txt").write_text("The pump runs.")
    return Source(folder / "a.txt", "a.txt")


def test_a_worker_with_another_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has the encoder hashing-256-1, the build wants minilm-1 on openvino"):
        _EmbedTask(settings(tmp_path), ("minilm-1", "openvino"))


def test_our_own_error_comes_back_from_a_worker_as_itself() -> None:
    ours, theirs = StageFailed("Embedder 'x' gave nonsense.", "embedder"), RuntimeError("task failed")
    theirs.__cause__ = ours
    assert _told(theirs) is ours


def test_a_worker_that_died_is_told_with_the_way_out() -> None:
    assert "the node is gone): look at Ray's logs" in str(_told(RuntimeError("long story\nthe node is gone")))


def test_a_build_is_here_unless_ray_is_named() -> None:
    assert place("here", None, None) is None
    assert place("ray", 3, "head:6379") == OfRay(3, "head:6379")


@pytest.mark.parametrize("options", [("cluster", None, None), ("here", 2, None), ("here", None, "auto")])
def test_options_that_contradict_each_other_are_refused(options: tuple[str, int | None, str | None]) -> None:
    with pytest.raises(BadRequest):
        place(*options)


def test_an_address_of_ray_client_is_refused() -> None:
    with pytest.raises(ConfigError, match="name HOST:PORT or auto"), cluster("ray://head:10001", 2):
        pass
