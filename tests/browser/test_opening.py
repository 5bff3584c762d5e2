"""The way into the pages by the file that the command gives a browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext

from tests.ui import served_pages
from tests.ui.opened_pages import opened


@contextmanager
def another_server(cookies: list[str]) -> Iterator[int]:
    """A server at another port of 127.0.0.1, as of another account: what cookies it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_server_at_another_port_is_sent_no_cookie(
    context: BrowserContext, served: served_pages.Page
) -> None:
    """A browser sends a cookie to every port of its host: the pages have a host of their own."""
    tab = context.new_page()
    tab.goto(served.address)
    tab.wait_for_url("**/playground")
    cookies: list[str] = []
    with another_server(cookies) as port:
        for name in ("127.0.0.1", "localhost", "another.localhost"):
            tab.goto(f"http://{name}:{port}/")
    assert len(cookies) >= 3
    assert set(cookies) == {""}
    tab.goto(served.origin)
    tab.wait_for_url("**/playground")


def test_the_file_leads_to_the_pages_and_the_token_is_in_no_address(
    browser: Browser, tmp_path: Path
) -> None:
    """Not in that of the page, nor in one that was asked for before, nor in a Referer."""
    home = tmp_path / "home"
    home.mkdir()
    with opened(tmp_path, home) as command, browser.new_context() as context:
        tab = context.new_page()
        sent: list[str] = []
        tab.on("request", lambda one: sent.append(f"{one.url} {one.headers.get('referer', '')}"))
        tab.goto(command.given)
        tab.wait_for_url("**/playground")
        tab.wait_for_selector("main")
        assert len(sent) > 3
        assert not any(command.token in each for each in sent)
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert "token" not in tab.evaluate("document.cookie + document.referrer + location.href")
        assert list(home.iterdir()) == []
        tab.reload()
        assert tab.url.endswith("/playground")


def test_the_file_has_a_button_for_a_browser_without_scripts(
    browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with (
        opened(tmp_path, home) as command,
        browser.new_context(java_script_enabled=False) as context,
    ):
        tab = context.new_page()
        tab.goto(command.given)
        tab.click("button")
        tab.wait_for_url("**/playground")
