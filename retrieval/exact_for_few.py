"""An approximate dense arm that compares everything for readers who see little, so that others' rows change nothing.

Lists, graphs and codes are looked through with all rows in mind: what somebody may not see can decide which of his own
rows are looked at. Whether a reader is searched exactly depends on how many rows he sees and on nothing else, so for
those up to the limit adding or removing hidden documents changes no id and no score. Above it an approximate arm's
promise is its measured recall.
"""

from retrieval.arms import DenseArm, Ranking, Rows, Scores, Visible
from retrieval.dense import Vector, Vectors
from retrieval.faiss_arm import nearest_of, readable

EXACT = frozenset({"exact", "faiss", "gpu"})  # arms that compare everything anyway, by name


class ExactForFew:
    """`arm` for readers of more than `rows` chunks, and the exact products over what they see for all others."""

    def __init__(self, arm: DenseArm, vectors: Vectors, rows: int) -> None:
        self.arm, self.name, self.rows = arm, arm.name, rows
        self._vectors = readable(vectors)

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """The visible rows of highest cosine, all of them compared when they are few; min(n, visible) of them."""
        if visible.rows.size <= self.rows:
            return nearest_of(self._vectors, vector, visible.rows, n)
        return self.arm.search(vector, n, visible)

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return self.arm.scores(vector, rows)


def exact_for_few(arm: DenseArm, vectors: Vectors, limit_bytes: int) -> DenseArm:
    """The arm, exact for readers who see at most `limit_bytes` of vectors; one that is exact anyway as it is."""
    if arm.name in EXACT or limit_bytes <= 0:
        return arm
    return ExactForFew(arm, vectors, limit_bytes // max(1, vectors.shape[1] * vectors.itemsize))
