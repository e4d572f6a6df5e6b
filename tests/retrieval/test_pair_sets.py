"""Sets of pairs: what is read, what is drawn, and that choosing and learning share nothing."""

import gzip
from pathlib import Path

import pytest

from domain.errors import CorpusError
from retrieval.pair_sets import Pair, apart, held_out, of_pairs, read_pair_sets, read_pairs, without

PAIRS = [Pair(f"what holds part {i}", "parts", f"Part {i} hangs on bolt {i // 2}.", ("Nothing.",)) for i in range(60)]


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt", encoding="utf-8") as out:
        out.write(text)
    return file


def test_pairs_are_read_in_file_order(tmp_path: Path) -> None:
    lines = '{"question": "q", "positive": "p", "negatives": ["n"], "title": "t"}\n{"question": "r", "positive": "s"}\n'
    file = write(tmp_path / "pairs.jsonl.gz", lines)
    assert read_pairs(file) == [Pair("q", "t", "p", ("n",)), Pair("r", "", "s", ())]


def test_every_broken_line_is_told_at_once(tmp_path: Path) -> None:
    lines = '{"question": "q", "positive": "p"}\nnot json\n{"question": "q"}\n{"question": "q", "positive": 3}\n[]\n'
    with pytest.raises(CorpusError, match="4 lines that are no pair, as line 2, 3, 4, 5"):
        read_pairs(write(tmp_path / "pairs.jsonl.gz", lines))


def test_a_file_that_is_no_gzip_is_told(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl.gz").write_text("plain")
    with pytest.raises(CorpusError, match="gzipped JSON lines"):
        read_pairs(tmp_path / "pairs.jsonl.gz")


def test_a_set_that_is_named_and_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    write(tmp_path / "ropes/pairs.jsonl.gz", '{"question": "q", "positive": "p"}')
    with pytest.raises(CorpusError, match="no set 'bells', there is: ropes"):
        read_pair_sets(tmp_path, ["bells"], 10, 7)


def test_those_who_ask_are_drawn_by_seed_and_find_their_passages() -> None:
    one, again, other = (of_pairs("s", PAIRS, 20, seed) for seed in (7, 7, 8))
    assert one == again != other
    assert len(one.asked) == 20
    for asked in one.asked:
        number = asked.question.rsplit(" ", 1)[1]
        assert one.chunks[asked.right[0]].text.startswith(f"Part {number} ")
        assert [one.chunks[row].text for row in asked.wrong] == ["Nothing."]
    assert len(one.chunks) == 61, "those who do not ask are searched all the same"


def test_choosing_and_learning_share_neither_question_nor_passage() -> None:
    shared = [Pair(f"{pair.question} {k}", "", pair.positive, ()) for pair in PAIRS for k in range(2)]
    learn, dev = held_out(of_pairs("s", shared, 120, 7), 0.3, 60)
    assert learn.asked
    assert dev.asked
    assert len(learn.asked) + len(dev.asked) == 120
    assert not {row for a in learn.asked for row in a.right} & {row for a in dev.asked for row in a.right}


def test_nothing_is_learnt_in_one_set_that_another_is_chosen_by() -> None:
    one, other = of_pairs("one", PAIRS, 60, 7), of_pairs("other", PAIRS, 60, 8)
    kept, chosen = held_out(one, 0.0, 60), held_out(other, 0.3, 60)
    (learn, _), (_, dev) = apart([kept, chosen])
    rights = {dev.chunks[row].text for asked in dev.asked for row in asked.right}
    assert rights
    assert 0 < len(learn.asked) < len(one.asked)
    assert not {a.question for a in learn.asked} & {a.question for a in dev.asked}
    assert not rights & {learn.chunks[row].text for asked in learn.asked for row in asked.right}


def test_at_most_so_many_are_held_out_and_all_of_them_when_they_choose_alone() -> None:
    training = of_pairs("s", PAIRS, 60, 7)
    assert len(held_out(training, 0.9, 10)[1].asked) <= 10
    assert len(held_out(training, 1.0, 100)[1].asked) == 60


def test_questions_in_other_words_stay_and_in_the_same_words_go() -> None:
    training = of_pairs("s", PAIRS[:3], 3, 7)
    assert {a.question for a in without(training, frozenset({"what holds part 1"})).asked} == {
        "what holds part 0", "what holds part 2",
    }  # fmt: skip
