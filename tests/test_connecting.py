"""docs/connecting.md, block by block, as a reader would run it, against a service on a real port."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from serving.service import Service
from tests.fakes import FakeRetriever, ReversingReranker
from tests.serving.service import Served, service

TEXT = (Path(__file__).parents[1] / "docs" / "connecting.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:8000"
BLOCKS = dict(re.findall(r"^## (.+?)\n(?:(?!^## ).)*?^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))


def whole() -> Service:
    return service(reranker=ReversingReranker(method="reversed"), encoder=FakeRetriever())


async def run(heading: str, of: Service) -> dict[str, Any]:
    """What a block leaves behind."""
    left: dict[str, Any] = {"__name__": "recipe"}
    assert ADDRESS in BLOCKS[heading]
    async with Served(of) as url:
        code = compile(BLOCKS[heading].replace(ADDRESS, url), heading, "exec")
        await asyncio.to_thread(exec, code, left)
    return left


def test_every_client_has_a_block() -> None:
    assert set(BLOCKS) == {"Chat completions", "Embeddings", "Rerank", "Model Context Protocol", "LangChain"}


async def test_a_chat_completion_shows_its_citations(capsys: pytest.CaptureFixture[str]) -> None:
    left = await run("Chat completions", whole())
    assert left["message"].content == "The gate opens at high water [S1]."
    assert capsys.readouterr().out.startswith("[S1] ")


async def test_embeddings_are_of_texts_and_of_a_query() -> None:
    left = await run("Embeddings", whole())
    assert len(left["documents"].data) == 2
    assert len(left["query"].data[0].embedding) == 2


async def test_rerank_gives_the_best_place() -> None:
    left = await run("Rerank", whole())
    assert [result.index for result in left["ranked"].results] == [1]


async def test_a_tool_answers_with_citations() -> None:
    left = await run("Model Context Protocol", whole())
    assert left["told"].structured_content["citations"]


async def test_the_retriever_gives_passages_and_fails_where_the_search_does() -> None:
    left = await run("LangChain", service())
    assert [passage.id for passage in left["passages"]] == ["tides#0", "bells#0"]
    assert left["passages"][0].page_content == "The gate opens at high water."
    retriever = left["TidegateRetriever"]
    async with Served(service()) as url:
        with pytest.raises(httpx2.HTTPStatusError):
            await retriever(base_url=url, k=1000).ainvoke("gate")
