"""An index version, open for searching: scope first, then both arms over the same visible rows, then fusion.

What a reader may not see is taken away before anything is counted or compared, so that it can influence neither ids
nor scores nor order. Files and chunks are stored.py; arms, fusion and ties are files of their own.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from domain.errors import BadRequest, ConfigError, IncompatibleIndex
from domain.ports import Embedder
from domain.types import Chunk, Hit, Mode, Query, Scope
from retrieval.analysis import STAMP
from retrieval.arms import DenseArm, LexicalArm, Ranking, Visible, merge_variants
from retrieval.chunking import indexed_text
from retrieval.dense import ExactArm
from retrieval.faiss_arm import FaissArm
from retrieval.fusion import FUSIONS, Candidates, Fusion, convex, gather
from retrieval.lexical import Bm25Arm
from retrieval.rank_bm25_arm import RankBm25Arm
from retrieval.stored import StoredVersion

SINGLE_ARMS = (Mode.LEXICAL.value, Mode.DENSE.value)  # may stand in the place of a fusion: no fusion, one arm


@dataclass
class HybridIndex:
    """One open version. Searching is safe from several threads; `tombstones` may be replaced at any time."""

    stored: StoredVersion
    embedder: Embedder
    lexical: LexicalArm
    dense: DenseArm
    fusion: Fusion
    hybrid: Mode  # what a hybrid search does: both arms, or the one that the settings leave it
    arm_candidates: int
    tombstones: frozenset[str] = field(default=frozenset())

    @classmethod
    def open(
        cls,
        folder: Path,
        embedder: Embedder,
        *,
        lexical: str = "bm25",
        dense: str = "faiss",
        fusion: str = "convex",
        dense_share: float = 0.6,
        rrf_k: int = 60,
        arm_candidates: int = 100,
        k1: float = 0.9,
        b: float = 0.4,
        tombstones: frozenset[str] = frozenset(),
    ) -> "HybridIndex":
        """The version in `folder`. Raises IncompatibleIndex when it was built with another embedder or analyser,
        ConfigError for names that are in no table, and StorageError naming a damaged file.
        """
        _check_names(
            {"lexical": (lexical, LEXICAL), "dense": (dense, DENSE), "fusion": (fusion, [*FUSIONS, *SINGLE_ARMS])}
        )
        stored = StoredVersion(folder)
        _check_compatible(stored, embedder)
        parameters: dict[str, dict[str, Any]] = {"rrf": {"k": rrf_k}}
        parameters["convex"] = parameters["weighted"] = {"dense_share": dense_share}
        return cls(
            stored,
            embedder,
            LEXICAL[lexical](stored, k1, b),
            DENSE[dense](stored.vectors()),
            partial(FUSIONS.get(fusion, convex), **parameters.get(fusion, {})),
            Mode(fusion) if fusion in SINGLE_ARMS else Mode.HYBRID,
            arm_candidates,
            tombstones,
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
        if n < 1:
            raise BadRequest(f"{n} hits cannot be found: ask for at least 1.", "k")
        if not query.text.strip():
            raise BadRequest("The query is blank: ask for something.", "query")
        mode = self.hybrid if mode is Mode.HYBRID else mode
        visible = self.stored.visible(scope, self.tombstones)
        if not visible.rows.size:
            return ()
        texts = list(dict.fromkeys(text for text in (query.text, *query.variants) if text.strip()))
        depth = max(n, self.arm_candidates) if mode is Mode.HYBRID else n
        if mode is Mode.LEXICAL:
            found = self._by_words(texts, depth, visible)
            return self._hits(found, mode, bm25=found)
        vectors = self.embedder.embed_queries(texts)  # [n_texts, dimensions]
        by_vectors = merge_variants([self.dense.search(vector, depth, visible) for vector in vectors], depth)
        if mode is Mode.DENSE:
            return self._hits(by_vectors, mode, cosine=by_vectors)
        both = self._completed(gather(self._by_words(texts, depth, visible), by_vectors), texts, vectors, visible)
        return self._hits(
            self.fusion(both, n), mode, bm25=Ranking(both.rows, both.bm25), cosine=Ranking(both.rows, both.cosine)
        )

    def chunks(self, ids: Sequence[str], scope: Scope) -> tuple[Chunk, ...]:
        """The chunks of `ids` that exist and are visible, in the order asked; others are left out silently."""
        mask = self.stored.visible(scope, self.tombstones).mask
        rows = (self.stored.row(chunk_id) for chunk_id in ids)
        return tuple(self.stored.chunk(row) for row in rows if row is not None and mask[row])

    def _by_words(self, texts: Sequence[str], n: int, visible: Visible) -> Ranking:
        return merge_variants([self.lexical.search(text, n, visible) for text in texts], n)

    def _completed(self, both: Candidates, texts: Sequence[str], vectors: Any, visible: Visible) -> Candidates:
        """The candidates with the score of the arm that did not return them: not returned is not worthless."""
        bm25 = np.max([self.lexical.score(text, both.rows, visible) for text in texts], axis=0)
        cosine = np.max([self.dense.scores(vector, both.rows) for vector in vectors], axis=0)
        return both.filled(bm25, cosine)

    def _hits(
        self, found: Ranking, mode: Mode, bm25: Ranking | None = None, cosine: Ranking | None = None
    ) -> tuple[Hit, ...]:
        words, meaning = _scores_by_row(bm25), _scores_by_row(cosine)
        return tuple(
            Hit(self.stored.chunk(row), score, rank, mode.value, meaning.get(row), words.get(row))
            for rank, (row, score) in enumerate(zip(found.rows.tolist(), found.scores.tolist(), strict=True), 1)
        )


def _scores_by_row(ranking: Ranking | None) -> dict[int, float]:
    return dict(zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)) if ranking else {}


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
DENSE: dict[str, Callable[[Any], DenseArm]] = {"faiss": FaissArm, "exact": ExactArm}
