"""Whose model it is, read off an id: who must not judge whom."""

import pytest

from domain.judging import NO_MODEL, families, kin


@pytest.mark.parametrize(
    ("model_id", "family"),
    [
        ("eu.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic"),
        ("amazon.nova-lite-v1:0", "amazon"),
        ("us.meta.llama3-3-70b-instruct-v1:0", "meta"),
        ("mistral.mistral-large-2407-v1:0", "mistral"),
        ("mistralai/mixtral-8x7b-instruct", "mistral"),
        ("cohere.command-r-plus-v1:0", "cohere"),
        ("openai/gpt-4o-mini", "openai"),
        ("gpt-oss:20b", "openai"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("qwen3:8b", "qwen"),
        ("google/gemma-2-9b-it", "google"),
    ],
)
def test_a_family_is_read_off_the_id(model_id: str, family: str) -> None:
    assert families(model_id) == {family}


def test_a_model_distilled_into_another_is_of_both_families() -> None:
    assert families("deepseek-r1-distill-llama-70b") == {"deepseek", "meta"}


@pytest.mark.parametrize(
    "model_id", ["", "my-finetune", "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/ab12cd34"]
)
def test_an_id_that_does_not_tell_is_of_no_family(model_id: str) -> None:
    assert families(model_id) == frozenset()


def test_models_that_share_a_family_are_kin_and_rules_are_nobodys() -> None:
    assert kin(families("deepseek-r1-distill-llama-70b"), families("meta-llama/llama-3-8b")) == {"meta"}
    assert not kin(families("amazon.nova-pro-v1:0"), families("eu.anthropic.claude-3-haiku-20240307-v1:0"))
    assert not kin(NO_MODEL, NO_MODEL)
