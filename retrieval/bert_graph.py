"""BERT as an ONNX model, written node by node from the weights: no exporter, no trace, no torch.

OpenVINO and ONNX Runtime both read it and fuse its attention, GELU and layer norms into their own kernels. Inputs are
those of a TokenBatch; the pooled states come out, of which heads.py makes vectors and logits. The same computation in
torch is torch_runtime.py; transformers is the oracle of both in the tests.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from domain.errors import ConfigError
from retrieval.batching import padded
from retrieval.bert_weights import BertWeights
from retrieval.heads import FIRST, MEAN, PAIR

ROOM = 1_900_000_000  # bytes: a protocol buffer ends at 2 GiB
HIDDEN = -3e38  # added to the attention score of padding; no number format turns it into NaN

Node = str  # the name of a node's output


def bert_graph(weights: BertWeights) -> bytes:
    """A serialised ONNX model: ids, types [b, t] and lengths [b] in, `pooled` [b, width or 3 * width] out, float32.

    Raises ConfigError for a model that is too large for the format.
    """
    import onnx

    if weights.bytes > ROOM:
        raise ConfigError(
            f"The model has {weights.bytes / 1e9:.1f} GB of weights, an ONNX model can hold {ROOM / 1e9:.1f}: set "
            "its runtime to 'torch'."
        )
    graph = Graph()
    parts = POOLED[weights.head.pooled](graph, *_states(graph, weights))
    graph.node("Concat", *parts, output="pooled", axis=1)
    whole, real, given = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
    described = onnx.helper.make_graph(
        graph.nodes,
        "bert",
        [given("ids", whole, ["b", "t"]), given("types", whole, ["b", "t"]), given("lengths", whole, ["b"])],
        [given("pooled", real, ["b", len(parts) * weights.width])],
        graph.constants,
    )
    model = onnx.helper.make_model(described, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    serialised: bytes = model.SerializeToString()
    return serialised


class Graph:
    """Nodes and constants in the order they are made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []  # onnx.NodeProto
        self.constants: list[Any] = []  # onnx.TensorProto

    def node(self, kind: str, *inputs: Node, output: str = "", **attributes: Any) -> Node:
        """The output of a new node of this ONNX operator."""
        from onnx import helper

        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, values: Any) -> Node:  # whatever numpy makes an array of
        """A constant of these values; float64 becomes float32."""
        from onnx import numpy_helper

        array = np.asarray(values)
        array = np.ascontiguousarray(array.astype(np.float32) if array.dtype == np.float64 else array)
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array.reshape(np.shape(values)), name))
        return name

    def linear(self, x: Node, weights: BertWeights, name: str, scale: float = 1.0) -> Node:
        """(x W' + b) * scale, with W and b as torch's linear layers store them."""
        weight, bias = (np.float32(scale) * weights.tensors[f"{name}.{part}"] for part in ("weight", "bias"))
        return self.node("Add", self.node("MatMul", x, self.constant(weight.T)), self.constant(bias))

    def norm(self, x: Node, weights: BertWeights, name: str) -> Node:
        """The layer norm over the last axis."""
        scale, bias = (self.constant(weights.tensors[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=weights.epsilon)

    def flags(self, condition: Node) -> Node:
        """A condition [b, t] as factors [b, t, 1]."""
        wide = self.node("Unsqueeze", condition, self.constant(np.array([2])))
        return self.node("Cast", wide, to=1)  # 1 is float32


def _states(graph: Graph, weights: BertWeights) -> tuple[Node, Node]:
    """Hidden states of the last layer, and places [t] from 0.

    [b, t, width], or [b, 1, width] for a head that reads only the first token's.
    """
    node, constant, tensors = graph.node, graph.constant, weights.tensors
    longest = node("Shape", "ids", start=1, end=2)  # [1]
    places = node("Range", constant(np.array(0)), node("Squeeze", longest), constant(np.array(1)))
    table = tensors["embeddings.position_embeddings.weight"][weights.first_place :]
    words = node("Gather", constant(tensors["embeddings.word_embeddings.weight"]), "ids")
    kinds = tensors["embeddings.token_type_embeddings.weight"]
    if len(kinds) > 1:
        words = node("Add", words, node("Gather", constant(kinds), "types"))
    else:
        table = table + kinds[0]
    # A sequence as long as the model's places may be padded beyond them; nobody looks at what stands there.
    table = np.pad(table, ((0, padded(len(table)) - len(table)), (0, 0)))
    x = node("Add", words, node("Slice", constant(table), constant(np.array([0])), longest))
    x = graph.norm(x, weights, "embeddings.LayerNorm")
    seen = node("Less", places, node("Unsqueeze", "lengths", constant(np.array([1]))))  # [b, t]
    seen = node("Unsqueeze", seen, constant(np.array([1, 2])))  # [b, 1, 1, t]
    mask = node("Where", seen, constant(0.0), constant(HIDDEN))
    one_is_read = weights.head.pooled == FIRST
    for i in range(weights.layers):
        layer = _first_of_layer if one_is_read and i == weights.layers - 1 else _layer
        x = layer(graph, weights, f"encoder.layer.{i}.", x, mask)
    return x, places


def _layer(graph: Graph, weights: BertWeights, at: str, x: Node, mask: Node) -> Node:
    """One layer: attention and the wide product, each added to what came in and normed."""
    node, constant, size = graph.node, graph.constant, weights.width // weights.heads
    apart, together = constant(np.array([0, 0, weights.heads, size])), constant(np.array([0, 0, weights.width]))

    def heads(part: str, order: list[int], scale: float = 1.0) -> Node:
        product = graph.linear(x, weights, f"{at}attention.self.{part}", scale)
        return node("Transpose", node("Reshape", product, apart), perm=order)

    query = heads("query", [0, 2, 1, 3], size**-0.5)
    key, value = heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scores = node("MatMul", query, key)  # [b, heads, t, t]
    y = node("MatMul", node("Softmax", node("Add", scores, mask), axis=-1), value)
    return _after_attention(graph, weights, at, x, node("Reshape", node("Transpose", y, perm=[0, 2, 1, 3]), together))


def _first_of_layer(graph: Graph, weights: BertWeights, at: str, x: Node, mask: Node) -> Node:
    """The first token's row [b, 1, width] of what `_layer` gives, for next to nothing.

    One token asks, so keys and values of all tokens need not be made: q (x K')' = (q K) x', and the mixture of values
    is the values' product with the mixture of states. The keys' bias adds the same to every score: softmax drops it.
    """
    node, constant, heads = graph.node, graph.constant, weights.heads
    width, size = weights.width, weights.width // weights.heads
    key, value = (weights.tensors[f"{at}attention.self.{part}.weight"] for part in ("key", "value"))
    first = node("Slice", x, *(constant(np.array([edge])) for edge in (0, 1, 1)))  # [b, 1, width]
    query = graph.linear(first, weights, f"{at}attention.self.query", size**-0.5)
    query = node("Reshape", query, constant(np.array([0, heads, 1, size])))
    asked = node("MatMul", query, constant(key.reshape(1, heads, size, width)))  # [b, heads, 1, width]
    asked = node("Reshape", asked, constant(np.array([0, heads, width])))
    scores = node("MatMul", asked, node("Transpose", x, perm=[0, 2, 1]))  # [b, heads, t]
    shares = node("Softmax", node("Add", scores, node("Squeeze", mask, constant(np.array([1])))), axis=-1)
    mixed = node("Reshape", node("MatMul", shares, x), constant(np.array([0, heads, 1, width])))
    y = node("MatMul", mixed, constant(value.reshape(1, heads, size, width).swapaxes(2, 3)))  # [b, heads, 1, size]
    y = node("Reshape", y, constant(np.array([0, 1, width])))
    y = node("Add", y, constant(weights.tensors[f"{at}attention.self.value.bias"]))
    return _after_attention(graph, weights, at, first, y)


def _after_attention(graph: Graph, weights: BertWeights, at: str, x: Node, y: Node) -> Node:
    """What a layer makes of the states x that came in and of what they attended to, y."""
    node = graph.node
    y = graph.linear(y, weights, at + "attention.output.dense")
    x = graph.norm(node("Add", x, y), weights, at + "attention.output.LayerNorm")
    y = graph.linear(node("Gelu", graph.linear(x, weights, at + "intermediate.dense")), weights, at + "output.dense")
    return graph.norm(node("Add", x, y), weights, at + "output.LayerNorm")


# ---------------------------------------------------------------------------------------------- pooling


def _first(graph: Graph, states: Node, _places: Node) -> list[Node]:
    return [graph.node("Gather", states, graph.constant(np.array(0)), axis=1)]


def _sum_of_all(graph: Graph, states: Node, places: Node) -> list[Node]:
    lengths = graph.node("Unsqueeze", "lengths", graph.constant(np.array([1])))
    return [_sum(graph, states, graph.node("Less", places, lengths))]


def _pair(graph: Graph, states: Node, places: Node) -> list[Node]:
    """The first token's state, and the sums of the question's and of the passage's, special tokens left out."""
    node, constant = graph.node, graph.constant
    one, column = constant(np.array(1)), constant(np.array([1]))
    last = node("Unsqueeze", node("Sub", "lengths", one), column)  # [b, 1] place of the last [SEP]
    passage_tokens = node("ReduceSum", "types", column, keepdims=1)  # its [SEP] included
    second = node("Sub", node("Add", last, one), passage_tokens)  # place of the passage's first token
    begun, over = node("Greater", places, constant(np.array(0))), node("Less", places, node("Sub", second, one))
    question = node("And", begun, over)
    passage = node("And", node("Less", places, last), node("GreaterOrEqual", places, second))
    return [*_first(graph, states, places), _sum(graph, states, question), _sum(graph, states, passage)]


def _sum(graph: Graph, states: Node, which: Node) -> Node:
    """The sum [b, width] of the states where `which` [b, t] is true."""
    chosen = graph.node("Mul", states, graph.flags(which))
    return graph.node("ReduceSum", chosen, graph.constant(np.array([1])), keepdims=0)


POOLED: dict[str, Callable[[Graph, Node, Node], list[Node]]] = {FIRST: _first, MEAN: _sum_of_all, PAIR: _pair}
