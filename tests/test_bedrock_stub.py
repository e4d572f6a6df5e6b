"""The stub is a Bedrock as far as boto3 can tell, counts tokens as a vendor does, and can be driven by hand."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from tests.bedrock_stub import BedrockStub, Faults, Passage, PromptCache, Reply
from tests.stubs.prompt_cache import Counted, tokens

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
LONG = "rule " * 2000
POINT = {"cachePoint": {"type": "default"}}


def asked(system: str = "Answer.", question: str = "Why?") -> dict[str, object]:
    messages = [{"role": "user", "content": [{"text": question}]}]
    return {"modelId": MODEL, "system": [{"text": system}, POINT], "messages": messages}


def test_a_prefix_is_written_once_then_read_until_nobody_has_used_it_for_its_time() -> None:
    now = 0.0
    cache = PromptCache(minimum=3, ttl_s=300, clock=lambda: now)
    blocks = ["one two three four", None, "why"]
    assert cache.count("m", blocks) == Counted(1, 0, 4)
    now = 299.0
    assert cache.count("m", blocks) == Counted(1, 4, 0)
    now = 598.0  # 299 after its last use
    assert cache.count("m", blocks) == Counted(1, 4, 0)
    now = 899.0  # 301 after its last use
    assert cache.count("m", blocks) == Counted(1, 0, 4)


def test_a_short_prefix_silently_does_not_cache_and_models_share_nothing() -> None:
    cache = PromptCache(minimum=5)
    assert [cache.count("m", ["one two three four", None, "why"]) for _ in range(2)] == [Counted(5, 0, 0)] * 2
    cache = PromptCache(minimum=3)
    assert [cache.count(m, ["one two three four", None]).read for m in ("a", "b", "a")] == [0, 0, 4]


def test_token_classes_are_told_as_bedrock_tells_them_and_add_up() -> None:
    with BedrockStub([Reply(("Be", "cause."), usage=None)]) as stub, stub.client() as client:
        first, second = (client.converse(**asked(LONG, "Why is it so?"))["usage"] for _ in range(2))
    told = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    assert [first[name] for name in told] == [5, 0, 2000]
    assert [second[name] for name in told] == [5, 2000, 0]
    for usage in (first, second):
        assert usage["totalTokens"] == sum(usage[name] for name in told) + usage["outputTokens"]
    # 10 input at 3, 2,000 written at 3.75, 2,000 read at .3, 2 x 3 written by the model at 15, per million
    assert stub.bill()[MODEL]["usd"] == pytest.approx((10 * 3 + 2000 * 3.75 + 2000 * 0.3 + 6 * 15) / 1e6)


def test_the_stream_says_what_the_whole_reply_says() -> None:
    with BedrockStub([Reply(("It is ", "so."))]) as stub, stub.client() as client:
        streamed = list(client.converse_stream(**asked())["stream"])
        whole = client.converse(**asked())
    pieces = [event["contentBlockDelta"]["delta"]["text"] for event in streamed if "contentBlockDelta" in event]
    assert "".join(pieces) == whole["output"]["message"]["content"][0]["text"] == "It is so."
    assert [event["messageStop"]["stopReason"] for event in streamed if "messageStop" in event] == ["end_turn"]
    assert streamed[-1]["metadata"]["usage"] == whole["usage"]


def test_without_a_script_it_quotes_the_sources_it_was_sent() -> None:
    sources = "<sources 1>\n[S1] Pumps\nThe limit is 40 bar. More.\n\n[S2] \nIt is red.\n</sources 1>"
    with BedrockStub() as stub, stub.client() as client:
        reply = client.converse(**asked(question=sources))
    assert reply["output"]["message"]["content"][0]["text"] == "The limit is 40 bar [S1]. It is red [S2]."


def test_faults_strike_the_share_that_was_asked_for_and_the_same_requests_again() -> None:
    def codes() -> list[int | None]:
        faults = Faults(throttled=0.2, failed=0.1, cut=0.1)
        struck = [faults.strike(Reply(("a", "b"))) for _ in range(1000)]
        return [reply.refuse[0] if reply.refuse else 0 if reply.breaks else None for reply in struck]

    first = codes()
    assert first == codes()
    # three standard deviations of a binomial of 1,000 draws: 3 * sqrt(1000 * .2 * .8) = 38
    assert first.count(429) == pytest.approx(200, abs=38)
    assert first.count(503) == pytest.approx(100, abs=29)
    assert first.count(0) == pytest.approx(100, abs=29)


def test_a_knowledge_base_finds_what_passes_its_filter() -> None:
    passages = [Passage("the pump", {"groups": ["staff"]}), Passage("the pump is hot", {"groups": ["others"]})]
    with BedrockStub(passages=passages) as stub, stub.client(service="bedrock-agent-runtime") as client:
        search = {"vectorSearchConfiguration": {"filter": {"listContains": {"key": "groups", "value": "staff"}}}}
        found = client.retrieve(
            knowledgeBaseId="ABCDEFGHIJ", retrievalQuery={"text": "pump"}, retrievalConfiguration=search
        )
        assert [result["content"]["text"] for result in found["retrievalResults"]] == ["the pump"]


def test_what_the_service_would_refuse_is_refused() -> None:
    with BedrockStub() as stub, stub.client() as client, pytest.raises(ClientError, match="ValidationException"):
        client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=b'{"inputText": ""}')


def test_by_hand_it_says_its_address_and_what_was_spent() -> None:
    command = [sys.executable, "-m", "tests.bedrock_stub", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as running:
        assert running.stdout
        try:
            url = running.stdout.readline().split()[1]
            with urlopen(f"{url}/bill") as reply:
                assert json.load(reply) == {"requests": 0, "spent": {}}
        finally:
            running.terminate()


def test_a_word_is_a_token_for_every_five_of_its_letters() -> None:
    assert tokens("It is encyclopedic.") == 1 + 1 + 3 + 1
