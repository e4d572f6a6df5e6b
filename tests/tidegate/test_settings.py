"""Settings: bounded, frozen, written out once more in the example file, and named by a digest."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from annotated_types import Ge, Le
from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from eval import gates, metrics
from eval.questions import slices
from retrieval.opening import default_batch_tokens
from tests.eval.replies import QUESTION
from tidegate import settings_release as declared
from tidegate.effective import MASK, NOT_SERVED, digest, leaves, shown
from tidegate.keys import wanted
from tidegate.loading import load
from tidegate.section import Section
from tidegate.settings import Chunking, Settings, Stage, StageSizes
from tidegate.settings_rerank import BATCH_TOKENS, Rerank

EXAMPLE = Path(__file__).parents[2] / "examples" / "tidegate.yaml"


def fields(section: type[BaseModel] = Settings, under: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for key, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, f"{under}{key}.")
        else:
            yield f"{under}{key}", field


def flat(tree: Mapping[str, object], under: str = "") -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{under}{key}.")
        else:
            yield f"{under}{key}"


@pytest.mark.parametrize(("key", "field"), list(fields()))
def test_a_setting_says_what_it_is_and_what_absence_means(key: str, field: FieldInfo) -> None:
    assert field.description
    if field.default is None:
        assert "Absent:" in field.description


@pytest.mark.parametrize(("key", "field"), [(k, f) for k, f in fields() if f.annotation in (int, float)])
def test_a_number_has_a_lower_and_an_upper_bound(key: str, field: FieldInfo) -> None:
    assert any(isinstance(note, Ge) for note in field.metadata)
    assert any(isinstance(note, Le) for note in field.metadata)


@pytest.mark.parametrize(("key", "field"), list(fields()))
def test_what_is_wanted_can_be_said_for_every_setting(key: str, field: FieldInfo) -> None:
    assert len(wanted(field)) > 5


def test_the_example_file_has_every_key_and_every_default() -> None:
    tree = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    assert list(flat(tree)) == [key for key, _ in leaves(Settings())]
    assert Settings.model_validate(tree) == Settings()


def test_the_example_file_loads_as_it_stands() -> None:
    loaded = load(EXAMPLE, {}, {})
    assert digest(loaded.settings) == digest(Settings())
    assert "default" not in loaded.origins.values()


def test_settings_cannot_be_changed_and_cross_processes_unchanged() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().retrieval.k1 = 2.0
    assert pickle.loads(pickle.dumps(Settings())) == Settings()


def test_the_default_deployments_fit_on_two_cores_at_their_maximum() -> None:
    sizes = StageSizes()
    stages = [getattr(sizes, name) for name in StageSizes.model_fields]
    assert sum(s.max_replicas * s.num_cpus for s in stages) <= 1.8  # 4*.05 + 2*.05 + 4*.2 + 2*.2 + 4*.05 = 1.7
    assert sizes.gateway.min_replicas >= 2


def test_a_stage_written_in_part_is_refused_rather_than_filled_from_another_stage() -> None:
    with pytest.raises(ValidationError, match="max_replicas"):
        Stage.model_validate({"min_replicas": 3})


def test_an_overlap_as_long_as_the_passage_is_refused() -> None:
    with pytest.raises(ValidationError, match="never advance"):
        Chunking(tokens=100, overlap=100)
    assert Chunking(tokens=100, overlap=99).overlap == 99


def test_requests_that_can_never_fill_a_batch_are_refused_with_the_numbers() -> None:
    # 32768 tokens hold 163 passages of 200 tokens; 32 requests bring 160 passages, 33 would bring 165.
    few = Rerank(batch_tokens=32_768, depth=5).too_few(requests=32, passage_tokens=200)
    assert few.startswith("at least 33: a batch of 32768 tokens (rerank.batch_tokens) holds 163 passages of 200")
    assert Rerank(batch_tokens=32_768, depth=5).too_few(requests=33, passage_tokens=200) == ""
    assert Rerank().too_few(requests=1, passage_tokens=200) == ""


def test_the_batches_named_here_are_those_of_the_engine() -> None:
    assert {device: default_batch_tokens(device) for device in BATCH_TOKENS} == BATCH_TOKENS


def test_the_metrics_dimensions_and_gates_named_here_are_the_ones_that_are_measured() -> None:
    assert set(declared.RANKED) == set(metrics.RANKED)
    assert set(declared.PLAIN) == set(metrics.PLAIN)
    assert tuple(slices(QUESTION)) == declared.DIMENSIONS
    assert gates.gates([line.model_dump() for line in declared.DEFAULT_GATES])


# ---------------------------------------------------------------------------------------------- digest


def test_the_digest_moves_with_what_is_served_and_stays_with_where_it_runs() -> None:
    base = digest(load(None, {}, {}).settings)
    for key, value in {
        "serving.port": "9000",
        "serving.host": "0.0.0.0",
        "data_dir": "elsewhere",
        "serving.stages.gateway.max_replicas": "9",
        "embedding.threads": "2",
        "rerank.device": "cuda",
        "rerank.threads": "2",
        "rerank.batch_tokens": "4096",
        "sample.seed": "8",
        "chunking.tokens": "120",
        "access.default_groups": "staff",
    }.items():
        assert digest(load(None, {}, {key: value}).settings) == base, key
    for key, value in {
        "rerank.backend": "none",
        "rerank.within_ms": "500",
        "rerank.share": "0.4",
        "answering.k": "7",
        "retrieval.k1": "0.91",
        "serving.rerank_s": "1",
        "access.mode": "header",
        "generation.temperature": "0.5",
    }.items():
        assert digest(load(None, {}, {key: value}).settings) != base, key


def test_everything_left_out_of_the_digest_exists() -> None:
    keys = [key for key, _ in leaves(Settings())]
    assert all(any(key == left or key.startswith(f"{left}.") for key in keys) for left in NOT_SERVED)


def test_a_whole_number_and_its_float_give_the_same_digest() -> None:
    one = load(None, {}, {"retrieval.k1": "1"}).settings
    assert digest(one) == digest(load(None, {}, {"retrieval.k1": "1.0"}).settings)


# ---------------------------------------------------------------------------------------------- masking


class WithSecret(Section):
    key: SecretStr
    url: str


def test_secrets_are_neither_shown_nor_hashed() -> None:
    one, two = (WithSecret(key=SecretStr(key), url=f"https://u:{key}@host/x") for key in ("first", "second"))
    assert [shown(key, value) for key, value in leaves(one)] == [MASK, f"https://{MASK}@host/x"]
    assert digest(one) == digest(two)


@pytest.mark.parametrize("key", ["api_key", "aws_secret_access_key", "db.password", "x.auth_token", "token"])
def test_a_key_that_sounds_secret_is_masked_even_if_it_is_not_a_setting(key: str) -> None:
    assert shown(key, "abc") == MASK


@pytest.mark.parametrize("key", [key for key, _ in leaves(Settings())])
def test_no_ordinary_setting_is_masked_by_its_name(key: str) -> None:
    assert shown(key, "abc") == "abc"
