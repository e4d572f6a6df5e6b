"""BERT on OpenVINO: the default on a CPU, in bfloat16 where the CPU multiplies it. The only file with openvino.

The package reports its import to its vendor unless told not to; here nothing leaves the machine.
"""

import sys
from functools import cache
from pathlib import Path
from threading import Lock

from domain.errors import ConfigError
from retrieval.bert_graph import bert_graph
from retrieval.bert_weights import BertWeights
from retrieval.pairs import TokenBatch, Values

PRECISION = {"float32": "f32", "bfloat16": "bf16"}


class OpenVinoBert:
    """Runtime over a graph compiled for the CPU, `threads` threads. Calls from several threads take their turns."""

    pads, room = True, 1

    def __init__(self, weights: BertWeights, dtype: str, threads: int) -> None:
        if dtype == "bfloat16" and not bfloat16_cpu():
            raise ConfigError(
                "This CPU does not multiply bfloat16 (it has neither avx512_bf16 nor amx_bf16), which would be slower "
                "than float32 here: set dtype to 'auto' or 'float32'."
            )
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # "there is no such module"
        import openvino

        self.name, self._values = f"openvino-{dtype}", weights.head_alone()
        core = openvino.Core()
        model = core.read_model(bert_graph(weights))
        settings = {
            "INFERENCE_PRECISION_HINT": PRECISION[dtype],
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            # With one thread it would bind the whole process to the first core, and the next replica too.
            "ENABLE_CPU_PINNING": False,
        }
        compiled = core.compile_model(model, "CPU", settings)
        self._inputs = {name for given in compiled.inputs for name in given.names}  # a model of one type has no types
        self._request = compiled.create_infer_request()
        self._lock = Lock()

    def __call__(self, batch: TokenBatch) -> Values:
        """float32 [b, ...]; bits do not depend on the other rows of the batch."""
        with self._lock:
            given = {"ids": batch.ids, "types": batch.types, "lengths": batch.lengths}
            found = self._request.infer({name: array for name, array in given.items() if name in self._inputs})
            pooled = found["pooled"].copy()  # what it gave is overwritten by the next call
        return self._values(pooled)


@cache
def bfloat16_cpu() -> bool:
    """True where the CPU has instructions for products of bfloat16. False where nobody can tell."""
    try:
        words = Path("/proc/cpuinfo").read_text("utf-8").split()
    except OSError:
        return False
    return not {"avx512_bf16", "amx_bf16"}.isdisjoint(words)
