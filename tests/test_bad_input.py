"""Bad input through the whole service, over a real index: every refusal names its field, and the next question answers.

The command line's share of this is in tests/tidegate: test_ask.py, test_build.py, test_up.py and test_config_cli.py.
"""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from serving.api import create_app
from serving.service import always_ready
from serving.telemetry import Silent
from tests.tidegate.tiny import served, settings
from tidegate.compose import in_process_stages, make_library, make_service

LIMIT = 4000  # answering.max_question_chars


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data folder with three documents built and admitted, and the version."""
    return served(tmp_path_factory.mktemp("library"))


@pytest.fixture
async def http(library: tuple[Path, str]) -> AsyncIterator[httpx2.AsyncClient]:
    """The service as people get it, all stages in this process."""
    ours = settings(library[0])
    retriever = make_library(ours)
    await retriever.refresh()
    app = create_app(make_service(ours, in_process_stages(ours, retriever), always_ready, Silent()))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://tidegate") as client:
        yield client
        reply = await client.post("/v1/answers", json={"question": "Which oil does pump P3 need?"})
        assert reply.status_code == 200  # whatever came before, the process answers
        assert "ISO 46" in reply.json()["answer"]


def error_of(reply: httpx2.Response) -> dict[str, Any]:
    """The one error shape, checked."""
    error: dict[str, Any] = reply.json()["error"]
    assert {"code", "message", "retryable", "request_id"} <= error.keys()
    assert error["message"].endswith((".", "?"))
    return error


PATHS = [("/v1/answers", "question"), ("/v1/search", "query")]


@pytest.mark.parametrize(("path", "field"), PATHS)
@pytest.mark.parametrize(
    ("value", "status", "said"),
    [
        ("", 400, "is blank"),
        ("   ", 400, "is blank"),
        ("\t\n\u200b", 400, "is blank"),
        (None, 400, "is null"),
        (42, 400, "is 42"),
        (["a"], 400, 'is ["a"]'),
        ("x" * 100_000, 413, "at most 4,000 are read"),
        ("x y " * 25_000, 413, "at most 4,000 are read"),
    ],
)
async def test_a_question_that_is_none_is_refused_by_field(
    http: httpx2.AsyncClient, path: str, field: str, value: object, status: int, said: str
) -> None:
    reply = await http.post(path, json={field: value})
    error = error_of(reply)
    assert (reply.status_code, error["field"]) == (status, field)
    assert said in error["message"]
    assert len(error["message"]) < 300


@pytest.mark.parametrize(("path", "field"), PATHS)
async def test_a_missing_question_is_refused_by_field(http: httpx2.AsyncClient, path: str, field: str) -> None:
    reply = await http.post(path, json={})
    assert (reply.status_code, error_of(reply)["field"]) == (400, field)


@pytest.mark.parametrize(("path", "field"), PATHS)
@pytest.mark.parametrize("text", ["a", "the of and", "???", "qqqxxyy", "x" * LIMIT, "port\u00e9 \U0001f6a2"])
async def test_a_strange_question_is_answered_all_the_same(
    http: httpx2.AsyncClient, path: str, field: str, text: str
) -> None:
    reply = await http.post(path, json={field: text})
    assert reply.status_code == 200
    assert "NaN" not in reply.text


@pytest.mark.parametrize(("path", "field"), PATHS)
@pytest.mark.parametrize("k", [0, -1, 2.5, 10**9, "5", True, [3]])
async def test_a_k_that_is_no_count_is_refused_with_its_range(
    http: httpx2.AsyncClient, path: str, field: str, k: object
) -> None:
    began = time.monotonic()
    reply = await http.post(path, json={field: "oil", "k": k})
    error = error_of(reply)
    assert (reply.status_code, error["field"]) == (400, "k")
    assert error["message"] == f"'k' is {json.dumps(k)}: a whole number from 1 to 100 is wanted."
    assert time.monotonic() - began < 2


async def test_of_three_documents_ten_hits_are_those_three(http: httpx2.AsyncClient) -> None:
    for mode in ("hybrid", "dense"):
        reply = await http.post("/v1/search", json={"query": "the sea gate", "k": 10, "mode": mode})
        hits = reply.json()["hits"]
        assert sorted(hit["doc_id"] for hit in hits) == ["crane.md", "gate.md", "pump.txt"]
        assert all(abs(hit["score"]) < 1e6 for hit in hits)


@pytest.mark.parametrize("version", ["v000000000000", "../x", "v" * 10_000, "%2e%2e"])
async def test_an_unknown_version_is_not_found_and_the_known_ones_are_named(
    http: httpx2.AsyncClient, library: tuple[Path, str], version: str
) -> None:
    for path, field in PATHS:
        reply = await http.post(path, json={field: "oil"}, headers={"X-Index-Version": version})
        error = error_of(reply)
        assert (reply.status_code, error["code"], error["field"]) == (404, "not_found", "X-Index-Version")
        assert library[1] in error["message"]
        assert len(error["message"]) < 300


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"question": NaN}', b'"\xff"', b"[" * 100_000])
async def test_a_body_that_is_no_object_is_refused(http: httpx2.AsyncClient, body: bytes) -> None:
    reply = await http.post("/v1/answers", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 400
    assert "object" in error_of(reply)["message"]


async def test_a_misspelt_field_is_refused_with_the_nearest(http: httpx2.AsyncClient) -> None:
    reply = await http.post("/v1/answers", json={"question": "oil", "straem": True})
    assert reply.status_code == 400
    assert "did you mean 'stream'?" in error_of(reply)["message"]


async def test_a_version_of_another_encoder_answers_nobody_and_says_why(library: tuple[Path, str]) -> None:
    ours = settings(library[0], embedding__dimensions="128")
    retriever = make_library(ours)
    await retriever.refresh()
    app = create_app(make_service(ours, in_process_stages(ours, retriever), always_ready, Silent()))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://tidegate") as client:
        reply = await client.post("/v1/answers", json={"question": "oil"})
    message = error_of(reply)["message"]
    assert reply.status_code >= 500
    assert "'hashing-256-1' (256 dimensions)" in message
    assert "'hashing-128-1' (128 dimensions)" in message


async def test_before_anything_is_admitted_nobody_is_answered_and_the_way_out_is_named(tmp_path: Path) -> None:
    ours = settings(tmp_path / "data")
    retriever = make_library(ours)
    await retriever.refresh()
    app = create_app(make_service(ours, in_process_stages(ours, retriever), always_ready, Silent()))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://tidegate") as client:
        reply = await client.post("/v1/answers", json={"question": "oil"})
    assert (reply.status_code, error_of(reply)["code"]) == (503, "not_ready")
    assert "tidegate up" in error_of(reply)["message"]
    assert not (tmp_path / "data").exists()
