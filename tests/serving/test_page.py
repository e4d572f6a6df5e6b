"""The page in a real browser: asks, shows, opens sources; whatever a document or a model says stays text."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from domain.costs import Prices
from domain.errors import Throttled
from domain.types import Citation, StopReason, Usage
from serving.wire import citation_json
from tests.fakes import RULES, FakeRetriever, FakeRewriter, ScriptedGenerator, chunk, hits
from tests.serving.service import TIDE, Served, get, service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

PRICES = Prices(input_usd=3.0, output_usd=15.0, cache_read_usd=0.3, cache_write_usd=3.75)
SPENT = "10 read, 5 written for the answer."
SILENT = "Not known for the answer: the model did not say."
NOBODY = "None for the answer: no model was asked."

EVIL = chunk(
    "evil#0",
    "<script>document.title='pwned'</script> [manual](javascript:alert(1)) ![p](http://127.0.0.1:9/leak?d=1)",
    title="<img src=x onerror=\"document.title='pwned'\"> Lamp note",
)


async def test_the_page_runs_nothing_but_its_own_files() -> None:
    reply = await get(service(), "/")
    policy = reply.headers["Content-Security-Policy"]
    for directive in (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ):  # fmt: skip
        assert directive in policy
    assert "unsafe" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_page_holds_no_inline_script_or_style_and_makes_no_html_from_strings() -> None:
    html = (await get(service(), "/")).text
    scripts = [(await get(service(), f"/page/{name}.js")).text for name in ("page", "account", "elements")]
    script = "".join(scripts).replace("http://www.w3.org/2000/svg", "")  # the name of a kind of element, not an address
    assert "<style" not in html
    assert " style=" not in html
    assert " on" not in "".join(part.split(">")[0] for part in html.split("<")[1:] if " on" in part.split(">")[0])
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert way not in script
    assert "http://" not in html + script
    assert "https://" not in html + script


@pytest.mark.parametrize("name", ["page.js", "account.js", "elements.js", "page.css", "icon.svg"])
async def test_every_file_of_the_page_is_served_with_its_type(name: str) -> None:
    reply = await get(service(), f"/page/{name}")
    assert reply.status_code == 200
    assert reply.headers["Content-Type"].split(";")[0] in ("text/javascript", "text/css", "image/svg+xml")


@pytest.mark.parametrize("name", ["../api.py", "..%2Fapi.py", "%2e%2e/api.py", "nothing.js", "%00"])
async def test_nothing_else_can_be_read_through_the_page(name: str) -> None:
    assert (await get(service(), f"/page/{name}")).status_code == 404


def test_a_citation_says_what_kind_of_source_it_is_and_from_when() -> None:
    told = citation_json(Citation("S1", "c#0", "c", "Title", "", "Quote", 1, "newswire", "2026-01-31"))
    assert (told["source"], told["published"]) == ("newswire", "2026-01-31")


# ------------------------------------------------------------------------------------------ in a browser


@pytest.fixture
async def page() -> AsyncIterator[object]:
    """A page of a headless Chromium that remembers every address it asked for and every complaint."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = await browser.new_page()
        tab.asked, tab.complaints = [], []  # type: ignore[attr-defined]
        tab.on("request", lambda request: tab.asked.append(request.url))  # type: ignore[attr-defined]
        tab.on("console", lambda message: tab.complaints.append(message.text))  # type: ignore[attr-defined]
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))  # type: ignore[attr-defined]
        yield tab
        await browser.close()


async def asked(tab, url: str, question: str) -> None:
    await tab.goto(url)
    await tab.fill("#question", question)
    await tab.keyboard.press("Enter")


class TestInABrowser:
    pytestmark = in_a_browser

    async def test_an_answer_is_shown_with_chips_that_open_their_source(self, page) -> None:
        async with Served(service()) as url:
            await asked(page, url, "When does the gate open?")
            await page.wait_for_selector(".facts")
            assert await page.inner_text(".answer") == "The gate opens at high water1."
            source = page.locator("#source-1-S1")
            assert not await source.evaluate("element => element.open")
            await page.focus(".cite")
            await page.keyboard.press("Enter")
            assert await source.evaluate("element => element.open")
            assert await source.locator(".passage").inner_text() == TIDE.text
            link = source.locator("a")
            assert await link.get_attribute("rel") == "noopener noreferrer"
            assert await link.get_attribute("target") == "_blank"
            assert page.complaints == []

    async def test_an_answer_that_was_cut_off_is_not_announced_as_complete(self, page) -> None:
        cut = ScriptedGenerator(("The gate opens [S1] at",), StopReason.LENGTH)
        async with Served(service(generator=cut)) as url:
            await asked(page, url, "When does the gate open?")
            await page.wait_for_selector(".facts")
            said = await page.locator("#status").text_content()
            assert said == "The answer was cut off before its end. Sources cited: 1."

    async def test_a_follow_up_carries_the_conversation(self, page) -> None:
        rewriter = FakeRewriter()
        async with Served(service(rewriter=rewriter)) as url:
            await asked(page, url, "When does the gate open?")
            await page.wait_for_selector(".facts")
            await page.fill("#question", "And when does it close?")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("li:nth-child(2) .facts")
        assert [turn.text for turn in rewriter.histories[1]] == [
            "When does the gate open?",
            "The gate opens at high water [S1].",
        ]

    async def test_titles_passages_and_answers_run_nothing_and_fetch_nothing(self, page) -> None:
        says = "<b>Wipe</b> ![p](http://127.0.0.1:9/leak?d=2) [x](javascript:alert(1)) the lamp [S1]."
        of = service(retriever=FakeRetriever(hits(EVIL)), generator=ScriptedGenerator((says,)))
        async with Served(of) as url:
            await asked(page, url, "lamp care")
            await page.wait_for_selector(".facts")
            await page.click(".cite")
            await page.wait_for_timeout(300)
            assert await page.title() == "Tidegate"
            assert "onerror" in await page.inner_text(".name")
            assert not [address for address in page.asked if not address.startswith(url)]
            assert not await page.locator("a[href^='javascript']").count()
            assert await page.locator("#turns b, #turns img, #turns script").count() == 0

    async def test_an_error_is_shown_as_text_with_a_way_to_ask_again(self, page) -> None:
        of = service(generator=ScriptedGenerator((), error=Throttled("The model asks to <wait>.", "generator")))
        async with Served(of) as url:
            await asked(page, url, "When?")
            trouble = page.locator("[role=alert]")
            await trouble.wait_for()
            assert "The model asks to <wait>." in await trouble.inner_text()
            assert await trouble.locator("button").inner_text() == "Ask again"

    async def test_a_suggestion_asks_itself_with_the_keyboard_alone(self, page) -> None:
        async with Served(service(suggestions=("When does the gate open?",))) as url:
            await page.goto(url)
            await page.focus("#suggestions button")
            await page.keyboard.press("Enter")
            await page.wait_for_selector(".facts")
            assert await page.inner_text(".question") == "When does the gate open?"

    async def test_an_answer_tells_its_tokens_by_class_and_what_it_cost(self, page) -> None:
        spent = Usage(input_tokens=1000, output_tokens=200, cache_read_tokens=10_000, cache_write_tokens=400)
        rewriter = FakeRewriter(to="When does the north gate open?", usage=Usage(2000, 50))
        priced = replace(RULES, prices=PRICES, rewriter_prices=Prices(0.1, 0.4, 0.0, 0.0))
        generator = ScriptedGenerator(("It opens at high water [S1].",), usage=spent)
        async with Served(service(generator=generator, rewriter=rewriter, rules=priced)) as url:
            await asked(page, url, "And the north gate?")
            await page.wait_for_selector(".facts")
            # .0105 of the answer and .00022 of its rewrite
            assert await page.inner_text(".facts .cost") == "$0.0107"
            told = await self.account(page)
        assert told["Tokens"] == [
            "1,000 read, 10,000 from the cache (87.7\u00a0% of the prompt), 400 into the cache, "
            "200 written for the answer.",
            "2,000 read, 50 written for rewriting.",
        ]
        assert told["Cost"] == ["$0.0107 for this answer, $10.7 for a thousand like it."]
        assert page.complaints == []

    @pytest.mark.parametrize(
        ("usage", "prices", "short", "tokens", "cost"),
        [
            (
                Usage(10, 5),
                None,
                ["Cost not known"],
                SPENT,
                "Not known: no price is set for every model that was asked.",
            ),
            (Usage(measured=False), PRICES, ["Cost not known"], SILENT, "Not known: a model did not say"),
            (Usage(), None, [], NOBODY, "Not known: no price is set."),
            (Usage(), PRICES, ["$0"], NOBODY, "$0 for this answer"),
        ],
        ids=["no price", "no counts", "nobody asked, no price", "nobody asked"],
    )
    async def test_a_cost_that_nobody_knows_is_said_to_be_not_known_and_is_no_zero(
        self, page, usage: Usage, prices: Prices | None, short: list[str], tokens: str, cost: str
    ) -> None:
        generator = ScriptedGenerator(("It opens at high water [S1].",), usage=usage)
        async with Served(service(generator=generator, rules=replace(RULES, prices=prices))) as url:
            await asked(page, url, "When does the gate open?")
            await page.wait_for_selector(".facts")
            assert await page.locator(".facts .cost").all_inner_texts() == short
            told = await self.account(page)
        assert told["Cost"][0].startswith(cost)
        assert told["Tokens"] == [tokens]

    async def test_a_conversation_fits_a_narrow_window(self, page) -> None:
        await page.set_viewport_size({"width": 340, "height": 700})
        async with Served(service()) as url:
            await asked(page, url, "When does the gate open?")
            await page.wait_for_selector(".facts")
            await self.account(page)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 340

    async def test_an_answer_that_declines_is_not_called_a_fault(self, page) -> None:
        async with Served(service(retriever=FakeRetriever())) as url:
            await asked(page, url, "In which colours does it come?")
            await page.wait_for_selector(".facts")
            assert (await page.locator(".facts li").all_inner_texts())[0] == "Not covered"
            assert not await page.locator(".facts .ungrounded").count()

    async def test_the_steps_of_an_agent_and_why_it_stopped_are_folded_away_below_the_answer(self, page) -> None:
        of = service(rules=replace(RULES, agent_steps=4, agent_covered=0.3))
        async with Served(of) as url:
            await asked(page, url, "When does the gate open?")
            await page.wait_for_selector(".facts")
            assert not await page.locator(".account").evaluate("element => element.open")
            told = await self.account(page)
        assert told["Steps"] == ["Searched for “When does the gate open?”: 2 passages."]
        assert told["Stopped"] == ["Every part is covered."]

    @staticmethod
    async def account(page) -> dict[str, list[str]]:
        """What the fold under the only answer says, by its terms; opened by the keyboard."""
        await page.focus(".account summary")
        await page.keyboard.press("Enter")
        return await page.locator(".account dl").evaluate(
            """list => {
                const said = {};
                let term = "";
                for (const line of list.children) {
                    if (line.tagName === "DT") said[term = line.innerText] = [];
                    else said[term].push(line.innerText);
                }
                return said;
            }"""
        )
