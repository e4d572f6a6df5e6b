"""The stream's contract: meta, deltas, citations, then exactly one done or error; keep-alives; leaving cancels."""

import asyncio

import pytest

from domain.errors import BadRequest, Throttled, UpstreamInterrupted
from domain.types import StopReason
from serving.schemas import Limits
from tests.fakes import FakeRetriever, ScriptedGenerator
from tests.serving.service import Leaver, SilentGenerator, events, post, service, soon

QUESTION = {"question": "When does the gate open?", "stream": True}
TERMINAL = ("done", "error")


async def test_a_stream_begins_with_meta_and_ends_with_one_done() -> None:
    reply = await post(service(), "/v1/answers", QUESTION)
    names = [name for name, _ in events(reply.text)]
    assert names[0] == "meta"
    assert names[-1] == "done"
    assert sum(name in TERMINAL for name in names) == 1


async def test_the_done_event_is_the_body_of_the_unstreamed_answer() -> None:
    streamed = events((await post(service(), "/v1/answers", QUESTION)).text)[-1][1]
    plain = (await post(service(), "/v1/answers", QUESTION | {"stream": False})).json()
    assert {**streamed, "stage_ms": {}} == {**plain, "stage_ms": {}}


async def test_the_deltas_join_to_the_answer_and_citations_come_once_each_in_order() -> None:
    said = events((await post(service(), "/v1/answers", QUESTION)).text)
    done = said[-1][1]
    assert "".join(payload["text"] for name, payload in said if name == "delta") == done["answer"]
    assert [payload for name, payload in said if name == "citation"] == done["citations"]


async def test_a_stream_has_the_headers_that_keep_proxies_from_holding_it_back() -> None:
    reply = await post(service(), "/v1/answers", QUESTION, X_Request_Id="abc")
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.headers["Cache-Control"] == "no-cache"
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert reply.headers["X-Index-Version"] == "v1"
    assert reply.headers["X-Stage-Ms"].startswith("total=")
    assert reply.headers["X-Request-Id"] == "abc"


async def test_a_failure_before_the_first_text_is_an_ordinary_error_with_its_status() -> None:
    of = service(generator=ScriptedGenerator((), error=Throttled("Slower, please.", "generator", 3)))
    reply = await post(of, "/v1/answers", QUESTION)
    assert (reply.status_code, reply.headers["Retry-After"]) == (429, "3")
    assert reply.json()["error"]["code"] == "throttled"
    lost = await post(service(retriever=FakeRetriever(error=Throttled("Slower."))), "/v1/answers", QUESTION)
    assert lost.status_code == 429


async def test_a_failure_after_the_first_text_is_one_error_event_with_what_was_shown() -> None:
    broken = ScriptedGenerator(("The gate opens ",), error=UpstreamInterrupted("It broke off.", "generator"))
    said = events((await post(service(generator=broken), "/v1/answers", QUESTION)).text)
    names = [name for name, _ in said]
    assert sum(name in TERMINAL for name in names) == 1
    name, payload = said[-1]
    assert (name, payload["error"]["code"]) == ("error", "upstream_interrupted")
    assert payload["partial"] == "".join(p["text"] for n, p in said if n == "delta")


async def test_a_bug_in_the_middle_of_a_stream_is_one_error_event_too() -> None:
    class Buggy:
        async def generate(self, plan: object):
            from domain.types import Delta

            yield Delta("The gate opens at high water, as every sailor in the harbour knows. ")
            raise KeyError("secret detail")

    reply = await post(service(generator=Buggy()), "/v1/answers", QUESTION)
    said = events(reply.text)
    assert [name for name, _ in said if name in TERMINAL] == ["error"]
    assert said[-1][1]["error"]["code"] == "internal"
    assert "secret detail" not in reply.text


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_before_the_first_text_names_the_input_that_is_to_blame(stream: bool) -> None:
    retriever = FakeRetriever(error=BadRequest("The question finds nothing to hold on to: name a thing.", "question"))
    reply = await post(service(retriever=retriever), "/v1/answers", QUESTION | {"stream": stream})
    assert (reply.status_code, reply.json()["error"]["field"]) == (400, "question")


async def test_a_truncated_answer_is_done_and_says_so() -> None:
    cut = ScriptedGenerator(("The gate opens [S",), stop=StopReason.LENGTH)
    name, payload = events((await post(service(generator=cut), "/v1/answers", QUESTION)).text)[-1]
    assert (name, payload["status"]) == ("done", "truncated")


async def test_a_silent_model_is_bridged_by_keep_alive_comments() -> None:
    generator, reader = SilentGenerator(), Leaver()
    of = service(generator=generator, limits=Limits(keep_alive_s=0.02))
    asking = asyncio.create_task(reader.ask(of, "/v1/answers", QUESTION))
    assert await soon(lambda: reader.text.count(": still working\n\n") >= 2)
    assert reader.text.startswith("event: meta")
    reader.leave()
    await asking
    assert generator.closed.is_set()


async def test_a_client_that_leaves_after_the_first_event_cancels_the_model_even_while_it_is_silent() -> None:
    pieces = ("The gate opens at high water, as every sailor in the harbour knows. ",)
    tasks_before = len(asyncio.all_tasks())
    for _ in range(20):
        generator, leaver = SilentGenerator(pieces), Leaver()
        asking = asyncio.create_task(leaver.ask(service(generator=generator), "/v1/answers", QUESTION))
        assert await soon(lambda leaver=leaver: "event: delta" in leaver.text)
        leaver.leave()
        assert await soon(generator.closed.is_set)
        await asking
        assert not [name for name, _ in events(leaver.text) if name in TERMINAL]
    assert len(asyncio.all_tasks()) == tasks_before
