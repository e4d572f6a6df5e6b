"""Chat completions with OpenAI's own client, over real HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from domain.errors import UpstreamInterrupted
from domain.naming import Naming
from domain.types import Role, Scope, StopReason, Turn, Usage
from serving.auth import OpenTo
from serving.keyring import KeyRing, encoded_keys, new_key
from serving.service import Service
from tests.fakes import FakeRewriter, ScriptedGenerator
from tests.serving.service import Served, post, service

ASKED: list[Any] = [{"role": "user", "content": "When does the gate open?"}]
ANSWER = "The gate opens at high water [S1]."


@asynccontextmanager
async def talking(of: Service, key: str = "none") -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's client of a service on a real port."""
    async with Served(of) as url, openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        yield client


async def test_an_answer_comes_with_its_citations_as_annotations_and_its_tokens() -> None:
    cached = ScriptedGenerator((ANSWER,), usage=Usage(10, 5, cache_read_tokens=80, cache_write_tokens=3))
    async with talking(service(generator=cached)) as client:
        told = await client.chat.completions.create(model="tidegate", messages=ASKED)
    choice = told.choices[0]
    assert (choice.message.content, choice.finish_reason, told.model) == (ANSWER, "stop", "tidegate")
    assert told.system_fingerprint == "v1"
    assert choice.message.annotations is not None
    [annotation] = choice.message.annotations
    cited = annotation.url_citation
    assert (annotation.type, cited.title, cited.url) == ("url_citation", "Tide table", "https://library.example/tides")
    assert ANSWER[cited.start_index : cited.end_index] == "[S1]"
    assert told.usage is not None
    assert told.usage.prompt_tokens_details is not None
    # 10 read anew, 80 from the cache, 3 written to it
    assert (told.usage.prompt_tokens, told.usage.completion_tokens, told.usage.total_tokens) == (93, 5, 98)
    assert told.usage.prompt_tokens_details.cached_tokens == 80


async def test_a_stream_has_the_text_in_pieces_and_citations_on_the_last_delta() -> None:
    async with talking(service()) as client:
        stream = await client.chat.completions.create(
            model="tidegate", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    assert len([delta for delta in deltas if delta.content]) > 1
    assert "".join(delta.content or "" for delta in deltas) == ANSWER
    [annotation] = deltas[-1].annotations  # type: ignore[attr-defined]  # the client types it on whole messages alone
    assert annotation["url_citation"]["chunk_id"] == "tides#0"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 15)


async def test_without_being_asked_a_stream_tells_no_tokens() -> None:
    async with talking(service()) as client:
        stream = await client.chat.completions.create(model="tidegate", messages=ASKED, stream=True)
        assert [chunk.usage async for chunk in stream if chunk.usage] == []


async def test_the_messages_before_the_last_are_the_conversation() -> None:
    rewriter = FakeRewriter(to="the gate at night")
    said: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "When does the gate open?"}]},
        {"role": "assistant", "content": ANSWER, "annotations": [], "refusal": None},
        {"role": "user", "content": "And at night?"},
    ]
    async with talking(service(rewriter=rewriter)) as client:
        await client.chat.completions.create(model="tidegate", messages=said)
    assert rewriter.histories == [(Turn(Role.USER, "When does the gate open?"), Turn(Role.ASSISTANT, ANSWER))]


async def test_a_system_message_is_not_followed_and_the_reply_says_so() -> None:
    generator = ScriptedGenerator((ANSWER,))
    said: list[Any] = [{"role": "system", "content": "Talk like a pirate."}, *ASKED]
    async with talking(service(generator=generator)) as client:
        told = await client.chat.completions.create(model="tidegate", messages=said, temperature=0.2)
    assert "pirate" not in repr(generator.plans)
    notes = told.tidegate["notes"]  # type: ignore[attr-defined]  # ours, which their client passes on
    assert any("temperature" in note for note in notes)
    assert any("system and developer messages" in note for note in notes)


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"extra_body": {"made_up": 1}}, "made_up"),
    ],
)
async def test_what_would_change_the_answer_and_is_not_done_is_refused_by_name(extra: Any, named: str) -> None:
    async with talking(service()) as client:
        with pytest.raises(openai.BadRequestError, match=f"'{named}' is not supported here") as caught:
            await client.chat.completions.create(model="tidegate", messages=ASKED, **extra)
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", named)


async def test_what_happens_anyway_may_be_said() -> None:
    async with talking(service()) as client:
        told = await client.chat.completions.create(
            model="tidegate", messages=ASKED, n=1, logprobs=False, response_format={"type": "text"}, user="somebody"
        )
    assert told.choices[0].message.content == ANSWER


async def test_there_is_one_model_and_another_is_not_found() -> None:
    async with talking(service()) as client:
        assert [model.id async for model in await client.models.list()] == ["tidegate"]
        assert (await client.models.retrieve("tidegate")).id == "tidegate"
        for asking in (
            client.chat.completions.create(model="gpt-9", messages=ASKED),
            client.models.retrieve("gpt-9"),
        ):
            with pytest.raises(openai.NotFoundError, match="'gpt-9' does not exist here") as caught:
                await asking
            assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ([], "at least 1"),
        ([{"role": "assistant", "content": "Yes."}], "the question must be the user.s"),
        ([{"role": "user", "content": " \u200b"}], "nothing but blanks"),
        ([{"role": "tool", "content": "x", "tool_call_id": "1"}, *ASKED], "'system', 'developer', 'user'"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "'text'"),
    ],
)
async def test_messages_that_cannot_be_answered_are_refused(messages: Any, wanted: str) -> None:
    async with talking(service()) as client:
        with pytest.raises(openai.BadRequestError, match=wanted):
            await client.chat.completions.create(model="tidegate", messages=messages)


async def test_a_question_beyond_the_limit_is_too_long() -> None:
    async with talking(service()) as client:
        with pytest.raises(openai.APIStatusError, match="at most 500") as caught:
            await client.chat.completions.create(model="tidegate", messages=[{"role": "user", "content": "a" * 501}])
    assert caught.value.status_code == 413


async def test_a_key_is_shown_as_their_client_shows_it_and_only_its_scope_asks(tmp_path: Path) -> None:
    reader = Scope("harbour", frozenset({"public"}))
    made = {right: new_key(right, reader, (right,), "") for right in ("ask", "search")}  # type: ignore[arg-type]
    path = tmp_path / "keys.json"
    path.write_bytes(encoded_keys(tuple(key for key, _ in made.values())))
    of = service(authenticate=KeyRing(path))
    async with talking(of, made["ask"][1]) as client:
        assert (await client.chat.completions.create(model="tidegate", messages=ASKED)).choices
    async with talking(of, made["search"][1]) as client:
        with pytest.raises(openai.PermissionDeniedError, match="needs scope ask"):
            await client.chat.completions.create(model="tidegate", messages=ASKED)
    async with talking(of, "tg_000000000000_wrong") as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.models.list()
    assert caught.value.type == "authentication_error"


async def test_a_reader_of_nothing_is_answered_without_sources() -> None:
    async with talking(service(authenticate=OpenTo(Scope("harbour", frozenset({"nobody"}))))) as client:
        told = await client.chat.completions.create(model="tidegate", messages=ASKED)
    assert told.choices[0].message.annotations == []
    assert told.tidegate["status"] == "no_sources"  # type: ignore[attr-defined]


async def test_a_failure_is_their_error_before_a_stream_and_in_the_middle_of_one() -> None:
    broken = UpstreamInterrupted("The generator died.", "generator")
    silent, speaking = ScriptedGenerator((), error=broken), ScriptedGenerator(("The gate opens. ", "It"), error=broken)
    async with talking(service(generator=silent)) as client:
        for stream in (False, True):
            with pytest.raises(openai.InternalServerError, match="generator died"):
                await client.chat.completions.create(model="tidegate", messages=ASKED, stream=stream)
    async with talking(service(generator=speaking)) as client:
        seen = await client.chat.completions.create(model="tidegate", messages=ASKED, stream=True)
        shown: list[str] = []
        with pytest.raises(openai.APIError, match="generator died"):
            shown.extend([chunk.choices[0].delta.content or "" async for chunk in seen])


@pytest.mark.parametrize(("stop", "told"), [(StopReason.LENGTH, "length"), (StopReason.FILTERED, "content_filter")])
async def test_an_answer_that_is_not_whole_says_why(stop: StopReason, told: str) -> None:
    async with talking(service(generator=ScriptedGenerator((ANSWER,), stop=stop))) as client:
        reply = await client.chat.completions.create(model="tidegate", messages=ASKED)
    assert reply.choices[0].finish_reason == told


async def test_tokens_that_nobody_counted_are_not_zero() -> None:
    uncounted = ScriptedGenerator((ANSWER,), usage=Usage(measured=False))
    reply = await post(service(generator=uncounted), "/v1/chat/completions", {"model": "tidegate", "messages": ASKED})
    assert reply.json()["usage"] is None


async def test_a_marker_in_code_is_no_citation_and_two_of_one_source_are_two() -> None:
    text = "At high water [S1]. Write `[S1]` for it [S1]."
    async with talking(service(generator=ScriptedGenerator((text,)))) as client:
        told = await client.chat.completions.create(model="tidegate", messages=ASKED)
    content, found = told.choices[0].message.content, told.choices[0].message.annotations
    assert content is not None
    assert found is not None
    starts = [one.url_citation.start_index for one in found]
    assert starts == [content.index("[S1]"), content.rindex("[S1]")]


async def test_a_forbidden_term_is_in_no_reply_and_in_no_error() -> None:
    of = service(naming=Naming(("Tide table", "gpt-9")))
    asked = {"model": "tidegate", "messages": ASKED}
    assert "Tide table" not in (await post(of, "/v1/chat/completions", asked)).text
    assert "Tide table" not in (await post(of, "/v1/chat/completions", asked | {"stream": True})).text
    assert "gpt-9" not in (await post(of, "/v1/chat/completions", asked | {"model": "gpt-9"})).text


async def test_a_conversation_stays_with_one_version_while_a_canary_runs() -> None:
    from domain.releases import Rollout
    from tests.serving.service import FakeRegistry

    registry = FakeRegistry(Rollout(stable="v1", canary="v0", share=0.5, revision=2))
    of = service(registry=registry)

    async def version(*messages: Any) -> str:
        reply = await post(of, "/v1/chat/completions", {"model": "tidegate", "messages": list(messages)})
        return reply.headers["x-index-version"]

    later = [{"role": "assistant", "content": ANSWER}, {"role": "user", "content": "And then?"}]
    firsts = [{"role": "user", "content": f"What of gate {number}?"} for number in range(12)]
    alone = [await version(first) for first in firsts]
    assert set(alone) == {"v0", "v1"}
    assert [await version(first, *later) for first in firsts] == alone
