"""Takes docs/versions.png, the same each time: `python -m tests.serving.versions_picture docs/versions.png`.

A second argument gives the width of the window, a third the colours (light or dark).
"""

import asyncio
import sys

from playwright.async_api import async_playwright

from tests.serving.rollouts import NOON, past
from tests.serving.test_page import CHROMIUM, Served

BOTTOM = "section:has(#evidence)"  # the last part in the picture: what comes below is records


async def take(path: str, width: int, colours: str) -> None:
    """The page of the rollout with a past, at NOON, down to its evidence."""
    async with Served(past().service()) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": width, "height": 900}
        tab = await browser.new_page(viewport=size, color_scheme=colours, timezone_id="UTC")  # type: ignore[arg-type]  # playwright's own TypedDict and Literal
        await tab.clock.set_fixed_time(NOON)
        await tab.goto(f"{url}/versions")
        box = await tab.locator(BOTTOM).bounding_box()
        height = box["y"] + box["height"] + 16 if box else 900
        await tab.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
        await browser.close()


if __name__ == "__main__":
    given = sys.argv[1:] + ["docs/versions.png", "1280", "light"][len(sys.argv) - 1 :]
    asyncio.run(take(given[0], int(given[1]), given[2]))
