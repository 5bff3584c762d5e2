"""The playground in a browser: what a person types, sees, sends on, and cannot break."""

from __future__ import annotations

import base64
import re
import zlib
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Picture
from tests.browser.layout import faults_of_layout
from tests.ui import served_pages

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: research, labels: {fairlead.dev/run: r, fairlead.dev/role: worker}}
spec: {containers: [{name: c, image: i}]}
"""


def write(tab: Page, editor: str, text: str) -> None:
    """Replace the text of an editor by the keyboard, as a paste does."""
    tab.locator(f"#tab-{editor}").click()
    tab.locator(f"#{editor} + .editor .cm-content").click()
    tab.keyboard.press("ControlOrMeta+a")
    tab.keyboard.insert_text(text)


def text_of(tab: Page, editor: str) -> str:
    """The lines of an editor that are shown."""
    tab.locator(f"#tab-{editor}").click()
    return tab.locator(f"#{editor} + .editor .cm-content").inner_text()


def test_the_answer_changes_with_the_text(tab: Page) -> None:
    """A pod, its nodes, and the reason on hover; no reload."""
    write(tab, "manifests", POD)
    group = tab.locator(".group")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("Pod/p in research")
    expect(group.locator(".squares .yes")).to_have_count(4)
    shut = group.locator(".squares .no").first
    expect(shut).to_have_attribute("title", re.compile("on-demand-a: .*gke-spot"))


def test_an_error_is_marked_at_its_line_and_a_click_goes_there(tab: Page) -> None:
    """In the editor's gutter, and in the list of findings."""
    write(tab, "policies", "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nspec: {}\n")
    mark = tab.locator(".marks li:has(.bad) a").first
    expect(mark).to_be_visible()
    expect(tab.locator("#policies + .editor .cm-lint-marker-error").first).to_be_visible()
    mark.click()
    focused = "document.querySelector('#policies + .editor').shadowRoot.activeElement !== null"
    assert tab.evaluate(focused)


def test_completion_knows_the_schema(tab: Page) -> None:
    """Keys of the place, and values of a field."""
    head = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: a}\nspec:\n  "
    )
    write(tab, "policies", head)
    tab.keyboard.type("over")
    option = tab.locator(".cm-tooltip-autocomplete li").first
    expect(option).to_contain_text("overrides")
    tab.wait_for_timeout(200)  # The editor takes no Enter within 75 ms of a new list.
    tab.keyboard.press("Enter")
    expect(tab.locator("#policies + .editor .cm-content")).to_contain_text("overrides:")
    write(tab, "policies", f"{head}enforcement: ")
    tab.keyboard.type("A")
    expect(tab.locator(".cm-tooltip-autocomplete li").first).to_contain_text("Audit")


def test_a_link_has_the_texts(tab: Page, browser: Browser, served: served_pages.Page) -> None:
    """Whoever opens it, with a page of their own, sees the same; the token is not in it."""
    write(tab, "manifests", POD)
    expect(tab.locator(".group")).to_have_count(1)
    tab.get_by_role("button", name="Copy link").click()
    expect(tab.locator("#told")).to_contain_text("Copied")
    link: str = tab.evaluate("navigator.clipboard.readText()")
    assert "token" not in link
    other = browser.new_context()
    try:
        opened = other.new_page()
        opened.goto(served.address + "#" + link.partition("#")[2])
        expect(opened.locator(".group")).to_have_count(1)
        assert "name: p," in text_of(opened, "manifests")
    finally:
        other.close()


def test_a_link_that_unpacks_to_more_than_a_tab_holds_is_not_opened(tab: Page) -> None:
    """Three hundred megabytes are 300 KB in a link. The page says so, and goes on with its own."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    parts = [packer.compress(b'{"nodes": "", "manifests": "", "policies": "')]
    parts += [packer.compress(b"#" * 2**20) for _ in range(300)]
    parts += [packer.compress(b'"}'), packer.flush()]
    packed = base64.urlsafe_b64encode(b"".join(parts)).decode().rstrip("=")
    address = tab.url.partition("#")[0]
    tab.goto("about:blank")
    tab.goto(f"{address}#{packed}")
    expect(tab.locator("#told")).to_contain_text("over 4 MiB")
    write(tab, "manifests", POD)
    expect(tab.locator(".group")).to_have_count(1)


def test_a_policy_test_is_copied(tab: Page) -> None:
    """The same question, for a file."""
    tab.get_by_role("button", name="Copy as PolicyTest").click()
    expect(tab.locator("#told")).to_contain_text("fairlead test")
    text: str = tab.evaluate("navigator.clipboard.readText()")
    assert "kind: PolicyTest" in text


def test_the_change_is_compared_and_found(tab: Page) -> None:
    """The texts of the editor against those at the start; filters, and the back button."""
    changed = text_of(tab, "policies").replace("mode: Constrain", "mode: Prevent")
    write(tab, "policies", changed)
    tab.get_by_role("button", name="Compare").click()
    # The process that compares begins with the first comparison.
    expect(tab.locator("main")).to_contain_text("placed differently", timeout=30_000)
    assert tab.locator(".changed").count() > 0
    assert Axe().run(tab).response["violations"] == []
    assert [*faults_of_layout(tab)] == []
    tab.get_by_label("Words in names").fill("nothing-of-this")
    tab.get_by_role("button", name="Find").click()
    expect(tab.locator("main")).to_contain_text("No changes with this filter")
    tab.go_back()
    expect(tab.locator(".changed").first).to_be_visible()
    tab.go_back()
    expect(tab.locator("#answer .group").first).to_be_visible()
    assert "mode: Prevent" in text_of(tab, "policies")


def test_two_tabs_and_the_back_button(tab: Page, context: BrowserContext) -> None:
    """Each tab has its own texts; a tab that was left comes back with them."""
    other = context.new_page()
    other.goto(tab.url.partition("#")[0])
    other.wait_for_selector(".group")
    write(other, "manifests", POD)
    expect(other.locator(".group")).to_have_count(1)
    assert tab.locator(".group").count() > 1
    expect(other).to_have_url(re.compile("#.{60}"))
    other.goto("about:blank")
    other.go_back()
    expect(other.locator(".group")).to_have_count(1)
    assert "name: p," in text_of(other, "manifests")


def test_the_worst_is_first_and_the_verdict_is_always_in_sight(tab: Page) -> None:
    """Two panes down to 760 px; beneath, tabs, with the verdict above each of them."""
    expect(tab.locator("#verdict")).to_contain_text("1 rejected")
    expect(tab.locator(".group").first).to_contain_text("rejected")
    editor = tab.locator("#policies + .editor")
    for width, height in ((1440, 900), (960, 600), (768, 700)):
        tab.set_viewport_size({"width": width, "height": height})
        for part in (editor, tab.locator(".group summary").first, tab.locator("#verdict")):
            expect(part).to_be_in_viewport()
    tab.set_viewport_size({"width": 390, "height": 700})
    expect(editor).to_be_in_viewport()
    expect(tab.locator("#verdict")).to_be_in_viewport()
    tab.get_by_role("tab", name="Answer").click()
    expect(tab.locator(".group summary").first).to_be_in_viewport()
    expect(tab.locator("#verdict")).to_be_in_viewport()
    expect(editor).to_be_hidden()


def test_a_part_that_is_opened_stays_and_a_selection_too(tab: Page) -> None:
    """A key changes only what differs: opened groups, their content and a selection stay."""
    closed = tab.locator("details.group:not([open])").last
    subject = closed.get_attribute("data-key")
    closed.locator("summary").click()
    opened = tab.locator(f'details[data-key="{subject}"]')
    expect(opened.locator(".squares").first).to_be_visible()
    tab.evaluate(
        """(key) => {
          window.opened = document.querySelector(`details[data-key="${key}"] summary`);
          getSelection().selectAllChildren(window.opened);
        }""",
        subject,
    )
    selected = tab.evaluate("String(getSelection())")
    tab.evaluate("ask()")
    tab.wait_for_function("!document.querySelector('.answer').hasAttribute('aria-busy')")
    assert tab.evaluate("window.opened.isConnected")
    assert tab.evaluate("String(getSelection())") == selected
    expect(opened.locator(".squares").first).to_be_visible()


def test_the_editor_searches(tab: Page) -> None:
    """Also what is far below, which the browser's own search does not find."""
    tab.locator("#policies + .editor .cm-content").click()
    tab.keyboard.press("ControlOrMeta+f")
    tab.keyboard.type("tensorflow-on")
    tab.keyboard.press("Enter")
    expect(tab.locator("#policies + .editor .cm-searchMatch-selected")).to_be_visible()


def test_hostile_names_are_text(tab: Page) -> None:
    """They run nothing and load nothing; the fixture fails for each script and dialog."""
    name = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    write(tab, "manifests", POD.replace("name: p", f"name: '{name}'"))
    expect(tab.locator(".answer")).to_contain_text("<img src=x onerror=alert(1)>")
    assert tab.locator("main img, main script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(
    browser: Browser,
    served: served_pages.Page,
    picture: Picture,
    scheme: Literal["light", "dark"],
) -> None:
    """In the view with pods, and in that with errors."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1500, "height": 950})
    try:
        tab = context.new_page()
        tab.goto(served.address)
        tab.wait_for_selector(".group")
        assert Axe().run(tab).response["violations"] == []
        picture(tab, f"playground-{scheme}")
        closed = tab.locator("details.group:not([open]) > summary")
        while closed.count():
            closed.first.click()
        expect(tab.locator("details.group > div")).to_have_count(tab.locator(".group").count())
        assert [*faults_of_layout(tab)] == []
        assert Axe().run(tab).response["violations"] == []
        tab.set_viewport_size({"width": 1500, "height": 950})
        write(tab, "policies", "kind: 1\n")
        tab.wait_for_selector(".marks")
        assert Axe().run(tab).response["violations"] == []
        assert [*faults_of_layout(tab)] == []
    finally:
        context.close()


def test_a_command_that_ended_is_said_and_one_that_is_back_answers(
    context: BrowserContext,
) -> None:
    """The texts stay; the new command has another token, which the page does not know."""
    with served_pages.page() as first:
        tab = context.new_page()
        tab.goto(first.address)
        tab.wait_for_selector(".group")
    write(tab, "manifests", POD)
    expect(tab.locator("#answer")).to_contain_text("does not answer")
    with served_pages.page("--port", str(first.port)) as second:
        write(tab, "manifests", POD + "\n")
        expect(tab.locator("#answer")).to_contain_text("fairlead ui")
        tab.goto(second.address + "#" + tab.url.partition("#")[2])
        tab.wait_for_selector(".group")
