"""Vectors with OpenAI's own client, over real HTTP."""

from base64 import b64decode
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

from domain.errors import StageFailed
from domain.types import Encoded, Scope, TextSide
from serving.compat_bodies import MAX_TEXT_CHARS, MAX_TEXTS
from serving.keyring import KeyRing, encoded_keys, new_key
from serving.service import Service
from tests.fakes import FakeRetriever
from tests.serving.service import post, service
from tests.serving.test_compat_openai import talking

BODY = {"model": "tidegate", "input": ["aaa", "a"]}


def encoding(**changes: Any) -> Service:
    return service(**{"encoder": FakeRetriever(), **changes})


async def test_a_vector_a_text_comes_in_their_order_however_it_is_written() -> None:
    async with talking(encoding()) as client:
        told = await client.embeddings.create(model="tidegate", input=["aaa", "a"], encoding_format="float")
        packed = await client.embeddings.create(model="tidegate", input=["aaa", "a"], encoding_format="base64")
        plain = await client.embeddings.create(model="tidegate", input=["aaa", "a"])  # their client asks for base64
    assert [one.index for one in told.data] == [0, 1]
    # the fake's rows are (length, 1) scaled to length one
    wanted = [[3 / hypot(3, 1), 1 / hypot(3, 1)], [1 / hypot(1, 1), 1 / hypot(1, 1)]]
    for reply in (told, plain):
        assert [one.embedding for one in reply.data] == [pytest.approx(row, abs=1e-6) for row in wanted]
    assert isinstance(packed.data[0].embedding, str)
    assert np.frombuffer(b64decode(packed.data[0].embedding), "<f4").tolist() == told.data[0].embedding
    assert told.tidegate == {"encoder": "fake", "index_version": "v1"}  # type: ignore[attr-defined]  # ours


async def test_one_text_may_come_alone_and_a_query_is_encoded_as_one() -> None:
    async with talking(encoding()) as client:
        document = await client.embeddings.create(model="tidegate", input="aaa")
        query = await client.embeddings.create(model="tidegate", input="aaa", extra_body={"input_type": "query"})
    assert query.data[0].embedding == document.data[0].embedding[::-1]


async def test_tokens_are_told_where_they_were_counted_and_are_no_zero_elsewhere() -> None:
    class Counting(FakeRetriever):
        async def encode(self, texts: Any, version: str, side: TextSide) -> Encoded:
            return Encoded((b"\0\0\x80?",) * len(texts), 1, "counting", version, 7)

    async with talking(encoding(encoder=Counting())) as client:
        told = await client.embeddings.create(**BODY)  # type: ignore[arg-type]
    assert (told.usage.prompt_tokens, told.usage.total_tokens) == (7, 7)
    assert (await post(encoding(), "/v1/embeddings", BODY)).json()["usage"]["prompt_tokens"] is None


@pytest.mark.parametrize(
    ("changes", "status", "wanted"),
    [
        ({"input": []}, 400, "'input' is empty"),
        ({"input": ["a", " "]}, 400, "nothing but blanks"),
        ({"input": [1, 2, 3]}, 400, "token numbers"),
        ({"input": [[1, 2], [3]]}, 400, "token numbers"),
        ({"input": ["a"] * (MAX_TEXTS + 1)}, 413, f"at most {MAX_TEXTS}"),
        ({"input": "a" * (MAX_TEXT_CHARS + 1)}, 413, f"at most {MAX_TEXT_CHARS:,}"),
        ({"dimensions": 3}, 400, "the encoder here has 2"),
        ({"model": "text-embedding-9"}, 404, "does not exist here"),
        ({"encoding_format": "int8"}, 400, "'float' or 'base64'"),
        ({"made_up": 1}, 400, "'made_up' is not supported"),
    ],
)
async def test_what_cannot_be_done_is_refused_in_their_shape(changes: Any, status: int, wanted: str) -> None:
    reply = await post(encoding(), "/v1/embeddings", BODY | changes)
    assert reply.status_code == status
    assert wanted in reply.json()["error"]["message"]


async def test_the_dimensions_that_there_are_may_be_named() -> None:
    assert (await post(encoding(), "/v1/embeddings", BODY | {"dimensions": 2})).status_code == 200


async def test_without_an_encoder_there_are_no_vectors_and_a_failed_one_is_a_failure() -> None:
    async with talking(service()) as client:
        with pytest.raises(openai.BadRequestError, match="gives no vectors"):
            await client.embeddings.create(**BODY)  # type: ignore[arg-type]
    broken = FakeRetriever(error=StageFailed("The retriever died twice.", "retriever"))
    async with talking(encoding(encoder=broken)) as client:
        with pytest.raises(openai.InternalServerError, match="died twice"):
            await client.embeddings.create(**BODY)  # type: ignore[arg-type]


async def test_a_key_needs_the_scope_to_search(tmp_path: Path) -> None:
    reader, path = Scope("harbour", frozenset({"public"})), tmp_path / "keys.json"
    (search, told), (ask, other) = new_key("s", reader, ("search",), ""), new_key("a", reader, ("ask",), "")
    path.write_bytes(encoded_keys((search, ask)))
    of = encoding(authenticate=KeyRing(path))
    async with talking(of, told) as client:
        assert len((await client.embeddings.create(**BODY)).data) == 2  # type: ignore[arg-type]
    async with talking(of, other) as client:
        with pytest.raises(openai.PermissionDeniedError, match="needs scope search"):
            await client.embeddings.create(**BODY)  # type: ignore[arg-type]
