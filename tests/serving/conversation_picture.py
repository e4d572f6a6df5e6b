"""Takes docs/conversation.png of a served sample library: `python -m tests.serving.conversation_picture URL PATH`.

A third argument gives the width of the window, a fourth the colours (light or dark).
"""

import asyncio
import sys

from playwright.async_api import async_playwright

from tests.serving.test_page import CHROMIUM

QUESTIONS = (
    "Who manufactures the LN-3?",
    "And how long is its warranty?",
    "In which paint finishes is the LN-33 available?",
)


async def take(url: str, path: str, width: int, colours: str) -> None:
    """The page after the conversation, the account of the follow-up unfolded."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": width, "height": 900}
        tab = await browser.new_page(viewport=size, color_scheme=colours)  # type: ignore[arg-type]  # playwright's own TypedDict and Literal
        await tab.goto(url)
        for number, question in enumerate(QUESTIONS, 1):
            await tab.fill("#question", question)
            await tab.keyboard.press("Enter")
            await tab.wait_for_selector(f"#turns > li:nth-child({number}) .facts")
        await tab.click("#turns > li:nth-child(2) .account summary")
        await tab.locator("#question").blur()
        await tab.screenshot(path=path, full_page=True)
        await browser.close()


if __name__ == "__main__":
    given = sys.argv[1:] + ["http://127.0.0.1:8000", "docs/conversation.png", "900", "light"][len(sys.argv) - 1 :]
    asyncio.run(take(given[0], given[1], int(given[2]), given[3]))
