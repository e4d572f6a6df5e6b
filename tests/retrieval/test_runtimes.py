"""Every runtime gives the values of transformers; what is asked for and is not there is refused."""

import gc
import json
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.errors import ConfigError
from retrieval.batching import run
from retrieval.bert_weights import bert_weights
from retrieval.openvino_runtime import bfloat16_cpu
from retrieval.pairs import Runtime
from retrieval.runtimes import RUNTIMES, Choice, open_runtime
from retrieval.torch_runtime import one_kernel, packed
from retrieval.transformers_runtime import TransformersModel
from tests.retrieval.tiny_models import WORDS, bert, roberta

needs_bfloat16 = pytest.mark.skipif(not bfloat16_cpu(), reason="this CPU does not multiply bfloat16")
FULL = [("openvino", "float32"), ("onnx", "float32"), ("torch", "float32")]
HALF = [pytest.param(name, "bfloat16", marks=needs_bfloat16) for name in ("openvino", "torch")]
MODELS = {
    "mean": lambda folder: bert(folder, "BertModel"),
    "cls": lambda folder: bert(folder, "BertModel"),
    "bert": lambda folder: bert(folder, "BertForSequenceClassification"),
    "roberta": roberta,
}

RNG = np.random.default_rng(0)
LENGTHS = [3, 5, 8, 9, 16, 21, 40, 5]
IDS = [RNG.integers(4, len(WORDS), length).tolist() for length in LENGTHS]
TYPES = [[0] * (length // 2) + [1] * (length - length // 2) for length in LENGTHS]
ONE_TYPE = [[0] * length for length in LENGTHS]


def head_of(model: str) -> str:
    return model if model in ("mean", "cls") else "classifier"


def values(runtime: Runtime, model: str) -> np.ndarray:
    return run(runtime, IDS, TYPES if model == "bert" else ONE_TYPE, 0, 256)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MODELS.items()}


@pytest.fixture(scope="module")
def oracle(folders: dict[str, Path]) -> dict[str, np.ndarray]:
    """transformers' own model in float32 with its plainest attention, one sequence at a time."""

    def alone(name: str) -> np.ndarray:
        model = TransformersModel(folders[name], head_of(name), "cpu", "float32", 1, plain=True)
        types = TYPES if name == "bert" else ONE_TYPE
        return np.concatenate([run(model, [ids], [kind], 0, 256) for ids, kind in zip(IDS, types, strict=True)])

    return {name: alone(name) for name in MODELS}


@pytest.mark.slow  # transformers takes seconds to import
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("runtime", "dtype"), FULL)
def test_every_runtime_in_float32_gives_the_values_of_transformers(
    folders: dict[str, Path], oracle: dict[str, np.ndarray], model: str, runtime: str, dtype: str
) -> None:
    opened = open_runtime(folders[model], head_of(model), Choice(runtime, dtype))
    assert values(opened, model) == pytest.approx(oracle[model], abs=1e-5)
    assert opened.name == f"{runtime}-{dtype}"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("runtime", ["onnx", "torch"])
def test_runtimes_agree_with_one_another(folders: dict[str, Path], model: str, runtime: str) -> None:
    one, other = (
        open_runtime(folders[model], head_of(model), Choice(name, "float32")) for name in ("openvino", runtime)
    )
    # Each is within 1e-5 of transformers, so two of them are within twice that of one another.
    assert values(other, model) == pytest.approx(values(one, model), abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "dtype"), HALF)
def test_bfloat16_points_the_same_way(
    folders: dict[str, Path], oracle: dict[str, np.ndarray], runtime: str, dtype: str
) -> None:
    vectors = values(open_runtime(folders["mean"], "mean", Choice(runtime, dtype)), "mean")
    assert (vectors * oracle["mean"]).sum(1).min() > 0.999


@pytest.mark.parametrize("model", ["mean", "bert"])
@pytest.mark.parametrize(("runtime", "dtype"), [*FULL, *HALF])
def test_a_value_does_not_depend_on_its_company(folders: dict[str, Path], model: str, runtime: str, dtype: str) -> None:
    opened = open_runtime(folders[model], head_of(model), Choice(runtime, dtype))
    types = TYPES if model == "bert" else ONE_TYPE
    alone = np.concatenate([run(opened, [ids], [kind], 0, 256) for ids, kind in zip(IDS, types, strict=True)])
    assert values(opened, model) == pytest.approx(alone, abs=2e-6)


@pytest.mark.parametrize("runtime", ["openvino", "torch"])
def test_a_value_has_the_same_bits_in_any_company(folders: dict[str, Path], runtime: str) -> None:
    opened = open_runtime(folders["bert"], "classifier", Choice(runtime))
    alone = [run(opened, [ids], [kind], 0, 256)[0] for ids, kind in zip(IDS, TYPES, strict=True)]
    assert values(opened, "bert").tolist() == [float(value) for value in alone]


def test_openvino_leaves_the_process_on_all_its_cores(folders: dict[str, Path]) -> None:
    before = os.sched_getaffinity(0)
    values(open_runtime(folders["mean"], "mean", Choice("openvino")), "mean")
    assert os.sched_getaffinity(0) == before


def test_openvino_tells_nobody_that_it_was_imported(folders: dict[str, Path]) -> None:
    import sys

    open_runtime(folders["mean"], "mean", Choice("openvino"))
    assert sys.modules["openvino_telemetry"] is None


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice("fastest"), "auto, openvino, onnx, torch"),
        (Choice("onnx", "bfloat16"), r"'bfloat16', it computes in float32: set dtype to 'auto'"),
        (Choice("onnx", device="cuda"), "on a CPU only"),
        (Choice("openvino", device="cuda"), "on a CPU only"),
    ],
)
def test_what_is_not_there_is_refused_with_the_way_out(folders: dict[str, Path], choice: Choice, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted):
        open_runtime(folders["mean"], "mean", choice)


def test_cuda_that_is_not_there_is_refused(folders: dict[str, Path]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ConfigError, match="sees no CUDA device"):
        open_runtime(folders["mean"], "mean", Choice(device="cuda"))


def test_auto_takes_openvino_on_a_cpu_and_says_so(folders: dict[str, Path]) -> None:
    wanted = "openvino-bfloat16" if bfloat16_cpu() else "openvino-float32"
    assert open_runtime(folders["mean"], "mean").name == wanted


@pytest.mark.slow
def test_a_model_that_is_not_bert_is_run_by_transformers_and_says_so(tmp_path: Path) -> None:
    import transformers

    config = transformers.DistilBertConfig(vocab_size=len(WORDS), dim=32, n_layers=1, n_heads=4, hidden_dim=64)
    transformers.DistilBertModel(config).save_pretrained(tmp_path)
    assert open_runtime(tmp_path, "mean").name == "transformers-float32"
    with pytest.raises(ConfigError, match=r"'distilbert': set the runtime to 'auto' or 'torch'"):
        open_runtime(tmp_path, "mean", Choice("openvino"))


def test_weights_in_bfloat16_and_with_old_names_are_read(tmp_path: Path, folders: dict[str, Path]) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = bert(tmp_path, "BertModel")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in old.items()}, folder / "model.safetensors")
    read, full = bert_weights(folder, "mean"), bert_weights(folders["mean"], "mean")
    assert read is not None
    assert full is not None
    name = "encoder.layer.1.output.dense.weight"
    rounded = torch.from_numpy(full.tensors[name].copy()).to(torch.bfloat16).float().numpy()
    assert (read.tensors[name] == rounded).all()


def test_a_model_whose_activation_is_another_is_left_to_transformers(tmp_path: Path) -> None:
    folder = bert(tmp_path, "BertModel")
    config = json.loads((folder / "config.json").read_text()) | {"hidden_act": "relu"}
    (folder / "config.json").write_text(json.dumps(config))
    assert bert_weights(folder, "mean") is None


@pytest.mark.parametrize("left_out", ["layer_norm_eps", "num_attention_heads", "pad_token_id"])
def test_a_config_that_leaves_a_number_to_defaults_is_left_to_transformers(tmp_path: Path, left_out: str) -> None:
    folder = roberta(tmp_path)
    assert bert_weights(folder, "classifier") is not None
    config = json.loads((folder / "config.json").read_text())
    del config[left_out]
    (folder / "config.json").write_text(json.dumps(config))
    assert bert_weights(folder, "classifier") is None


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_sequence_as_long_as_the_model_has_places_is_read(folders: dict[str, Path], runtime: str) -> None:
    opened = open_runtime(folders["roberta"], "classifier", Choice(runtime, "float32"))
    ids = RNG.integers(4, len(WORDS), 63).tolist()  # 63 places, and padding to 64
    assert np.isfinite(run(opened, [ids], [[0] * 63], 0, 256)).all()


def test_packing_leaves_the_padding_out() -> None:
    from retrieval.batching import token_batch

    tokens = packed(token_batch([[5, 6, 7], [8, 9]], [[0, 0, 1], [0, 1]]))
    assert tokens.ids.tolist() == [5, 6, 7, 8, 9]
    assert tokens.places.tolist() == [0, 1, 2, 0, 1]
    assert tokens.starts.tolist() == [0, 3, 5]
    assert tokens.seconds.tolist() == [2, 1]


def test_float32_on_cuda_goes_without_the_kernel_that_refuses_it() -> None:
    assert [one_kernel(*asked) for asked in (("cuda", "bfloat16"), ("cuda", "float32"), ("cpu", "bfloat16"))] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime_keeps_no_second_copy_of_the_layers(folders: dict[str, Path], runtime: str) -> None:
    weights = bert_weights(folders["bert"], "classifier")
    assert weights is not None
    layer = weakref.ref(weights.tensors["encoder.layer.0.output.dense.weight"])
    opened = RUNTIMES[runtime].make(weights, "cpu", "float32", 1)
    del weights
    gc.collect()
    assert layer() is None
    assert np.isfinite(values(opened, "bert")).all()


@pytest.mark.gpu
@pytest.mark.slow
def test_cuda_gives_the_values_of_transformers(folders: dict[str, Path], oracle: dict[str, np.ndarray]) -> None:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    opened = open_runtime(folders["mean"], "mean", Choice(device="cuda"))
    for _ in range(2):  # recorded, then replayed
        assert (values(opened, "mean") * oracle["mean"]).sum(1).min() > 0.999
    full = open_runtime(folders["mean"], "mean", Choice("torch", "float32", "cuda"))
    assert values(full, "mean") == pytest.approx(oracle["mean"], abs=1e-5)
