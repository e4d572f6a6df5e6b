"""`tidegate bench quality`: the order it measures, what it keeps, what it refuses, and when an aim is missed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.types import Chunk, Hit, SourceRef
from eval.ranking_gain import gain
from retrieval.pooled_pair import PooledPair
from tests.tidegate.tiny import sets
from tidegate.bench_quality import Result, _verdict, drawn, reordered
from tidegate.cli import main
from tidegate.console import Code

Capture = pytest.CaptureFixture[str]
CORPUS = {
    "d1": "The sea gate closes at a tide of six metres.",
    "d2": "The blue crane lifts four tonnes of steel.",
    "d3": "Pump three needs a heavy oil in winter.",
    "d4": "The harbour bell rings twice in fog.",
}
QUERIES = {"q1": "At which tide does the sea gate close?", "q2": "What does the crane lift?"}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    for name, records in (("corpus", CORPUS), ("queries", QUERIES)):
        lines = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in records.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "qrels").mkdir()
    for split in ("dev", "test"):
        judged = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
        (folder / "qrels" / f"{split}.tsv").write_text(judged, "utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as train-reranker writes it; nothing was learnt."""
    folder = tmp_path_factory.mktemp("model")
    PooledPair.starting_from(None, 64, first_layer=5).save(folder, reading_share=0.5)
    return folder


def measured(data_dir: Path, capsys: Capture, *words: object) -> tuple[int, list[dict[str, Any]]]:
    code = main(["bench", "quality", "--json", *map(str, words), *sets(data_dir)])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def hit(name: str, rank: int) -> Hit:
    chunk = Chunk(f"{name}#0", name, 0, "", SourceRef(name, "", "", "", ""), "", frozenset())
    return Hit(chunk, 1 / rank, rank, "hybrid")


def test_the_head_is_in_the_order_of_the_scores_and_the_rest_below_it() -> None:
    hits = [hit(name, rank) for rank, name in enumerate("abcd", 1)]
    assert reordered(hits, np.array([0.0, 0.5, 1.0])) == ["c", "b", "a", "d"]
    assert reordered(hits, np.zeros(3)) == ["a", "b", "c", "d"], "ties go by chunk id"


def test_a_line_holds_the_paired_gain_of_a_collection(tmp_path: Path, collection: Path, capsys: Capture) -> None:
    code, (line,) = measured(tmp_path, capsys, "--beir", collection, "--split", "test")
    assert code == Code.DONE
    assert (line["name"], line["unit"], line["n"]) == (f"quality.{collection.name}", "ndcg@10", 2)
    assert line["value"] - line["peers"]["fusion"] == pytest.approx(line["difference"], abs=1e-4)
    assert (line["split"], line["prior"], line["share"], line["met"]) == ("test", "features", 0.0, True)


def test_pairs_are_read_once_per_model_whatever_the_share(
    tmp_path: Path, collection: Path, trained: Path, capsys: Capture
) -> None:
    asked = ("--beir", collection, "--split", "test", "--rerank", trained)
    _, (line,) = measured(tmp_path, capsys, *asked)
    kept = list((tmp_path / "bench/quality/readings").iterdir())
    assert (line["share"], len(kept)) == (0.5, 1), "the share is the model's own"
    before = kept[0].stat().st_mtime_ns
    measured(tmp_path, capsys, *asked, "--share", 1)
    assert [path.stat().st_mtime_ns for path in (tmp_path / "bench/quality/readings").iterdir()] == [before]


def test_a_sweep_tells_every_share_of_both_priors_and_has_no_aim(
    tmp_path: Path, collection: Path, trained: Path, capsys: Capture
) -> None:
    code, lines = measured(tmp_path, capsys, "--beir", collection, "--split", "dev", "--rerank", trained, "--sweep")
    assert code == Code.DONE
    assert {(line["prior"], line["share"]) for line in lines} >= {("features", 0.3), ("fusion", 1.0)}
    assert {line["met"] for line in lines} == {None}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--split", "test", "--sweep"], "would tune on what measures others"),
        (["--split", "dev", "--rerank", "nowhere"], "no folder of a model"),
        (["--split", "dev", "--share", "0.5"], "needs a model that reads"),
        (["--split", "dev", "--prior", "luck"], "no prior 'luck'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, collection: Path, capsys: Capture, words: Sequence[str], said: str
) -> None:
    assert main(["bench", "quality", "--beir", str(collection), *words, *sets(tmp_path)]) == Code.USAGE
    assert said in capsys.readouterr().err


def test_a_sample_of_queries_is_the_same_every_time_and_keeps_their_order() -> None:
    queries = [f"q{i}" for i in range(50)]
    assert drawn(queries, 10) == drawn(queries, 10) == [q for q in queries if q in set(drawn(queries[::-1], 10))]
    assert drawn(queries, 0) == queries


@pytest.mark.parametrize(
    ("differences", "code"),
    [
        ([0.1, 0.1, 0.1], Code.DONE),
        ([0.1, 0.1, 0.0], Code.REFUSED),  # three collections, two better
        ([0.1, 0.1, 0.1, -0.01], Code.REFUSED),  # worse than it may be
        ([0.0, -0.004], Code.DONE),  # two collections cannot show three
    ],
)
def test_a_reranker_has_to_gain_on_three_collections_and_may_lose_on_none(
    differences: Sequence[float], code: Code, capsys: Capture
) -> None:
    before = {f"q{i}": 0.5 for i in range(20)}
    results = [
        Result(f"c{i}", "test", "features", 0.3, gain(before, dict.fromkeys(before, 0.5 + change)))
        for i, change in enumerate(differences)
    ]
    assert _verdict(results, as_json=False) == code
    assert bool(capsys.readouterr().err) == (code != Code.DONE)
