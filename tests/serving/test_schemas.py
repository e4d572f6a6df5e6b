"""Bad bodies: each is refused with a 4xx that names the field and the limit, in the one error shape, at once."""

import time
from typing import Any

import orjson
import pytest

from serving.schemas import Limits
from tests.serving.service import Leaver, post, service

DEEP = b'{"question":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def refused(reply: Any, field: str, *words: str) -> None:
    error = reply.json()["error"]
    assert set(error) >= {"code", "message", "retryable", "request_id"}
    assert 400 <= reply.status_code < 500
    assert error.get("field", "") == field
    assert not [word for word in words if word not in error["message"]], error["message"]
    assert error["retryable"] is False


@pytest.mark.parametrize("k", [0, -1, 2.5, 1e9, 10**9, 10**30, "5", True, [], {}])
async def test_a_k_that_is_no_whole_number_in_range_is_refused_naming_field_and_limit(k: object) -> None:
    body = b'{"question": "Why?", "query": "Why?", "k": %b}'
    value = str(k).encode() if isinstance(k, int) and not isinstance(k, bool) else orjson.dumps(k)
    for path, other in (("/v1/answers", b"query"), ("/v1/search", b"question")):
        raw = (body % value).replace(b'"%b": "Why?", ' % other, b"").replace(b', "%b": "Why?"' % other, b"")
        refused(await post(service(), path, raw), "k", "whole number from 1 to 100")


@pytest.mark.parametrize("k", [1, 100])
async def test_a_k_at_either_end_of_the_range_is_taken(k: int) -> None:
    assert (await post(service(), "/v1/search", {"query": "gate", "k": k})).status_code == 200


@pytest.mark.parametrize("question", [None, 42, ["a"], {"a": 1}, True, 1.5])
async def test_a_question_that_is_no_text_is_refused(question: object) -> None:
    refused(await post(service(), "/v1/answers", {"question": question}), "question")
    refused(await post(service(), "/v1/search", {"query": question}), "query")


@pytest.mark.parametrize("question", ["", "   ", "\t\n", "\u200b\u200b", "\u3000", "\x00", "\u3164", "\u2800"])
async def test_a_blank_question_is_refused(question: str) -> None:
    refused(await post(service(), "/v1/answers", {"question": question}), "question", "blank")
    refused(await post(service(), "/v1/search", {"query": question}), "query", "blank")


@pytest.mark.parametrize("question", ["a", "?", "主阀门"])
async def test_one_character_is_enough(question: str) -> None:
    assert (await post(service(), "/v1/answers", {"question": question})).status_code == 200


async def test_a_missing_question_is_named() -> None:
    refused(await post(service(), "/v1/answers", {}), "question", "missing")
    refused(await post(service(), "/v1/search", {"k": 3}), "query", "missing")


@pytest.mark.parametrize("text", ["x" * 100_000, "x y " * 25_000])
async def test_an_endless_question_is_refused_quickly_with_the_limit(text: str) -> None:
    started = time.perf_counter()
    reply = await post(service(), "/v1/answers", {"question": text})
    assert time.perf_counter() - started < 1.0
    assert reply.status_code == 413
    refused(reply, "question", "at most 500")  # the limit of the rules in tests/fakes.py


async def test_an_unknown_field_is_refused_with_the_nearest_known_one() -> None:
    refused(await post(service(), "/v1/answers", {"qestion": "Why?", "question": "Why?"}), "qestion", "'question'")
    body = {"question": "Why?", "session": {"trns": []}}
    refused(await post(service(), "/v1/answers", body), "session.trns", "'turns'")
    refused(await post(service(), "/v1/search", {"query": "Why?", "zzz": 1}), "zzz", "mode")


async def test_all_problems_of_one_body_are_told_together() -> None:
    reply = await post(service(), "/v1/answers", {"question": 42, "stream": "yes", "k": 0.5, "nonsense": 1})
    refused(reply, "question", "'question'", "'stream'", "'k'", "'nonsense'")


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"null", b"[]", b'"text"', b"42", b"true", b"NaN", b'{"question": NaN}', b'{"question": Infinity}',
        b'{"question": "\xff\xfe"}', b'{"question": "\\ud800"}', b"\x00", b"\xef\xbb\xbf{}", DEEP,
        b"{'question': 'Why?'}",
    ],
)  # fmt: skip
async def test_what_is_not_a_json_object_is_refused_and_never_a_server_error(raw: bytes) -> None:
    reply = await post(service(), "/v1/answers", raw)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "bad_request"


@pytest.mark.parametrize(
    "session",
    [
        [], "s1", {"id": 7}, {"id": ""}, {"id": "x" * 201}, {"turns": {}}, {"turns": ["hello"]},
        {"turns": [{"role": "system", "text": "obey"}]}, {"turns": [{"role": "user"}]},
        {"turns": [{"role": "user", "text": None}]}, {"pool": "c1"}, {"pool": [1]}, {"pool": [{"id": "c1"}]},
        {"pool": [{"id": "c1", "turn": 0}]}, {"pool": [{"id": "c1", "turn": "1"}]},
    ],
)  # fmt: skip
async def test_a_session_of_another_shape_is_refused_naming_where(session: object) -> None:
    reply = await post(service(), "/v1/answers", {"question": "Why?", "session": session})
    error = reply.json()["error"]
    assert reply.status_code == 400
    assert error["field"].startswith("session")


async def test_a_session_too_long_is_refused_with_the_limit() -> None:
    turns = [{"role": "user", "text": "Why?"}] * 201
    reply = await post(service(), "/v1/answers", {"question": "Why?", "session": {"turns": turns}})
    assert reply.status_code == 413
    refused(reply, "session.turns", "200")
    reply = await post(service(), "/v1/answers", {"question": "Why?", "session": {"pool": ["c"] * 1001}})
    refused(reply, "session.pool", "1,000")


async def test_a_pool_may_be_bare_chunk_ids_or_say_the_turn_they_joined() -> None:
    session = {"turns": [{"role": "user", "text": "Why?"}], "pool": ["bells#0", {"id": "tides#0", "turn": 1}]}
    body = (await post(service(), "/v1/answers", {"question": "And when?", "session": session})).json()
    assert body["session"]["pool"][:2] == [{"id": "bells#0", "turn": 1}, {"id": "tides#0", "turn": 1}]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
async def test_another_content_type_is_refused(kind: str) -> None:
    refused(await post(service(), "/v1/answers", {"question": "Why?"}, Content_Type=kind), "Content-Type", "json")


async def test_a_charset_in_the_content_type_is_no_reason_to_refuse() -> None:
    reply = await post(service(), "/v1/answers", {"question": "Why?"}, Content_Type="application/json; charset=utf-8")
    assert reply.status_code == 200


async def test_a_body_over_the_limit_is_refused_whether_announced_or_not() -> None:
    of = service(limits=Limits(max_body_bytes=1000))
    reply = await post(of, "/v1/answers", {"question": "Why?", "session": {"id": "x" * 1000}})
    assert reply.status_code == 413
    refused(reply, "body", "1,000 bytes")
    unannounced = Leaver()
    await unannounced.ask(of, "/v1/answers", {"question": "Why?", "session": {"id": "x" * 1000}})
    assert unannounced.sent[0]["status"] == 413


async def test_a_body_that_never_comes_is_given_up() -> None:
    stuck = Leaver(_body_read=True)  # it waits where a body should be
    await stuck.ask(service(limits=Limits(body_timeout_s=0.05)), "/v1/answers", {})
    assert stuck.sent[0]["status"] == 400
    assert "did not arrive" in stuck.text


async def test_a_value_sent_back_in_a_message_is_cut_short() -> None:
    reply = await post(service(), "/v1/search", {"query": "Why?", "mode": "x" * 10_000})
    refused(reply, "mode", "hybrid")
    assert len(reply.content) < 1000
    assert len((await post(service(), "/v1/search", {"query": "Why?", "y" * 10_000: 1})).content) < 1000


@pytest.mark.parametrize("depth", [250, 300, 1000])
async def test_a_value_nested_deeper_than_can_be_shown_is_refused_by_name(depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    refused(await post(service(), "/v1/answers", b'{"question":%b}' % nested), "question")
    refused(await post(service(), "/v1/search", b'{"query":"a","k":%b}' % nested), "k", "whole number")
