"""An open version: access before anything else, both arms, and files that are checked before they are believed."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from domain.amending import Amendments
from domain.errors import BadRequest, ConfigError, IncompatibleIndex, StorageError
from domain.types import Document, Hit, Mode, Query, Scope
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.registry import FolderRegistry

STAFF = Scope("harbour", frozenset({"staff"}))
MODES = list(Mode)


def document(doc_id: str, text: str, group: str = "staff", tenant: str = "harbour") -> Document:
    return Document(doc_id, "", text, "", "", "", frozenset({group}), tenant, "")


def opened(folder: Path, documents: Sequence[Document], **settings: object) -> HybridIndex:
    embedder = HashingEmbedder(32)
    registry = FolderRegistry(folder / "library")
    report = build(documents, embedder=embedder, registry=registry, staging=folder / "staging", chunker="whole")
    return HybridIndex.open(registry.folder(report.version.id), embedder, **settings)  # type: ignore[arg-type]


def seen(hits: Sequence[Hit]) -> list[tuple[str, float, float | None, float | None]]:
    return [(hit.chunk.id, hit.score, hit.cosine, hit.bm25) for hit in hits]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk.source.doc_id for hit in hits]


PUMPS = [
    document("a", "The pump overheats at noon."),
    document("b", "The valve sticks in winter."),
    document("c", "Copper gasket fitted to line one."),
]


# ---------------------------------------------------------------------------------------------- access


@pytest.fixture(scope="module")
def travel(tmp_path_factory: pytest.TempPathFactory) -> HybridIndex:
    finance = [
        document(f"p{i:02}", f"Quarterly travel budget note {i}: travel budget is capped at {100 + i}.", "finance")
        for i in range(40)
    ]
    staff = [
        "Staff may book travel on Mondays.",
        "The canteen opens at nine.",
        "Ask the desk about travel to the yard.",
    ]
    return opened(tmp_path_factory.mktemp("travel"), [*finance, *(document(f"s{i}", t) for i, t in enumerate(staff))])


@pytest.mark.parametrize(("mode", "found"), [(Mode.HYBRID, 3), (Mode.DENSE, 3), (Mode.LEXICAL, 2)])
def test_what_others_may_read_takes_no_place(travel: HybridIndex, mode: Mode, found: int) -> None:
    hits = travel.search(Query("travel budget"), STAFF, 3, mode)
    assert len(hits) == found
    assert all(hit.chunk.groups == {"staff"} for hit in hits)


@pytest.mark.parametrize(
    "scope",
    [
        Scope("harbour", frozenset()),
        Scope("harbour", frozenset({"Staff"})),
        Scope("harbour", frozenset({"sta", "staff ", ""})),
        Scope("Harbour", frozenset({"staff"})),
        Scope("", frozenset({"staff"})),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_a_reader_who_is_not_named_exactly_sees_nothing(travel: HybridIndex, scope: Scope, mode: Mode) -> None:
    assert travel.search(Query("travel budget"), scope, 50, mode) == ()


def test_a_chunk_is_looked_up_only_by_those_who_may_see_it(travel: HybridIndex) -> None:
    known = {chunk.source.doc_id: chunk.id for chunk in travel.stored.chunks()}
    asked = [known["s2"], known["p00"], "s9#0-0123456789", known["s0"], ""]
    assert [chunk.source.doc_id for chunk in travel.chunks(asked, STAFF)] == ["s2", "s0"]


@pytest.mark.parametrize("lexical", ["bm25", "rank_bm25"])
@pytest.mark.parametrize("fusion", ["convex", "rrf", "weighted"])
def test_hidden_documents_change_not_one_bit(tmp_path: Path, lexical: str, fusion: str) -> None:
    words = ["pump", "valve", "copper", "hose", "oil", "AR-7", "冷却液", "noon"]
    for seed in range(3):
        rng = random.Random(seed)
        texts = [" ".join(rng.choices(words, k=rng.randrange(1, 12))) for _ in range(60)]
        mine = [document(f"m{i}", text) for i, text in enumerate(texts[:20])]
        hidden = [document(f"{rng.choice('aglmz')}h{i}", text, "finance") for i, text in enumerate(texts[20:40])]
        foreign = [document(f"{rng.choice('aglmz')}f{i}", text, tenant="other") for i, text in enumerate(texts[40:])]
        settings = {"lexical": lexical, "fusion": fusion, "arm_candidates": 5}
        alone = opened(tmp_path / f"{seed}a", mine, **settings)
        among = opened(tmp_path / f"{seed}b", [*mine, *hidden, *foreign], **settings)
        gone = opened(tmp_path / f"{seed}c", [*mine, *(document(f"g{d.doc_id}", d.text) for d in hidden)], **settings)
        gone.amended = Amendments(frozenset(f"g{d.doc_id}" for d in hidden))
        for mode in MODES:
            query = Query(" ".join(rng.choices(words, k=2)), (rng.choice(words),))
            wanted = seen(alone.search(query, STAFF, 7, mode))
            assert seen(among.search(query, STAFF, 7, mode)) == wanted, (seed, mode)
            assert seen(gone.search(query, STAFF, 7, mode)) == wanted, (seed, mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_tombstoned_document_is_gone_at_once_and_its_place_is_filled(tmp_path: Path, mode: Mode) -> None:
    index = opened(tmp_path, [*PUMPS, document("d", "The pump is new.")])
    chunk_id = index.search(Query("pump"), STAFF, 1, mode)[0].chunk.id
    index.amended = Amendments(frozenset({chunk_id.partition("#")[0]}))
    found = index.search(Query("pump"), STAFF, 1, mode)
    assert len(found) == 1
    assert found[0].chunk.id != chunk_id
    assert index.chunks([chunk_id], STAFF) == ()
    index.amended = Amendments()
    assert index.search(Query("pump"), STAFF, 1, mode)[0].chunk.id == chunk_id


@pytest.mark.parametrize("mode", MODES)
def test_readers_given_later_count_instead_of_those_a_document_was_built_with(tmp_path: Path, mode: Mode) -> None:
    # "a" is taken from staff, "h" was finance's and is given to them, "f" is of another tenant and stays hidden.
    theirs = [document("h", "The pump ledger.", "finance"), document("f", "The pump abroad.", tenant="other")]
    index = opened(tmp_path, [*PUMPS, document("d", "The pump is new."), *theirs])
    everything = {chunk.source.doc_id: chunk.id for chunk in index.stored.chunks()}
    access = {name: frozenset(groups) for name, groups in (("a", {"hr"}), ("h", {"hr", "staff"}), ("f", {"staff"}))}
    index.amended = Amendments(access={**access, "never there": frozenset({"staff"})})
    seen_by_staff = set(ids(index.search(Query("pump"), STAFF, 9, mode)))
    assert seen_by_staff == ({"d", "h"} if mode is Mode.LEXICAL else {"b", "c", "d", "h"})
    assert set(ids(index.search(Query("pump"), Scope("harbour", frozenset({"hr"})), 9, mode))) == {"a", "h"}
    looked_up = index.chunks([everything[name] for name in "abcdfh"], STAFF)
    assert [chunk.source.doc_id for chunk in looked_up] == ["b", "c", "d", "h"]
    index.amended = Amendments(frozenset({"h"}), access)  # gone is gone, whoever might read it
    assert "h" not in ids(index.search(Query("pump"), STAFF, 9, mode))


def test_nobody_reads_a_document_whose_readers_are_none(tmp_path: Path) -> None:
    index = opened(tmp_path, PUMPS)
    index.amended = Amendments(access={"a": frozenset()})
    assert sorted(ids(index.search(Query("pump"), STAFF, 9))) == ["b", "c"]


# ---------------------------------------------------------------------------------------------- hits


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dense", ["faiss", "exact"])
@pytest.mark.parametrize("k", [10, 10**9])
def test_more_hits_than_chunks_are_the_chunks_once_each(tmp_path: Path, mode: Mode, dense: str, k: int) -> None:
    index = opened(tmp_path, PUMPS, dense=dense)
    hits = index.search(Query("the pump, the valve and the gasket"), STAFF, k, mode)
    assert sorted(ids(hits)) == ["a", "b", "c"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert all(abs(hit.score) < 100 for hit in hits)


@pytest.mark.parametrize("mode", MODES)
def test_an_index_of_one_chunk_answers(tmp_path: Path, mode: Mode) -> None:
    assert ids(opened(tmp_path, PUMPS[:1]).search(Query("pump"), STAFF, 5, mode)) == ["a"]


@pytest.mark.parametrize("n", [0, -1])
def test_fewer_than_one_hit_cannot_be_asked_for(tmp_path: Path, n: int) -> None:
    with pytest.raises(BadRequest, match="ask for at least 1") as raised:
        opened(tmp_path, PUMPS).search(Query("pump"), STAFF, n)
    assert raised.value.field == "k"


@pytest.mark.parametrize("text", ["", " \t\n"])
def test_a_blank_query_is_refused_rather_than_answered_with_anything(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadRequest, match="blank"):
        opened(tmp_path, PUMPS).search(Query(text), STAFF, 3)


@pytest.mark.parametrize("text", ["the of and", "???", "qqqxxyy", "\u200b", "🙂"])
def test_a_query_without_a_known_word_finds_nothing_by_words_and_never_fails(tmp_path: Path, text: str) -> None:
    index = opened(tmp_path, PUMPS)
    assert index.search(Query(text), STAFF, 3, Mode.LEXICAL) == ()
    for mode in (Mode.HYBRID, Mode.DENSE):
        hits = index.search(Query(text), STAFF, 3, mode)
        assert len(hits) == 3
        assert np.isfinite([hit.score for hit in hits]).all()


def test_each_mode_says_what_its_arms_thought(tmp_path: Path) -> None:
    index = opened(tmp_path, PUMPS)
    words, vectors, both = (
        {hit.chunk.source.doc_id: hit for hit in index.search(Query("pump"), STAFF, 3, mode)}
        for mode in (Mode.LEXICAL, Mode.DENSE, Mode.HYBRID)
    )
    assert (words["a"].method, vectors["a"].method, both["a"].method) == ("lexical", "dense", "hybrid")
    assert (words["a"].cosine, vectors["a"].bm25) == (None, None)
    assert (words["a"].bm25, vectors["a"].cosine) == (words["a"].score, vectors["a"].score)
    assert (both["a"].bm25, both["a"].cosine) == (words["a"].bm25, vectors["a"].cosine)
    assert both["b"].bm25 == 0.0  # looked at, and without a common word


def test_a_chunk_found_by_both_arms_is_one_hit(tmp_path: Path) -> None:
    # Words find a and b, vectors of the query's own text find all: with rrf the first of both has 1/61 + 1/61.
    index = opened(tmp_path, PUMPS, fusion="rrf")
    hits = index.search(Query("The pump overheats at noon."), STAFF, 3)
    assert len(set(ids(hits))) == len(hits) == 3
    assert hits[0].score == pytest.approx(2 / 61)


def test_the_score_an_arm_did_not_return_is_filled_in_exactly(tmp_path: Path) -> None:
    texts = [f"pump {'oil ' * i}number {i}" for i in range(30)]
    documents = [document(f"d{i:02}", text) for i, text in enumerate(texts)]
    narrow = opened(tmp_path / "narrow", documents, arm_candidates=4)
    wide = opened(tmp_path / "wide", documents, arm_candidates=30)
    known = {hit.chunk.id: (hit.bm25, hit.cosine) for hit in wide.search(Query("oil pump"), STAFF, 30)}
    for hit in narrow.search(Query("oil pump"), STAFF, 4):
        assert (hit.bm25, hit.cosine) == known[hit.chunk.id]


def test_a_variant_widens_the_search_and_the_better_score_counts(tmp_path: Path) -> None:
    index = opened(tmp_path, PUMPS)
    alone = {q: index.search(Query(q), STAFF, 3, Mode.LEXICAL) for q in ("pump", "valve")}
    both = index.search(Query("pump", ("valve", "pump", " ")), STAFF, 3, Mode.LEXICAL)
    assert {hit.chunk.id: hit.score for hit in both} == {
        hit.chunk.id: hit.score for hits in alone.values() for hit in hits
    }


@pytest.mark.parametrize("mode", MODES)
def test_ties_are_broken_by_chunk_id(tmp_path: Path, mode: Mode) -> None:
    index = opened(tmp_path, [document(name, "The same pump.") for name in "dbca"])
    assert ids(index.search(Query("pump"), STAFF, 3, mode)) == ["a", "b", "c"]


@pytest.mark.parametrize("arm", ["lexical", "dense"])
def test_one_arm_may_stand_for_the_fusion_and_says_so(tmp_path: Path, arm: str) -> None:
    index = opened(tmp_path, PUMPS, fusion=arm)
    hits = index.search(Query("pump"), STAFF, 3)
    assert hits == index.search(Query("pump"), STAFF, 3, Mode(arm))
    assert hits[0].method == arm


def test_both_dense_arms_and_both_lexical_arms_agree_on_order(tmp_path: Path) -> None:
    rng = random.Random(1)
    documents = [document(f"d{i:03}", " ".join(rng.choices("abcdefgh", k=8))) for i in range(200)]
    found = [
        ids(
            opened(tmp_path / f"{lexical}{dense}", documents, lexical=lexical, dense=dense).search(
                Query("a c"), STAFF, 9
            )
        )
        for lexical in ("bm25", "rank_bm25")
        for dense in ("faiss", "exact")
    ]
    assert found[0] == found[1] == found[2] == found[3]


def test_chunks_come_back_as_they_were_built(tmp_path: Path) -> None:
    groups = frozenset({"staff", "ops"})
    text = "“Naïve”\u2028text 冷却液"
    written = Document("ü/a.md", "Pümpe", text, "https://w.example/ü", "wiki", "2026-01-31", groups, "harbour", "")
    chunk = opened(tmp_path, [written]).search(Query("text"), STAFF, 1)[0].chunk
    assert (chunk.text, chunk.source.title, chunk.source.uri) == (written.text, written.title, written.uri)
    assert (chunk.source.source, chunk.source.published, chunk.groups) == ("wiki", "2026-01-31", written.groups)


# ---------------------------------------------------------------------------------------------- opening


@pytest.mark.parametrize(("dimensions", "tag"), [(32, "other-model"), (64, "hashing-64-1"), (64, "hashing-32-1")])
def test_another_embedder_is_refused_naming_both_and_the_way_out(tmp_path: Path, dimensions: int, tag: str) -> None:
    folder = opened(tmp_path, PUMPS).stored.folder
    other = HashingEmbedder(dimensions)
    other.tag = tag
    with pytest.raises(IncompatibleIndex) as raised:
        HybridIndex.open(folder, other)
    message = str(raised.value)
    assert "'hashing-32-1' (32 dimensions)" in message
    assert f"'{tag}' ({dimensions} dimensions)" in message
    assert "`tidegate build" in message


def test_another_analyser_is_refused(tmp_path: Path) -> None:
    folder = opened(tmp_path, PUMPS).stored.folder
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "analyser": "words-0"}))
    with pytest.raises(IncompatibleIndex, match="analyser 'words-0', this program has"):
        HybridIndex.open(folder, HashingEmbedder(32))


def test_a_format_from_another_time_is_refused(tmp_path: Path) -> None:
    folder = opened(tmp_path, PUMPS).stored.folder
    (folder / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(IncompatibleIndex, match="has format 99"):
        HybridIndex.open(folder, HashingEmbedder(32))


@pytest.mark.parametrize("name", ["chunks.jsonl", "vectors.npy", "ids.json", "bm25/rows.npy"])
def test_a_file_that_is_cut_short_or_gone_is_named(tmp_path: Path, name: str) -> None:
    folder = opened(tmp_path, PUMPS).stored.folder
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=f"{name} cannot be read"):
        HybridIndex.open(folder, HashingEmbedder(32))
    path.unlink()
    with pytest.raises(StorageError, match=f"{name} cannot be read"):
        HybridIndex.open(folder, HashingEmbedder(32))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_manifest_is_named(tmp_path: Path, content: str) -> None:
    folder = opened(tmp_path, PUMPS).stored.folder
    (folder / "manifest.json").write_text(content)
    with pytest.raises(StorageError, match=r"manifest\.json cannot be read"):
        HybridIndex.open(folder, HashingEmbedder(32))


def test_unknown_choices_are_all_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lexical 'grep' is not one of bm25, rank_bm25; fusion 'sum' is not one of"):
        HybridIndex.open(tmp_path, HashingEmbedder(32), lexical="grep", fusion="sum")
