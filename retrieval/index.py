"""An index version, open for searching: scope first, then both arms over the same visible rows, then fusion.

What a reader may not see is taken away before anything is counted or compared, so that it can influence neither ids
nor scores nor order. Files and chunks are stored.py; arms, fusion and ties are files of their own.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.amending import NOTHING_AMENDED, Amendments
from domain.errors import ConfigError, IncompatibleIndex
from domain.ports import Embedder
from domain.types import Chunk, Hit, Mode, Query, Scope
from retrieval.analysis import STAMP
from retrieval.arms import DenseArm, LexicalArm
from retrieval.chunking import indexed_text
from retrieval.dense_choice import DENSE, FLAT_BYTES, Opening, open_dense
from retrieval.exact_for_few import exact_for_few
from retrieval.families import folded, widened
from retrieval.hnsw_arm import EF_SEARCH
from retrieval.ivf_arm import NPROBE
from retrieval.lexical import Bm25Arm
from retrieval.passage_tokens import StoredTokens
from retrieval.phases import FUSION_NAMES, Finding, Fused, Recipe, fuse, recipe
from retrieval.rank_bm25_arm import RankBm25Arm
from retrieval.stored import StoredVersion


@dataclass
class HybridIndex:
    """One open version. Searching is safe from several threads; `amended` may be replaced at any time."""

    stored: StoredVersion
    embedder: Embedder
    lexical: LexicalArm
    dense: DenseArm
    recipe: Recipe
    amended: Amendments = NOTHING_AMENDED  # what is said of its documents since it was built
    tokens: StoredTokens | None = None  # None where the version was built without

    @classmethod
    def open(
        cls,
        folder: Path,
        embedder: Embedder,
        *,
        lexical: str = "bm25",
        dense: str = "auto",
        nprobe: int = NPROBE,
        ef_search: int = EF_SEARCH,
        exact_bytes: int = FLAT_BYTES,
        fusion: str = "convex",
        dense_share: float = 0.6,
        rrf_k: int = 60,
        arm_candidates: int = 100,
        k1: float = 0.9,
        b: float = 0.4,
        amended: Amendments = NOTHING_AMENDED,
    ) -> "HybridIndex":
        """The version in `folder`. Raises IncompatibleIndex when it was built with another embedder or analyser,
        ConfigError for names that are in no table, and StorageError naming a damaged file.
        """
        _check_names({"lexical": (lexical, LEXICAL), "dense": (dense, DENSE), "fusion": (fusion, FUSION_NAMES)})
        stored = StoredVersion(folder)
        _check_compatible(stored, embedder)
        return cls(
            stored,
            embedder,
            LEXICAL[lexical](stored, k1, b),
            exact_for_few(
                open_dense(dense, Opening(stored.vectors(), folder, nprobe, ef_search)), stored.vectors(), exact_bytes
            ),
            recipe(fusion, dense_share=dense_share, rrf_k=rrf_k, arm_candidates=arm_candidates),
            amended,
            StoredTokens.of(folder),
        )

    @property
    def version(self) -> str:
        """The id of this version."""
        return self.stored.id

    def search(self, query: Query, scope: Scope, n: int, mode: Mode = Mode.HYBRID) -> tuple[Hit, ...]:
        """At most `n` hits, best first, ties by chunk id; each chunk once, with its best score over query and variants.

        In hybrid mode both scores of every hit are known, whichever arm found it; a bm25 of 0 means no common word.
        Raises BadRequest for a blank query or an `n` below 1.
        """
        asked = widened(self.recipe.asked(query, n, mode), self.stored.parts)
        visible = self.stored.visible(scope, self.amended)
        if not visible.rows.size:
            return ()
        vectors = None if asked.mode is Mode.LEXICAL else self.embedder.embed_queries(asked.texts)
        finding = Finding(self.lexical, self.dense, visible, asked, vectors, [None] * len(asked.texts))
        fused = fuse(finding.found(), asked, self.recipe.fusion, finding.both_scores)
        if self.stored.parts > 1:
            fused = folded(fused, n, self.stored.passage_id)
        return self._hits(fused, asked.mode)

    def chunks(self, ids: Sequence[str], scope: Scope) -> tuple[Chunk, ...]:
        """The chunks of `ids` that exist and are visible, in the order asked; others are left out silently."""
        mask = self.stored.visible(scope, self.amended).mask
        rows = (self.stored.row(chunk_id) for chunk_id in ids)
        return tuple(self.stored.chunk(row) for row in rows if row is not None and mask[row])

    def hit(self, row: int) -> Hit:
        """What is sent of a row, still without place and score."""
        return Hit(self.stored.chunk(row), 0.0, 0, "", tokens=self.tokens[row] if self.tokens else None)

    def _hits(self, fused: Fused, mode: Mode) -> tuple[Hit, ...]:
        chunk, tokens, method = self.stored.chunk, self.tokens, mode.value
        cosine, bm25 = fused.cosine.get, fused.bm25.get
        placed = zip(fused.ranking.rows.tolist(), fused.ranking.scores.tolist(), strict=True)
        return tuple(
            Hit(chunk(row), score, rank, method, cosine(row), bm25(row), tokens[row] if tokens else None)
            for rank, (row, score) in enumerate(placed, 1)
        )


def _check_names(chosen: dict[str, tuple[str, Collection[str]]]) -> None:
    wrong = [
        f"{what} '{name}' is not one of {', '.join(table)}"
        for what, (name, table) in chosen.items()
        if name not in table
    ]
    if wrong:
        raise ConfigError(f"The index cannot be opened like this: {'; '.join(wrong)}.")


def _check_compatible(stored: StoredVersion, embedder: Embedder) -> None:
    """Vectors of two encoders look alike and mean nothing to each other, so the tag decides, not only the width."""
    built, wrong = stored.manifest["embedder"], []
    if (built["tag"], built["dimensions"]) != (embedder.tag, embedder.dimensions):
        wrong.append(
            f"was built with embedder '{built['tag']}' ({built['dimensions']} dimensions), "
            f"settings ask for '{embedder.tag}' ({embedder.dimensions} dimensions)"
        )
    if stored.manifest["analyser"] != STAMP:
        wrong.append(f"was built with analyser '{stored.manifest['analyser']}', this program has '{STAMP}'")
    if wrong:
        raise IncompatibleIndex(
            f"Index {stored.id} {' and '.join(wrong)}: rebuild it with `tidegate build CORPUS`, "
            "or change the embedding settings back."
        )


LEXICAL: dict[str, Callable[[StoredVersion, float, float], LexicalArm]] = {
    "bm25": lambda stored, k1, b: Bm25Arm.load(stored.folder / "bm25", k1, b),
    "rank_bm25": lambda stored, k1, b: RankBm25Arm.build([indexed_text(chunk) for chunk in stored.chunks()], k1, b),
}
