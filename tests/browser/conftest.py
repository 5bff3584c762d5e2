"""A real browser, Chromium of the distribution, over the command as a process."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.ui import served_pages

IMAGES = Path(__file__).parents[2] / "docs" / "images"
BOTTOMS = "[...document.querySelectorAll('main *')].map((e) => e.getBoundingClientRect().bottom)"
NAMES = ("chromium", "chromium-browser", "google-chrome")
Picture = Callable[[Page, str], None]


def find_browser() -> str:
    """Return the path of a browser. Raises RuntimeError with the cure if there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        names = ", ".join(NAMES)
        raise RuntimeError(f"no browser: install one of {names} (apt install chromium)")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser; a machine without one fails, with the cure."""
    found = find_browser()
    with sync_playwright() as playwright:
        # Its sandbox wants rights that containers lack; the pages are our own.
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def picture() -> Picture:
    """Writes what a tab shows to docs/images, as `make screenshots` asks; else does nothing."""

    def write(tab: Page, name: str) -> None:
        if "FAIRLEAD_SCREENSHOTS" in os.environ:
            tab.set_viewport_size({"width": 1280, "height": 800})
            end = max(tab.evaluate(BOTTOMS))
            tab.set_viewport_size({"width": 1280, "height": int(min(800, end + 24))})
            shown = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
            # A third of the bytes, and no difference that a reader sees.
            shown.quantize(192, dither=Image.Dither.NONE).save(
                IMAGES / f"{name}.png", optimize=True
            )

    return write


@pytest.fixture(scope="module")
def served() -> Iterator[served_pages.Page]:
    """The command with its example."""
    with served_pages.page() as found:
        yield found


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without cookies, that may use the clipboard."""
    made = browser.new_context(viewport={"width": 1500, "height": 950})
    made.grant_permissions(["clipboard-read", "clipboard-write"])
    yield made
    made.close()


@pytest.fixture
def tab(context: BrowserContext, served: served_pages.Page) -> Iterator[Page]:
    """The playground, with its first answer; no script may fail, nothing may be blocked."""
    faults: list[str] = []

    def told(message: ConsoleMessage) -> None:
        # Chromium's own, when the keyboard replaces a selection of several lines.
        editing = message.text.startswith("Applying inline style")
        if message.type in ("error", "warning") and not editing:
            faults.append(message.text)

    opened = context.new_page()
    opened.on("console", told)
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("dialog", lambda dialog: faults.append(dialog.message))
    opened.goto(served.address)
    opened.wait_for_selector(".group")
    yield opened
    assert faults == []
