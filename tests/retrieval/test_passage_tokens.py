from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from domain.errors import StorageError
from domain.types import Chunk, Document, Query
from retrieval.building import build
from retrieval.embedding import HashingEmbedder
from retrieval.index import HybridIndex
from retrieval.pairs import PASSAGE_TOKENS
from retrieval.parts import Draft, line_of
from retrieval.passage_tokens import FILES, StoredTokens, copy, part
from retrieval.registry import FolderRegistry
from retrieval.reranking import passage
from retrieval.sharding import cut
from retrieval.tokenizing import Tokenizer
from tests.fakes import PUBLIC, chunk
from tests.retrieval.tiny_models import bert

CHUNKS = [
    chunk("a#0", "the kiln is hot", title="kiln"),
    chunk("b#0", "blue glaze " * 400),
    chunk("c#0", "", title="x"),
    chunk("d#0", "fires at degrees"),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(bert(tmp_path_factory.mktemp("model"), "BertModel"), 64)


def written(folder: Path, tokenizer: Tokenizer) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "chunks.jsonl").write_bytes(b"".join(line_of(each) + b"\n" for each in CHUNKS))
    part(tokenizer)(Draft(folder, {}, None))
    return folder


def ids(tokens: StoredTokens) -> Iterator[list[int]]:
    return (np.frombuffer(tokens[row].ids, "<i4").tolist() for row in range(len(CHUNKS)))


def test_every_row_has_the_tokens_of_title_heading_and_text(tmp_path: Path, tokenizer: Tokenizer) -> None:
    def expected(each: Chunk) -> list[int]:
        return tokenizer.cut(passage(each)).tolist()[:PASSAGE_TOKENS]

    tokens = StoredTokens.of(written(tmp_path, tokenizer))
    assert tokens is not None
    assert list(ids(tokens)) == [expected(each) for each in CHUNKS]
    assert len(tokens[1].ids) == 4 * PASSAGE_TOKENS
    assert tokens[0].stamp == tokenizer.stamp


def test_the_same_passages_give_the_same_bytes(tmp_path: Path, tokenizer: Tokenizer) -> None:
    one, other = written(tmp_path / "one", tokenizer), written(tmp_path / "other", tokenizer)
    assert {p.name for p in (one / "tokens").iterdir()} == {Path(name).name for name in FILES}
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


def test_a_shard_has_the_tokens_of_its_rows(tmp_path: Path, tokenizer: Tokenizer) -> None:
    whole, shard = written(tmp_path / "whole", tokenizer), tmp_path / "shard"
    shard.mkdir()
    copy(whole, shard, [1, 3])
    of_all, of_some = StoredTokens.of(whole), StoredTokens.of(shard)
    assert of_all is not None
    assert of_some is not None
    assert [of_some[0], of_some[1]] == [of_all[1], of_all[3]]


def test_a_version_without_tokens_has_none(tmp_path: Path) -> None:
    assert StoredTokens.of(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [("ids.npy", b"nothing"), ("stamp.json", b"{}"), ("stamp.json", b"{"), ("stamp.json", None), ("starts.npy", b"")],
)
def test_damaged_tokens_are_named(tmp_path: Path, tokenizer: Tokenizer, name: str, content: bytes | None) -> None:
    path = written(tmp_path, tokenizer) / "tokens" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=rf"tokens.{name}"):
        StoredTokens.of(tmp_path)


def test_tokens_that_are_not_those_that_were_counted_are_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = written(tmp_path, tokenizer) / "tokens"
    np.save(folder / "ids.npy", np.load(folder / "ids.npy")[:-1])
    with pytest.raises(StorageError, match=r"ids\.npy has .* build the version again"):
        StoredTokens.of(tmp_path)


def test_a_version_that_keeps_tokens_is_another_version_and_its_hits_carry_them(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    registry, embedder = FolderRegistry(tmp_path / "library"), HashingEmbedder(16)
    document = Document("a", "kiln", "the kiln is hot", "", "", "", PUBLIC.groups, PUBLIC.tenant, "")
    without, kept = (
        build([document], embedder=embedder, registry=registry, staging=tmp_path / "staging", tokenizer=which).version
        for which in (None, tokenizer)
    )
    assert kept.id != without.id
    carried = [
        HybridIndex.open(registry.folder(name), embedder).search(Query("kiln"), PUBLIC, 1)[0].tokens
        for name in (without.id, kept.id)
    ]
    assert carried[0] is None
    assert carried[1] is not None
    assert carried[1].stamp == tokenizer.stamp


def test_a_version_with_tokens_can_be_cut_into_shards(tmp_path: Path, tokenizer: Tokenizer) -> None:
    registry, embedder, shard = FolderRegistry(tmp_path / "library"), HashingEmbedder(16), tmp_path / "shard"
    document = Document("a", "kiln", "the kiln is hot", "", "", "", PUBLIC.groups, PUBLIC.tenant, "")
    made = build([document], embedder=embedder, registry=registry, staging=tmp_path / "staging", tokenizer=tokenizer)
    shard.mkdir()
    cut(registry.folder(made.version.id), shard, 0, 1)
    whole, part_of_it = StoredTokens.of(registry.folder(made.version.id)), StoredTokens.of(shard)
    assert whole is not None
    assert part_of_it is not None
    assert part_of_it[0] == whole[0]


def test_vectors_are_taken_over_only_from_a_version_whose_runtime_made_the_same_bits(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "library")

    def built(runtime: str, *texts: str) -> int:
        embedder = HashingEmbedder(16)
        embedder.runtime = runtime
        documents = [
            Document(text, "", text, "", "", "", PUBLIC.groups, PUBLIC.tenant, sha256(text.encode()).hexdigest())
            for text in texts
        ]
        return build(documents, embedder=embedder, registry=registry, staging=tmp_path / "staging").reused_vectors

    assert built("openvino-bfloat16", "hot") == 0
    assert built("openvino-bfloat16", "hot", "cold") == 1
    assert built("onnx-float32", "hot", "cold", "blue") == 0
