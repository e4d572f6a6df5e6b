"""BERT on ONNX Runtime in float32: where OpenVINO is not to be had. The only file with onnxruntime."""

from typing import Any

from retrieval.bert_graph import bert_graph
from retrieval.bert_weights import BertWeights
from retrieval.pairs import TokenBatch, Values


class OnnxBert:
    """Runtime over a session on the CPU with `threads` threads. Safe to call from several threads."""

    pads, room = True, 1

    def __init__(self, weights: BertWeights, threads: int) -> None:
        import onnxruntime

        options: Any = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry(
            "session.intra_op.allow_spinning", "0"
        )  # an idle replica leaves the core alone
        options.log_severity_level = 3  # errors; a library does not print
        self.name, self._values = "onnx-float32", weights.head_alone()
        self._session = onnxruntime.InferenceSession(bert_graph(weights), options, providers=["CPUExecutionProvider"])

    def __call__(self, batch: TokenBatch) -> Values:
        """float32 [b, ...]."""
        given = {"ids": batch.ids, "types": batch.types, "lengths": batch.lengths}
        return self._values(self._session.run(None, given)[0])
