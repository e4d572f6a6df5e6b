"""The graph leaves out what no head reads, and nobody can tell from what it gives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from retrieval.batching import token_batch
from retrieval.bert_graph import bert_graph
from retrieval.bert_weights import BertWeights, bert_weights
from retrieval.heads import FIRST, HEADS
from tests.retrieval.tiny_models import WIDE, bert, roberta

RNG = np.random.default_rng(0)
IDS = [RNG.integers(4, 17, length).tolist() for length in (3, 9, 16, 40, 12)]
TYPES = [[0] * (len(ids) // 2) + [1] * (len(ids) - len(ids) // 2) for ids in IDS]


@pytest.fixture(params=["bert", "roberta"])
def weights(request: pytest.FixtureRequest, tmp_path: Path) -> BertWeights:
    """Of a classifier, with weights large enough that attention chooses and biases matter."""
    folder = bert(tmp_path, "BertForSequenceClassification") if request.param == "bert" else roberta(tmp_path)
    found = bert_weights(folder, "classifier")
    assert found is not None
    tensors = {
        name: 4 * tensor + RNG.normal(0, 0.5, tensor.shape).astype(np.float32) if "attention.self" in name else tensor
        for name, tensor in found.tensors.items()
    }
    return replace(found, tensors=tensors)


def pooled(weights: BertWeights) -> np.ndarray:
    return values(onnx.load_from_string(bert_graph(weights)), "pooled")


def values(graph: onnx.ModelProto, output: str) -> np.ndarray:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    batch = token_batch(IDS, TYPES)
    given = {"ids": batch.ids, "types": batch.types, "lengths": batch.lengths}
    names = {wanted.name for wanted in session.get_inputs()}
    found: np.ndarray = session.run([output], {name: array for name, array in given.items() if name in names})[0]
    return found


def test_the_first_tokens_state_is_the_one_that_the_whole_last_layer_gives(weights: BertWeights) -> None:
    # The pooling of pairs reads every state, so its graph is the plain one; the first token's state comes first.
    plain = pooled(replace(weights, head=HEADS["pooled_pair"]))[:, : weights.width]
    assert weights.head.pooled == FIRST
    assert np.ptp(plain, axis=0).max() > 0.5  # the sequences differ, and so do their states
    assert pooled(weights) == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize(("head", "rows"), [("cls", 1), ("mean", 40), ("pooled_pair", 40)])
def test_the_last_layer_computes_only_the_rows_that_the_head_reads(weights: BertWeights, head: str, rows: int) -> None:
    graph = onnx.load_from_string(bert_graph(replace(weights, head=HEADS[head])))
    wide = [node.output[0] for node in graph.graph.node if node.op_type == "Gelu"][-1]
    graph.graph.output.append(onnx.helper.make_tensor_value_info(wide, onnx.TensorProto.FLOAT, None))
    assert values(graph, wide).shape == (len(IDS), rows, WIDE)
