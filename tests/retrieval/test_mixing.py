"""Reading and prior become one order; where the model cannot read, the prior stands."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from domain.errors import ConfigError
from domain.types import Hit, Query, Reranking
from retrieval.mixing import Reader, ReadingReranker, reader_of
from retrieval.pair_engine import PairEngine
from retrieval.reranking import standardised
from tests.fakes import FakePairModel, chunk, hits

FOUND = hits(chunk("a#0", "blue"), chunk("b#0", "cold kiln"), chunk("c#0", "hot kiln"))
HOT = Query("hot kiln")


class Given:
    """Gives the scores it was made with, by chunk id."""

    tag, listwise = "given", True

    def __init__(self, **scores: float) -> None:
        self.scores, self.asked = scores, 0

    def score(self, query: str, hits: tuple[Hit, ...]) -> list[float]:
        self.asked += 1
        return [self.scores[hit.chunk.id[0]] for hit in hits]


@pytest.fixture
def model() -> FakePairModel:
    return FakePairModel()


@pytest.fixture
def engine(model: FakePairModel) -> Iterator[PairEngine]:
    engine = PairEngine([model], batch_tokens=200, clock=model.clock)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def ids(given: Reranking) -> str:
    return "".join(hit.chunk.id[0] for hit in given.hits)


async def test_with_the_whole_share_the_logits_alone_decide(engine: PairEngine, pool: ThreadPoolExecutor) -> None:
    prior = Given(a=9, b=0, c=0)
    given = await ReadingReranker(engine, 10, pool, prior=prior).rerank(HOT, FOUND)
    assert ids(given) == "cba"
    assert prior.asked == 0
    assert [hit.score for hit in given.hits] == pytest.approx(engine.score("hot kiln", list(given.hits)))
    assert given.notes == ()


async def test_the_mix_is_of_standardised_scores(engine: PairEngine, pool: ThreadPoolExecutor) -> None:
    mixed = ReadingReranker(engine, 10, pool, share=0.25, prior=Given(a=4, b=1, c=2))
    given = await mixed.rerank(HOT, FOUND)
    logits = np.array(engine.score("hot kiln", FOUND))
    wanted = 0.75 * standardised(np.array([[4.0], [1], [2]])) + 0.25 * standardised(logits[:, None])
    assert {hit.chunk.id[0]: hit.score for hit in given.hits} == pytest.approx(
        dict(zip("abc", wanted[:, 0], strict=True))
    )
    assert given.hits[0].method == "0.25*fake-pairs+given"


async def test_without_a_prior_the_first_stages_score_is_one(engine: PairEngine, pool: ThreadPoolExecutor) -> None:
    assert ids(await ReadingReranker(engine, 10, pool, share=0.0).rerank(HOT, FOUND)) == "abc"


async def test_a_question_in_another_script_leaves_the_prior_alone(
    engine: PairEngine, model: FakePairModel, pool: ThreadPoolExecutor
) -> None:
    latin = ReadingReranker(engine, 10, pool, share=0.5, script="latin", prior=Given(a=1, b=3, c=2))
    given = await latin.rerank(Query("窑有多热而且是什么颜色 kiln"), FOUND)
    assert ids(given) == "bca"
    assert model.batches == []
    assert "latin script" in given.notes[0]


async def test_accents_digits_and_signs_are_no_other_script(
    engine: PairEngine, model: FakePairModel, pool: ThreadPoolExecutor
) -> None:
    latin = ReadingReranker(engine, 10, pool, script="latin")
    for question in ("où est le four à chaux?", "Wie heiß ist der Ofen", "900 °C €", ""):
        assert (await latin.rerank(Query(question), FOUND)).notes == ()
    assert model.batches


async def test_a_passage_in_another_script_is_placed_by_the_prior(engine: PairEngine, pool: ThreadPoolExecutor) -> None:
    found = (*FOUND, *hits(chunk("d#0", "窑很热而且釉是蓝色的", title="窑")))
    given = await ReadingReranker(engine, 10, pool, share=0.5, script="latin", prior=Given(a=0, b=0, c=0, d=9)).rerank(
        HOT, found
    )
    assert ids(given) == "dcba"
    # Among 0, 0, 0, 9 the last lies 3 / sqrt(3) deviations above the mean, and reading moves it nowhere.
    assert given.hits[0].score == pytest.approx(3**0.5)


async def test_with_the_whole_share_every_score_under_the_engines_name_is_a_logit(
    engine: PairEngine, pool: ThreadPoolExecutor
) -> None:
    found = (*FOUND, *hits(chunk("d#0", "窑很热而且釉是蓝色的", title="窑")))
    latin = ReadingReranker(engine, 10, pool, script="latin", prior=Given(a=0, b=0, c=0, d=9))
    given = {hit.chunk.id[0]: hit for hit in (await latin.rerank(HOT, found)).hits}
    logits = engine.score("hot kiln", FOUND)
    assert [given[name].score for name in "abc"] == pytest.approx(logits)
    # The prior has it 3 / sqrt(3) deviations above the mean, and so have the logits.
    assert given["d"].score == pytest.approx(np.mean(logits) + 3**0.5 * np.std(logits))
    unread = await latin.rerank(Query("窑有多热而且是什么颜色"), found)
    assert {hit.method for hit in unread.hits} == {"given"}


async def test_hits_that_were_not_read_keep_their_order_below_and_the_note_counts_them(
    engine: PairEngine, model: FakePairModel, pool: ThreadPoolExecutor
) -> None:
    model.seconds_a_token = 0.001
    reranker = ReadingReranker(engine, 10, pool)
    await reranker.rerank(Query("warm"), FOUND[:1])
    given = await reranker.rerank(HOT, FOUND, within_s=0.017)  # 8 and 9 tokens fit into 17 ms, the third does not
    assert ids(given) == "bac"
    assert [hit.rank for hit in given.hits] == [1, 2, 3]
    assert given.hits[2].method == "fake"
    assert given.notes == ("1 of 3 hits was not read within 17 ms: fused order kept below",)


async def test_without_any_time_the_fused_order_stays(engine: PairEngine, pool: ThreadPoolExecutor) -> None:
    for share in (1.0, 0.5):
        given = await ReadingReranker(engine, 10, pool, share=share).rerank(HOT, FOUND, within_s=0.0)
        assert given.hits == FOUND
        assert given.notes == ("3 of 3 hits were not read within 0 ms: fused order kept below",)


async def test_passages_read_in_part_are_told(engine: PairEngine, pool: ThreadPoolExecutor) -> None:
    long = hits(chunk("a#0", "w " * 100), chunk("b#0", "v " * 100), chunk("c#0", "hot"))
    given = await ReadingReranker(engine, 10, pool).rerank(HOT, long)
    assert given.notes == ("2 passages were read only in part",)
    assert ids(given)[0] == "c"


async def test_only_the_head_is_read_and_no_hit_is_added_or_lost(
    engine: PairEngine, model: FakePairModel, pool: ThreadPoolExecutor
) -> None:
    for seed in range(10):
        many = hits(
            *(chunk(f"d{i:02}#0", f"{'hot ' if i % seed_ else ''}w{i}") for i in range(12) for seed_ in [seed + 2])
        )
        given = await ReadingReranker(engine, 5, pool, share=0.5).rerank(HOT, many)
        assert sorted(hit.chunk.id for hit in given.hits) == [hit.chunk.id for hit in many]
        assert given.hits[5:] == many[5:]
    assert await ReadingReranker(engine, 5, pool).rerank(HOT, ()) == Reranking(())


def test_a_folder_says_how_much_say_its_reading_has(tmp_path: Path) -> None:
    def told(**config: object) -> Reader:
        (tmp_path / "config.json").write_text(json.dumps(config))
        return reader_of(tmp_path)

    assert told(model_type="bert") == Reader(1.0, "")
    assert told(reading_share=0.3, script="latin") == Reader(0.3, "latin")
    for wrong in ({"reading_share": 2}, {"reading_share": "much"}, {"script": "greek"}):
        with pytest.raises(ConfigError, match=r"config\.json.*train-reranker"):
            told(**wrong)
