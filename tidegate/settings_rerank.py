"""What reorders candidates and how long it may take: part of settings.py. What is made of it is compose.py."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from tidegate.section import Folder, ModelId, Section, Share

BATCH_TOKENS = {"cpu": 1024, "cuda": 32_768}  # as in retrieval/batching.py, which loads numpy; settings load fast


class Rerank(Section):
    """How candidates are reordered. The settings of a model hold for backends embedded and cross_encoder alone."""

    backend: Literal["none", "features", "embedded", "cross_encoder", "bedrock"] = Field(
        default="features",
        description="none: fused order; features: no model; embedded: the shipped model; cross_encoder: a folder; "
        "bedrock: hosted.",
    )
    folder: Folder | None = Field(default=None, description="Model directory for backend cross_encoder. Absent: none.")
    model_id: ModelId | None = Field(default=None, description="Model of backend bedrock, its id or ARN. Absent: none.")
    depth: int = Field(default=50, ge=1, le=1000, description="Candidates that are reordered, from the top.")
    within_ms: int = Field(
        default=2000, ge=1, le=600_000, description="Milliseconds for reading; hits beyond it keep fused order below."
    )
    share: Share | None = Field(
        default=None, description="Weight of the reading against what was known before. Absent: as the model says."
    )
    batch_tokens: int | None = Field(
        default=None, ge=64, le=10_000_000, description="Padded tokens a batch. Absent: 1024 on a CPU, 32768 on a GPU."
    )
    runtime: Literal["auto", "openvino", "onnx", "torch"] = Field(
        default="auto", description="What computes the model; auto: the fastest exact one there is."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="Number format of the model; auto: bfloat16 where the machine multiplies it."
    )
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="Where the model runs.")
    threads: int = Field(default=1, ge=1, le=256, description="Threads per replica, each with batches of its own.")

    @property
    def reads(self) -> bool:
        """True when a model reads question and passage together."""
        return self.backend in ("embedded", "cross_encoder")

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.backend == "cross_encoder" and self.folder is None:
            yield "folder", "a directory with the model, because rerank.backend is cross_encoder"
        if self.backend == "bedrock" and self.model_id is None:
            yield "model_id", "the id or ARN of a model, because rerank.backend is bedrock"

    def too_few(self, requests: int, passage_tokens: int) -> str:
        """What is wanted of a replica that works on `requests` at once; empty when they can fill a batch.

        A batch that can never fill is Serve's trap of max_ongoing_requests below the batch size: it caps in silence.
        """
        batch = self.batch_tokens or BATCH_TOKENS[self.device]
        passages = max(1, batch // passage_tokens)
        if requests * self.depth >= passages:
            return ""
        return (
            f"at least {-(-passages // self.depth)}: a batch of {batch} tokens (rerank.batch_tokens) holds {passages} "
            f"passages of {passage_tokens} (chunking.tokens), and a request brings {self.depth} (rerank.depth)"
        )
