"""docs/conversation.md is what the sample library answers: the same five questions, in this process, give the page."""

from dataclasses import replace
from pathlib import Path

import httpx2
import orjson
import pytest

from scripts.conversation import TURNS, page
from serving.api import create_app
from serving.service import always_ready
from serving.telemetry import Silent
from tidegate.build import build_version
from tidegate.compose import in_process_stages, make_library, make_service
from tidegate.loading import load
from tidegate.sample import corpus_path, make_sample

PAGE = (Path(__file__).parents[1] / "docs" / "conversation.md").read_text("utf-8")


def test_the_page_shows_a_follow_up_one_that_goes_deeper_one_not_covered_and_a_pool_that_grows() -> None:
    assert [f"## {number}. {question}" for number, (question, _, _) in enumerate(TURNS, 1)] == [
        line for line in PAGE.splitlines() if line.startswith("## ")
    ]
    assert "`used`" in PAGE
    assert "because: asked to go deeper; then 12 of 12 passages in 2 wordings" in PAGE
    assert "`no_sources`, `ungrounded`" in PAGE
    kept = [int(row.split(" came and stayed")[0].split("| ")[-1]) for row in PAGE.splitlines() if "came and" in row]
    assert len(kept) == len(TURNS)
    assert kept[0] == 0
    assert kept == sorted(set(kept)), "the pool grows with every question"


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_sample_library_gives_the_page_again(tmp_path: Path) -> None:
    settings = load(None, {}, {"data_dir": str(tmp_path), "tracking.enabled": "false"}, cwd=tmp_path).settings
    make_sample(settings)
    version = build_version(settings, corpus_path(settings), lambda *_: None).version.id
    library = make_library(settings)
    await library.refresh()
    service = make_service(settings, in_process_stages(settings, library, hurried=False), always_ready, Silent())
    transport = httpx2.ASGITransport(app=create_app(replace(service, pinnable=True)))  # nobody admitted the version
    replies, session = [], None
    async with httpx2.AsyncClient(transport=transport, base_url="http://tidegate", timeout=None) as http:
        for question, deeper, _ in TURNS:
            body = {"question": question, "deeper": deeper} | ({"session": session} if session else {})
            head = {"Content-Type": "application/json", "X-Index-Version": version}
            reply = (await http.post("/v1/answers", content=orjson.dumps(body), headers=head)).json()
            session = reply["session"]
            replies.append(reply)
    library.close()
    assert page(replies) == PAGE
