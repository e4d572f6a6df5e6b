"""A folder of weights to an engine that is ready for questions: copies, threads, and the proof that the model ranks."""

from pathlib import Path

from domain.errors import ConfigError
from retrieval.batching import CPU_BUDGET, GPU_BUDGET
from retrieval.cross_encoder import CrossEncoder
from retrieval.model_folder import weight_files
from retrieval.pair_engine import PairEngine
from retrieval.runtimes import Choice
from retrieval.self_test import prove

SHIPPED = Path(__file__).with_name("weights") / "cross_encoder"
COPIED_BYTES = 200_000_000  # weights up to here get a copy per thread; beyond, one copy is computed by all threads


def open_engine(
    folder: Path,
    *,
    runtime: str = "auto",
    dtype: str = "auto",
    device: str = "cpu",
    threads: int = 1,
    batch_tokens: int | None = None,
    within_s: float | None = None,
    remembered: int = 65_536,
) -> PairEngine:
    """The engine over the model in `folder`, which has proved that it ranks.

    On a CPU a small model is copied for each of `threads` and every copy runs batches of its own: two threads in one
    small product wait for each other more than they compute. Raises ConfigError when the folder cannot be used.
    """
    batch_tokens = batch_tokens or default_batch_tokens(device)
    copies = threads if device == "cpu" and sum(p.stat().st_size for p in weight_files(folder)) <= COPIED_BYTES else 1
    choice = Choice(runtime, dtype, device, 1 if copies > 1 else threads)
    models = [CrossEncoder(folder, choice, batch_tokens=batch_tokens) for _ in range(copies)]
    for model in models:  # each is compiled by its first batch, which no question should wait for
        prove(model, str(folder))
    return PairEngine(models, batch_tokens=batch_tokens, within_s=within_s, remembered=remembered)


def default_batch_tokens(device: str) -> int:
    """Padded tokens a batch has where nobody says otherwise."""
    return CPU_BUDGET if device == "cpu" else GPU_BUDGET


def shipped_folder() -> Path:
    """The folder of the cross-encoder that comes with this package. Raises ConfigError when none does."""
    if not (SHIPPED / "config.json").is_file():
        raise ConfigError(
            f"rerank.backend is 'embedded', and this installation has no cross-encoder in {SHIPPED}: set it to "
            "'features', or train one with `tidegate train-reranker`, set it to 'cross_encoder' and name the folder in "
            "rerank.folder."
        )
    return SHIPPED
