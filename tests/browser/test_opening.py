"""The way into the pages by the file that the command gives a browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from tests.ui.opened_pages import opened


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
