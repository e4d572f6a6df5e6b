"""What every Generator promises."""

from collections.abc import AsyncIterator

import pytest

from domain.ports import Generator
from domain.prompt import SYSTEM, PromptPlan
from domain.types import Delta, Draft, Usage
from generation.bedrock import BedrockGenerator
from generation.extractive import ExtractiveGenerator
from generation.openai_compatible import OpenAICompatibleGenerator
from generation.ungrounded import UngroundedGenerator
from tests.bedrock_stub import BedrockStub, Reply
from tests.generation.evidence import assistant, evidence, user
from tests.stubs.openai import OpenAIStub

PLANS = [
    PromptPlan(SYSTEM, evidence("Pump P3 needs ISO 46 oil.", title="Pumps"), (), "What oil does pump P3 need?"),
    PromptPlan(SYSTEM, evidence("Pump P3 needs ISO 46 oil."), (user("P3?"), assistant("Yes.")), "and its oil?"),
    PromptPlan(SYSTEM, (), (), "What oil does pump P3 need?"),
    PromptPlan(SYSTEM, evidence(" ", "```\nx = m[S1]\n```", "| a | b |\n|---|---|"), (), "???"),
    PromptPlan(SYSTEM, evidence("更换冷却液之前请先关闭主阀门。", "الصمام الرئيسي مغلق۔"), (), "主阀门什么时候关闭？"),
]


@pytest.fixture(params=["extractive", "ungrounded", "bedrock", "openai_compatible"])
async def generator(request: pytest.FixtureRequest) -> AsyncIterator[Generator]:
    if request.param == "extractive":
        yield ExtractiveGenerator()
    elif request.param == "ungrounded":
        yield UngroundedGenerator()
    elif request.param == "openai_compatible":
        with OpenAIStub([Reply(("ISO 46 ", "[S1]."))]) as server:
            async with server.client() as http:
                yield OpenAICompatibleGenerator(http, "qwen3:8b")
    else:
        with BedrockStub([Reply(("ISO 46 ", "[S1]."))]) as stub, stub.client() as client:
            yield BedrockGenerator(client, "anthropic.claude-sonnet-4-5-20250929-v1:0")


@pytest.mark.parametrize("plan", PLANS, ids=["plain", "follow-up", "no evidence", "oddities", "other scripts"])
async def test_deltas_come_first_and_one_draft_ends_with_their_join(generator: Generator, plan: PromptPlan) -> None:
    *deltas, draft = [piece async for piece in generator.generate(plan)]
    assert isinstance(draft, Draft)
    assert all(isinstance(piece, Delta) and piece.text for piece in deltas)
    assert draft.text == "".join(piece.text for piece in deltas if isinstance(piece, Delta))


@pytest.mark.parametrize("plan", PLANS[:2], ids=["plain", "follow-up"])
async def test_equal_plans_give_equal_drafts(generator: Generator, plan: PromptPlan) -> None:
    first = [piece async for piece in generator.generate(plan)]
    assert first == [piece async for piece in generator.generate(plan)]


@pytest.mark.parametrize("offline", [ExtractiveGenerator(), UngroundedGenerator()])
async def test_a_generator_without_a_model_uses_no_tokens(offline: Generator) -> None:
    *_, draft = [piece async for piece in offline.generate(PLANS[0])]
    assert isinstance(draft, Draft)
    assert draft.usage == Usage()


async def test_closing_early_is_quiet(generator: Generator) -> None:
    pieces = generator.generate(PLANS[0])
    await anext(pieces)
    await pieces.aclose()
