"""`tidegate bench rewriting`: what it compares, and what it refuses."""

import json
from pathlib import Path

import pytest

from tidegate.bench_rewriting import lexical, recall
from tidegate.cli import main
from tidegate.console import Code

DOCUMENTS = {"pump": "Pump P3 takes oil of grade 46.", "bell": "The bell needs oil once a year.", "tide": "High water."}
TALK = [{"speaker": "user", "text": "What is pump P3?"}, {"speaker": "agent", "text": "A pump."}]


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    def write(name: str, records: list[dict[str, object]]) -> None:
        (tmp_path / name).write_text("\n".join(map(json.dumps, records)), "utf-8")

    filler = [{"_id": f"d{i}", "title": "", "text": f"The oil of the bell number {i} is old oil."} for i in range(12)]
    write("corpus.jsonl", [{"_id": key, "title": "", "text": text} for key, text in DOCUMENTS.items()] + filler)
    asked = {"_id": "q1", "text": "and its oil?", "metadata": {"history": TALK}}
    write("queries.jsonl", [asked, {"_id": "q2", "text": "When is high water?"}])
    human = [{"_id": "q1", "text": "What oil does pump P3 need?"}, {"_id": "q2", "text": "When is high water?"}]
    write("queries.rewrite.jsonl", human)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tpump\t1\nq2\ttide\t1\n", "utf-8")
    return tmp_path


def test_a_follow_up_is_found_by_rules_as_by_people_and_not_as_typed(
    talks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "rewriting", "--json", "--beir", str(talks)]) == Code.DONE
    told = {line["name"].partition(".")[2]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert told["questions"]["value"] == 2
    assert told["rewritten"]["value"] == 1
    assert told["recall@10"]["value"] == 1.0  # of q1 only the pump has P3
    assert told["recall@10"]["peers"] == {"typed": 0.5, "human": 1.0}  # as typed twelve bells have more oil
    assert told["reached"]["value"] == 1.0


def test_a_collection_without_human_rewrites_is_refused_by_name(talks: Path) -> None:
    (talks / "queries.rewrite.jsonl").unlink()
    assert main(["bench", "rewriting", "--beir", str(talks)]) == Code.REFUSED


def test_recall_is_the_share_of_the_relevant_documents_in_the_first_ten(talks: Path) -> None:
    assert recall(["a", "b"], {"b", "c"}) == 0.5
    assert recall([str(i) for i in range(20)], {"15"}) == 0.0
    assert lexical(talks)("P3")[0] == "pump"
