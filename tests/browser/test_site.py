"""The site as a newcomer reads it: on a phone and a desk, by clicks and by search."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tools.site import build

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Host(SimpleHTTPRequestHandler):
    """Answers as hosts of static sites do: with 404.html where there is no page."""

    error_message_format = ""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.error_message_format = Path(self.directory, "404.html").read_text().replace("%", "%%")
        super().send_error(code, message, explain)

    def log_request(self, *_: object) -> None:
        """Log nothing, as for errors."""

    def log_error(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the built site."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def home(browser: Browser, address: str) -> Iterator[Page]:
    """The home page in a new window of a desk."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_window(
    browser: Browser, address: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """Nothing is cut off; the picture of the scheme is shown, and it can be read by all."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    for path in (
        "",
        "/overview/",
        "/docs/installing/",
        "/docs/reference/messages/runs/",
        "/nosuch",
    ):
        page.goto(address + path)
        assert page.evaluate(OVERFLOW) <= 0, path
    page.goto(address)
    other = {"light": "dark", "dark": "light"}[scheme]
    expect(page.locator(f"figure .only-{scheme}")).to_be_visible()
    expect(page.locator(f"figure .only-{other}")).to_be_hidden()
    faults = Axe().run(page, context=".home").response["violations"]
    assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in faults] == []
    context.close()


@pytest.mark.parametrize(
    ("clicks", "shown"),
    [
        (["Install"], "fairlead install --image"),
        (
            ["created, and its author warned"],
            "Fairlead does not reject a pod that only has to wait",
        ),
        (["cause and cure"], "8 node(s) had untolerated taint(s)"),
        (["How it was measured"], "How the figures are measured"),
    ],
    ids=["install", "no policy can place", "untolerated taint", "figures"],
)
def test_an_answer_is_at_most_three_clicks_away(home: Page, clicks: list[str], shown: str) -> None:
    """From the home page, by links alone."""
    for name in clicks:
        home.locator(".home").get_by_role("link", name=re.compile(re.escape(name))).first.click()
    expect(home.locator("article")).to_contain_text(shown)


def test_the_words_of_a_message_are_found_with_their_cure(home: Page) -> None:
    """The index is fetched when somebody searches, and the result leads to the message itself."""
    fetched: list[str] = []
    home.on("request", lambda request: fetched.append(request.url))
    home.reload()
    home.wait_for_load_state("networkidle")
    assert not any("search.json" in url for url in fetched)
    home.keyboard.press("Control+k")
    box = home.get_by_role("combobox")
    box.fill("untolerated taint")
    home.get_by_role("option").first.click()
    home.wait_for_url(re.compile(r"/docs/reference/messages/.*#m[0-9a-f]{8}$"))
    entry = home.locator(f"li:has(a[id='{home.url.partition('#')[2]}'])")
    expect(entry).to_be_in_viewport()
    expect(entry).to_contain_text("Cure: ")


def test_a_page_that_is_not_there_leads_on(home: Page, address: str) -> None:
    """From an address at any depth, with the site's look."""
    answer = home.goto(f"{address}/docs/nosuch/deeper/")
    assert answer is not None
    assert answer.status == 404
    home.get_by_role("link", name="Messages", exact=True).click()
    expect(home.locator("h1")).to_contain_text("Messages")
