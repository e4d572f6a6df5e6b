"""The dense arm on a GPU: one matrix product over all vectors, the hidden rows masked out, the best taken.

No FAISS here: its plain GPU indexes ignore an `IDSelector` without an error. Exact, as faiss_arm.py is: the device
proposes and the products of dense.py decide. It never falls back to the CPU: asked for and not there is an error.
"""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from domain.errors import ConfigError, StageFailed
from retrieval.arms import Ranking, Rows, Scores, Visible
from retrieval.dense import SLACK, Vector, Vectors, cosines, proposed

if TYPE_CHECKING:
    import torch


class GpuArm:
    """As ExactArm, bit for bit. Holds a copy of the vectors, and a mask per reader, in the memory of the device."""

    name = "gpu"

    def __init__(self, vectors: Vectors, device: str = "cuda") -> None:
        """Raises ConfigError when there is no such device or its memory does not take the vectors."""
        import torch

        if device != "cpu" and not torch.cuda.is_available():
            raise ConfigError(
                "retrieval.dense is 'gpu', but this process sees no CUDA device: give the retriever one with "
                "serving.stages.retriever.num_gpus and install requirements-gpu.lock, or set retrieval.dense to 'auto'."
            )
        self.vectors = vectors
        self.device = torch.device(device)
        try:
            # torch takes no read-only array without a warning, and a memory map is one.
            self._held = torch.from_numpy(np.array(vectors, np.float32)).to(self.device)  # [n_chunks, dimensions]
        except torch.OutOfMemoryError as error:
            raise ConfigError(
                f"{vectors.nbytes >> 20} MiB of vectors do not fit into the memory of the GPU: free it, take a larger "
                "one, or set retrieval.dense to 'auto'."
            ) from error
        self._masks: WeakKeyDictionary[Visible, torch.Tensor] = WeakKeyDictionary()

    def search(self, vector: Vector, n: int, visible: Visible) -> Ranking:
        """The visible rows of highest cosine: min(n, visible) of them, ties by row, never a masked row."""
        return proposed(self.vectors, vector, n, visible, lambda count: self._propose(vector, count, visible))

    def scores(self, vector: Vector, rows: Rows | None) -> Scores:
        """float32 [len(rows)]: the cosine of each of `rows`, in their order; None means every row."""
        return cosines(self.vectors, vector, rows)

    def _propose(self, vector: Vector, fetch: int, visible: Visible) -> tuple[Rows, Scores]:
        """`fetch` visible rows, best first. The caller makes sure that as many are visible."""
        import torch

        with torch.inference_mode():
            scores = self._held @ torch.from_numpy(np.array(vector, np.float32)).to(self.device)  # [n_chunks]
            if not visible.everything:
                scores.masked_fill_(self._hidden(visible), -torch.inf)
            top = torch.topk(scores, fetch)
            rows: Rows = top.indices.cpu().numpy().astype(np.int64)
            rough: Scores = top.values.cpu().numpy()
        off = np.abs(rough[:1] - cosines(self.vectors, vector, rows[:1])).max(initial=0)
        if off > SLACK / 2:  # TF32 or bf16 products switched on for the whole process: a thousand times too coarse
            raise StageFailed(
                f"The GPU's product is {off:.1g} off, at most {SLACK / 2:.1g} is exact enough to order by: switch "
                "torch's reduced float32 precision off in this process, or set retrieval.dense to 'auto'.",
                "retriever",
            )
        return rows, rough

    def _hidden(self, visible: Visible) -> "torch.Tensor":
        """The rows this reader may not see, on the device."""
        import torch

        mask = self._masks.get(visible)
        if mask is None:
            mask = torch.from_numpy(~visible.mask).to(self.device)
            self._masks[visible] = mask
        return mask
