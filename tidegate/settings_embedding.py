"""The encoder and what runs it: part of settings.py. What is made of it is compose.py."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from tidegate.section import Folder, ModelId, Section

# Vector lengths that Bedrock's models of text give, by a part of their id. Source: the vendor's model parameters.
GIVEN = {
    "titan-embed-text-v1": (1536,),
    "titan-embed-text-v2": (256, 512, 1024),
    "cohere.embed-english-v3": (1024,),
    "cohere.embed-multilingual-v3": (1024,),
    "cohere.embed-v4": (256, 512, 1024, 1536),
}


class Embedding(Section):
    """How texts become vectors. Another encoder needs a new build; the same one may build and search on any runtime."""

    backend: Literal["minilm", "hashing", "folder", "bedrock"] = Field(
        default="minilm",
        description="minilm: the bundled encoder; hashing: no model at all; folder: a local encoder; bedrock: hosted.",
    )
    folder: Folder | None = Field(default=None, description="Encoder directory for backend folder. Absent: none.")
    model_id: ModelId | None = Field(default=None, description="Model of backend bedrock. Absent: none.")
    dimensions: int = Field(
        default=256, ge=16, le=8192, description="Vector length of backend hashing; of bedrock, one the model gives."
    )
    runtime: Literal["auto", "openvino", "onnx", "torch"] = Field(
        default="auto", description="What runs the encoder. auto: the fastest there is; any other is it or an error."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="Number format of the encoder. auto: bfloat16 where the hardware has it."
    )
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="Where the encoder runs.")
    threads: int = Field(
        default=1, ge=1, le=256, description="Threads per replica; more than one spikes on a busy machine."
    )
    query_cache: int = Field(
        default=4096, ge=0, le=10_000_000, description="Query vectors kept per replica; 0 keeps none."
    )

    @property
    def on_gpu(self) -> bool:
        """True when a model runs on a GPU."""
        return self.device == "cuda" and self.backend not in ("hashing", "bedrock")

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.backend == "folder" and self.folder is None:
            yield "folder", "a directory with the encoder, because embedding.backend is folder"
        if self.backend == "bedrock":
            yield from self._bedrock()

    def _bedrock(self) -> Iterator[tuple[str, str]]:
        if self.model_id is None:
            yield "model_id", "the id of a model, because embedding.backend is bedrock"
            return
        given = next((lengths for part, lengths in GIVEN.items() if part in self.model_id), ())
        if not given:
            yield "model_id", f"a model that embeds text, one of {', '.join(GIVEN)}"
        elif self.dimensions not in given:
            yield "dimensions", f"what {self.model_id} gives: {' or '.join(map(str, given))}"
