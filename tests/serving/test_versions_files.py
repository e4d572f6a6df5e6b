"""The part "Files" of the page "Versions": what became of every file, for whoever shows the admin key."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from domain.ingestion import FileOutcome, FileStatus
from tests.serving.rollouts import KEY, past
from tests.serving.test_page import CHROMIUM, Served, in_a_browser
from tests.serving.test_versions_page import opened

HOSTILE = "<img src=x onerror=\"document.title='pwned'\">.pdf"
FILES = (
    FileOutcome("good.txt", FileStatus.INDEXED, "ok", "1 of 1 indexed"),
    FileOutcome("half.pdf", FileStatus.WARNING, "remarks", "page 2 of 2 has no text"),
    FileOutcome(HOSTILE, FileStatus.FAILED, "no_text", "1 page without any text"),
)


class Reports:
    """A report of every version but one."""

    def read(self, version: str) -> tuple[FileOutcome, ...] | None:
        return None if version == "va31c07e52" else FILES


@pytest.fixture
async def tab() -> AsyncIterator[Any]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page: Any = await browser.new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        yield page
        await browser.close()


async def show(tab: Any, key: str = "", version: str = "") -> str:
    """What the part says after its button was pressed."""
    if version:
        await tab.select_option("#files-version", version)
    await tab.fill("#files-key", key)
    await tab.click("#files-form button")
    await tab.wait_for_selector("#files > *")
    await tab.wait_for_selector("#files-form:not([aria-busy])")
    said: str = await tab.inner_text("#files")
    return said


class TestInABrowser:
    pytestmark = in_a_browser

    async def test_counts_and_the_failed_files_are_shown_and_names_are_text(self, tab: Any) -> None:
        async with Served(past().service(outcomes=Reports())) as url:
            await opened(tab, url)
            said = await show(tab, KEY)
            assert "3 files" in said
            assert "1 failed" in said
            assert HOSTILE in said
            assert "no_text" in said
            assert "good.txt" not in said
            assert await tab.title() != "pwned"
            assert tab.complaints == []
            assert await tab.input_value("#files-key") == ""

    async def test_without_the_key_no_name_is_told(self, tab: Any) -> None:
        async with Served(past().service(outcomes=Reports())) as url:
            await opened(tab, url)
            said = await show(tab)
            assert "admin key" in said
            assert ".pdf" not in said

    async def test_a_version_built_elsewhere_is_not_known_rather_than_faultless(self, tab: Any) -> None:
        async with Served(past().service(outcomes=Reports())) as url:
            await opened(tab, url)
            assert (await show(tab, KEY, "va31c07e52")).startswith("Not known")
