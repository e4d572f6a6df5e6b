"""The page "Versions" in a real browser: what it shows, what its buttons do, and what it says when it cannot know."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.errors import StorageError
from domain.releases import Decision, Kept, Outcome, Verdict
from tests.serving.rollouts import KEY, NOON, WELL, Past, past, served
from tests.serving.service import get, service
from tests.serving.test_page import CHROMIUM, Served, in_a_browser

HOSTILE = "<img src=x onerror=\"document.title='pwned'\"><b>bold</b>"
FILES = (
    "elements.js", "versions.css", "versions.js", "versions_files.js", "versions_moves.js", "versions_plots.js",
    "versions_view.js",
)  # fmt: skip


async def test_the_page_runs_nothing_but_its_own_files_and_makes_no_html_from_strings() -> None:
    reply = await get(service(), "/versions")
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert "unsafe" not in reply.headers["Content-Security-Policy"]
    texts = [reply.text] + [(await get(service(), f"/page/{name}")).text for name in FILES]
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://"):
        assert [way for text in texts if way in text] == []
    assert " style=" not in reply.text
    assert "<style" not in reply.text


@pytest.mark.parametrize("name", FILES)
async def test_every_file_of_the_page_is_served_with_its_type(name: str) -> None:
    kind = (await get(service(), f"/page/{name}")).headers["Content-Type"]
    assert kind == f"text/{'css' if name.endswith('css') else 'javascript'}; charset=utf-8"


async def test_the_pages_lead_to_each_other() -> None:
    assert 'href="/versions"' in (await get(service(), "/")).text
    assert 'href="/"' in (await get(service(), "/versions")).text


# ------------------------------------------------------------------------------------------ in a browser


@pytest.fixture
async def tab() -> AsyncIterator[Any]:
    """A tab of a headless Chromium, at NOON, that remembers every address it asked for and every complaint."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await browser.new_context(timezone_id="UTC", viewport={"width": 1280, "height": 900})
        page: Any = await context.new_page()
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        await page.clock.set_fixed_time(NOON)
        yield page
        await browser.close()


async def opened(tab: Any, url: str) -> None:
    await tab.goto(f"{url}/versions")
    await tab.wait_for_selector("#shown:not([hidden])")


async def press(tab: Any, selector: str, key: str = "") -> None:
    """Opens the dialog of a button and confirms it, with the admin key where it asks for one."""
    await tab.click(selector)
    if key:
        await tab.fill("#move-key", key)
    await tab.click("#move-go")


def row(tab: Any, part: str, name: str) -> Any:
    return tab.locator(f"#{part} tbody tr", has_text=name)


class TestInABrowser:
    pytestmark = in_a_browser

    @pytest.mark.slow
    async def test_it_shows_what_people_get_and_how_every_version_stands(self, tab: Any) -> None:
        async with Served(past().service()) as url:
            await opened(tab, url)
            assert await tab.locator(".place dd .id").all_inner_texts() == ["vb84e9d3f0", "vg6d1f5a88", "va31c07e52"]
            assert await tab.locator("svg.bar").get_attribute("aria-label") == (
                "25\u00a0% of the sessions get the canary, 75\u00a0% the stable version."
            )
            states = await tab.locator("#versions .state").all_inner_texts()
            assert states == ["built", "admitted", "canary", "built", "built", "built", "retired", "stable", "retired"]
            share = await tab.locator("#share svg").get_attribute("aria-label")
            assert share == "Share of canary vg6d1f5a88 over time: 5\u00a0%, then 25\u00a0% until now."
            assert tab.complaints == []
            assert [address for address in tab.asked if not address.startswith(url)] == []

    async def test_evidence_is_shown_with_its_numbers_its_interval_and_what_it_asks_for(self, tab: Any) -> None:
        async with Served(past().service()) as url:
            await opened(tab, url)
            told = (await get(past().service(), "/v1/rollout")).json()["evidence"]
            assert told["advice"]["reason"] in await tab.inner_text(".advice")
            assert await tab.locator("#evidence .facts").inner_text() == (
                "?cannot tell yet\n400 requests on vg6d1f5a88\n1,200 on vb84e9d3f0\nsince 2026-03-01 11:20:00"
            )
            metric = next(metric for metric in told["metrics"] if metric["metric"] == "within_slo")
            shown = row(tab, "evidence", "within_slo")
            assert f"{metric['canary']['mean']:.3f}" in await shown.inner_text()
            assert metric["reason"] in await shown.inner_text()
            low, high = (f"{metric[bound]:+.3f}".replace("-", "\u2212") for bound in ("low", "high"))
            assert await shown.locator("svg").get_attribute("aria-label") == (
                f"The difference lies between {low} and {high}; a drop of 0.05 is tolerated."
            )

    async def test_counts_that_are_not_of_everything_say_so(self, tab: Any) -> None:
        house = past()
        evidence, advice = house.live() or pytest.fail("no canary")
        live = replace(evidence, kept=Kept(one_in=16, lost=1203)), advice
        async with Served(house.service(live=lambda: live)) as url:
            await opened(tab, url)
            shown = await tab.locator("#evidence .facts").inner_text()
            assert "counted as kept: by now one request in 16" in shown
            assert "1,203 observations lost: the server's log says why" in shown

    async def test_failed_open_not_measured_not_evaluated_and_zero_are_told_apart(self, tab: Any) -> None:
        house = past()
        evidence, advice = house.live() or pytest.fail("no canary")
        nothing = replace(evidence.metrics[0], canary_mean=0.0)
        live = replace(evidence, metrics=(nothing, *evidence.metrics[1:])), advice
        async with Served(house.service(live=lambda: live)) as url:
            await opened(tab, url)
            words = {
                name: await row(tab, "versions", name).locator("td").nth(6).inner_text()
                for name in ("vd10b2e8c4", "ve77d4a096", "vf29c8e1b3", "vj93e0d5f1")
            }
            assert {name: word.replace("\n", " ") for name, word in words.items()} == {
                "vd10b2e8c4": "✕failed",
                "ve77d4a096": "?inconclusive",
                "vf29c8e1b3": "!not measured",
                "vj93e0d5f1": "not evaluated",
            }
            assert (await row(tab, "evidence", "success").locator(".arm").first.inner_text()).startswith("0.000")
            feedback = row(tab, "evidence", "feedback")
            assert (await feedback.locator(".arm").first.inner_text()).startswith("none yet")
            assert await feedback.locator("td").last.inner_text() == "not measured"

    async def test_the_moves_say_who_when_where_why_and_how_fast_and_which_were_forced(self, tab: Any) -> None:
        await tab.set_extra_http_headers({"Authorization": f"Bearer {KEY}"})  # others are told neither who nor why
        async with Served(past().service()) as url:
            await opened(tab, url)
            back = await tab.locator("#ledger .rollback").inner_text()
            for part in ("Rolled back", "2026-02-16 15:09:00", "vc5a0f6b17", "vb84e9d3f0", "found: -0.081"):
                assert part in back
            assert "tidegate watch · done 412 ms after it could be known" in back
            forced = tab.locator("#ledger li.canary", has_text="vc5a0f6b17")
            assert await forced.locator(".forced").inner_text() == "forced"
            assert "the legal texts must be in today" in await forced.inner_text()

    async def test_a_decision_opens_to_its_verdicts_and_stays_open_when_the_page_looks_again(self, tab: Any) -> None:
        house = past()
        await tab.set_extra_http_headers({"Authorization": f"Bearer {KEY}"})
        async with Served(house.service()) as url:
            await opened(tab, url)
            decision = tab.locator("#decisions details", has_text="vd10b2e8c4")
            await decision.locator("summary").focus()
            await tab.keyboard.press("Enter")
            assert "0.7514 against 0.8247, difference -0.0733" in await decision.inner_text()
            house.build("vk00000001", 28, WELL, "vb84e9d3f0")
            await tab.locator("#decisions details", has_text="vk00000001").wait_for()
            assert await decision.evaluate("element => element.open")
            assert await decision.locator("summary").evaluate("element => element === document.activeElement")

    async def test_a_wrong_key_is_refused_and_asked_for_again_and_nothing_moves(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            await press(tab, "#promote", "not the key")
            refusal = tab.locator("#move-refusal .trouble")
            await refusal.wait_for()
            assert "This is not the admin key" in await refusal.inner_text()
            assert await tab.locator("#move-key").is_visible()
            assert await tab.locator("#forget").is_hidden()
            assert house.registry.rollout().stable == "vb84e9d3f0"

    async def test_promote_and_roll_back_move_the_pointer_and_the_key_is_asked_for_once(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            await press(tab, "#promote", KEY)
            await tab.wait_for_selector("#said:not([hidden])")
            assert await tab.inner_text("#said") == "vg6d1f5a88 is promoted: everybody gets it."
            assert await tab.locator(".place dd .id").all_inner_texts() == ["vg6d1f5a88", "vb84e9d3f0"]
            assert house.registry.rollout().stable == "vg6d1f5a88"
            assert await tab.locator("#promote").is_disabled()
            await tab.click("#rollback")
            assert await tab.locator("#move-key").is_hidden()
            await tab.fill("#move-reason", "slower than it looked")
            await tab.click("#move-go")
            await tab.locator("#said", has_text="Everybody gets vb84e9d3f0 again.").wait_for()
            assert house.registry.rollout().stable == "vb84e9d3f0"
            assert house.registry.ledger()[-1].reason == "slower than it looked"
            assert tab.complaints == []

    async def test_a_canary_is_rolled_back_and_another_begun_with_a_share_of_its_own(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            begin = tab.get_by_role("button", name="Begin canary: vh40c7b9e2")
            assert await begin.is_disabled()
            assert await begin.get_attribute("title") == "vg6d1f5a88 is the canary: promote it or roll it back first."
            await press(tab, "#rollback", KEY)
            await tab.locator("#said", has_text="everybody gets vb84e9d3f0").wait_for()
            await begin.click()
            await tab.fill("#move-percent", "12.5")
            await tab.check("#move-auto")
            await tab.click("#move-go")
            await tab.locator("#said", has_text="vh40c7b9e2 is the canary now.").wait_for()
            now = house.registry.rollout()
            assert (now.stable, now.canary, now.share, now.auto) == ("vb84e9d3f0", "vh40c7b9e2", 0.125, True)

    async def test_a_refusal_is_shown_with_its_numbers(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            worse = Verdict("recall@6 max_drop", Outcome.FAIL, "0.7514 against 0.8247, difference -0.0733")
            binding = served("vg6d1f5a88", "vb84e9d3f0")
            house.registry.record(Decision(binding, (worse,), "", "2026-03-01T11:59:00+00:00"))
            await press(tab, "#promote", KEY)
            refusal = tab.locator("#move-refusal .trouble")
            await refusal.wait_for()
            assert "0.7514 against 0.8247, difference -0.0733" in await refusal.inner_text()
            assert await tab.locator("#move-key").is_hidden()  # the key was right

    async def test_a_click_on_what_is_past_promotes_nothing(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            await tab.click("#promote")
            house.at(NOON + timedelta(seconds=1)).roll_back("tidegate watch", "worse")
            await tab.fill("#move-key", KEY)
            await tab.click("#move-go")
            refusal = tab.locator("#move-refusal .trouble")
            await refusal.wait_for()
            assert "tidegate watch made a rollback move" in await refusal.inner_text()
            assert house.registry.rollout().stable == "vb84e9d3f0"

    async def test_the_dialog_works_by_keyboard_and_escape_changes_nothing(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            await tab.focus("#rollback")
            await tab.keyboard.press("Enter")
            assert await tab.locator("#move").get_attribute("open") is not None
            for _ in range(8):  # more than the dialog has to stop at
                await tab.keyboard.press("Tab")
                outside = "document.activeElement !== document.body && !document.activeElement.closest('#move')"
                assert not await tab.evaluate(outside)
            await tab.keyboard.press("Escape")
            assert await tab.locator("#move").get_attribute("open") is None
            assert await tab.evaluate("document.activeElement.id") == "rollback"
            assert house.registry.rollout().canary == "vg6d1f5a88"

    async def test_the_key_is_in_no_storage_and_can_be_forgotten(self, tab: Any) -> None:
        async with Served(past().service()) as url:
            await opened(tab, url)
            await press(tab, "#rollback", KEY)
            await tab.locator("#forget").wait_for()
            kept = "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie])"
            assert await tab.evaluate(kept) == '[[],[],""]'
            await tab.click("#forget")
            await tab.click("#rollback")
            assert await tab.locator("#move-key").is_visible()
            assert await tab.input_value("#move-key") == ""

    async def test_markup_in_records_and_names_stays_text(self, tab: Any) -> None:
        await tab.set_extra_http_headers({"Authorization": f"Bearer {KEY}"})
        house = past()
        house.at(NOON).roll_back(HOSTILE, HOSTILE)
        house.build("vk00000001", 28, (Verdict(HOSTILE, Outcome.FAIL, HOSTILE),), None)
        house.releases.force("vk00000001", HOSTILE)
        versions = house.registry.versions()
        house.registry.versions = lambda: tuple(replace(v, chunker=HOSTILE) for v in versions)  # type: ignore[method-assign]  # a name as no build makes it
        async with Served(house.service()) as url:
            await opened(tab, url)
            await tab.click("#decisions summary >> nth=0")
            assert HOSTILE in await tab.inner_text("#ledger li >> nth=0")
            assert HOSTILE in await tab.inner_text("#decisions details >> nth=0")
            assert HOSTILE in await tab.inner_text("#versions tbody tr >> nth=0")
            assert await tab.locator("main img, main b").count() == 0
            assert await tab.title() == "Versions · Tidegate"
            assert tab.complaints == []

    @pytest.mark.slow
    async def test_a_service_that_is_gone_is_said_with_the_age_of_what_is_shown(self, tab: Any) -> None:
        house = past()
        async with Served(house.service()) as url:
            await opened(tab, url)
            await tab.route("**/v1/rollout", lambda route: route.abort())
            trouble = tab.locator("#trouble .trouble")
            await trouble.wait_for()
            assert "The service cannot be reached." in await trouble.inner_text()
            assert "What is shown is what it said at 12:00:00" in await trouble.inner_text()
            await tab.locator("#age", has_text="Not current: as it was").wait_for()
            assert await tab.locator(".place dd .id").first.inner_text() == "vb84e9d3f0"
            assert await tab.locator("#promote").is_disabled()
            await tab.unroute("**/v1/rollout")
            await tab.locator("#age", has_text="Current, looked at every 2 s").wait_for()
            assert await trouble.count() == 0
            assert await tab.locator("#promote").is_enabled()

    async def test_records_that_cannot_be_read_are_said_beside_the_rest(self, tab: Any) -> None:
        await tab.set_extra_http_headers({"Authorization": f"Bearer {KEY}"})

        def unreadable() -> None:
            raise StorageError("observations.jsonl, line 3 is damaged.")

        house = past()
        house.registry.illegible = True
        async with Served(house.service(live=unreadable)) as url:
            await opened(tab, url)
            assert "observations.jsonl, line 3 is damaged." in await tab.inner_text("#evidence")
            assert "ledger.jsonl, line 1 is damaged" in await tab.inner_text("#ledger")
            assert await tab.locator("#rollback").is_enabled()  # just then somebody may have to

    async def test_before_the_first_promotion_nothing_pretends_to_be_there(self, tab: Any) -> None:
        house = Past()
        house.build("va31c07e52", 2, WELL, None)
        async with Served(house.service()) as url:
            await opened(tab, url)
            assert "nothing yet: nobody is served" in await tab.inner_text("#pointer")
            assert await tab.inner_text("#evidence") == "There is no canary, so there is nothing to compare."
            assert await tab.locator("#promote, #rollback").evaluate_all("them => them.map(one => one.disabled)") == [
                True,
                True,
            ]
            assert await tab.get_by_role("button", name="Begin canary: va31c07e52").is_disabled()
            await tab.get_by_role("button", name="Promote: va31c07e52").click()
            await tab.fill("#move-key", KEY)
            await tab.click("#move-go")
            await tab.locator("#said", has_text="va31c07e52 is promoted").wait_for()

    @pytest.mark.parametrize("width", [320, 390, 768, 1280])
    async def test_no_width_needs_sideways_scrolling(self, tab: Any, width: int) -> None:
        async with Served(past().service()) as url:
            await tab.set_viewport_size({"width": width, "height": 900})
            await opened(tab, url)
            for summary in await tab.locator("summary").all():
                await summary.click()
            assert await tab.evaluate("document.documentElement.scrollWidth") <= width

    @pytest.mark.slow
    async def test_a_page_that_cannot_be_seen_does_not_look(self, tab: Any) -> None:
        async with Served(past().service()) as url:
            await opened(tab, url)
            await tab.evaluate(
                "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
                "document.dispatchEvent(new Event('visibilitychange'))"
            )
            await asyncio.sleep(0.2)
            before = len(tab.asked)
            await asyncio.sleep(3.0)
            assert len(tab.asked) == before
            async with tab.expect_request("**/v1/rollout"):
                await tab.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
