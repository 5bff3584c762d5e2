"""The pages of Runs in a browser, beside a real control plane and controller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.cluster.live_runs import create_run
from tests.cluster.spaces import Space
from tests.ui import served_pages

pytest_plugins = ["tests.cluster.run_fixtures"]


@pytest.fixture
def served(run_space: Space) -> Iterator[served_pages.Page]:
    """The pages of the Runs in the test's namespace."""
    where = ("--kubeconfig", str(run_space.plane.kubeconfig), "-n", run_space.name)
    with served_pages.page("cluster", *where) as found:
        yield found


@pytest.fixture
def tab(browser: Browser, served: served_pages.Page) -> Iterator[Page]:
    """The list of Runs; no script may fail, nothing may be blocked."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda told: faults.append(told.text) if told.type == "error" else None)
    opened.goto(served.address)
    yield opened
    context.close()
    assert faults == []


def test_a_run_appears_fails_and_is_explained(tab: Page, run_space: Space) -> None:
    """Without a reload; two clicks from the list to the reason, and back by the back button."""
    expect(tab.get_by_text("No Runs")).to_be_visible()
    live = create_run(
        run_space, "mnist", framework="pytorch", replicas={"master": {}, "worker": {"count": 3}}
    )
    link = tab.get_by_role("link", name="mnist")
    expect(link).to_be_visible()
    live.until_phase("Running")
    expect(tab.locator("td .Running")).to_have_count(1)
    link.click()
    expect(tab.locator(".squares .Running")).to_have_count(4)
    live.ends("worker-2", 1, message="loss is NaN")
    expect(tab.locator("pre")).to_contain_text("loss is NaN", timeout=20_000)
    expect(tab.locator("svg path")).to_have_count(1)
    tab.go_back()
    expect(tab.get_by_role("link", name="mnist")).to_be_visible()


def test_a_square_says_what_it_waits_for(tab: Page, run_space: Space) -> None:
    """On hover, for screen readers, and in the table; the focus stays where it was."""
    create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}})
    tab.get_by_role("link", name="stuck").click()
    square = tab.locator(".squares .attention a")
    expect(square).to_have_attribute("aria-label", re.compile("nodes are available"))
    square.focus()
    run_space.patch("runs", "stuck", {"metadata": {"labels": {"changed": "yes"}}})
    tab.wait_for_timeout(6000)  # Longer than a page waits for the next look.
    expect(square).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.get_by_text("has not started yet")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    browser: Browser,
    served: served_pages.Page,
    run_space: Space,
    scheme: Literal["light", "dark"],
) -> None:
    """In the list, and on the page of a Run that failed."""
    live = create_run(run_space, "mnist", framework="pytorch", backoffLimit=0)
    live.until_phase("Running")
    live.ends("master-0", 1, message="no")
    live.until_phase("Failed")
    context = browser.new_context(color_scheme=scheme)
    try:
        tab = context.new_page()
        tab.goto(served.address)
        tab.get_by_role("link", name="mnist").wait_for()
        assert Axe().run(tab).response["violations"] == []
        tab.get_by_role("link", name="mnist").click()
        tab.wait_for_selector("svg path")
        assert Axe().run(tab).response["violations"] == []
    finally:
        context.close()
