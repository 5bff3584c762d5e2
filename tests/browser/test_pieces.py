"""The pieces of which all pages are made, each once, on the page /pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.layout import faults_of_layout
from tests.ui import served_pages


@pytest.fixture(scope="module")
def served() -> Iterator[served_pages.Page]:
    """The command with the page."""
    with served_pages.page("--pieces") as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_piece_fits_and_axe_finds_nothing(
    browser: Browser,
    served: served_pages.Page,
    scheme: Literal["light", "dark"],
) -> None:
    """At every width, in both schemes, also with names that are as long as Kubernetes takes."""
    context = browser.new_context(color_scheme=scheme)
    try:
        tab = context.new_page()
        tab.goto(served.address)
        tab.goto(f"{served.origin}/pieces")
        tab.locator("svg rect").first.wait_for()
        assert Axe().run(tab).response["violations"] == []
        assert [*faults_of_layout(tab)] == []
    finally:
        context.close()


def test_what_is_wrong_with_a_layout_is_found(browser: Browser, served: served_pages.Page) -> None:
    """A part beside the screen, text on text, and a hidden text far below: the judge sees them."""
    context = browser.new_context()
    faults = {
        "off screen": "position: absolute; left: 2000px",
        "overlap": "margin-top: -30px",
        "into nothing": "position: absolute; top: 9000px; clip-path: inset(50%); width: 1px",
    }
    try:
        tab = context.new_page()
        tab.goto(served.address)
        for fault, style in faults.items():
            tab.goto(f"{served.origin}/pieces")
            tab.evaluate(
                """(style) => {
                  const line = document.createElement("p");
                  line.textContent = "Out of place";
                  line.style.cssText = style;
                  if (style.includes("clip")) line.className = "spoken";
                  document.querySelector("main > p").after(line);
                }""",
                style,
            )
            assert any(fault in found for found in faults_of_layout(tab)), fault
    finally:
        context.close()
