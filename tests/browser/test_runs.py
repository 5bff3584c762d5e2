"""The pages of Runs in a browser, beside a real control plane and controller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Picture
from tests.browser.layout import faults_of_layout
from tests.cluster.live_runs import create_run, run_manifest
from tests.cluster.spaces import Space
from tests.control_planes import StartControlPlane
from tests.ui import served_pages
from webhook import names
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.policy_fixtures", "tests.cluster.run_fixtures"]

SHIPPED = Path(__file__).parents[2] / "policies"
POLICIES = (
    *("-f", f"{SHIPPED}/capacity/gke-spot.yaml"),
    *("-f", f"{SHIPPED}/stateful-on-demand/stateful-on-demand.yaml"),
)


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
    expect(tab.locator("td .pill", has_text="Running")).to_have_count(1)
    link.click()
    expect(tab.locator(".squares li:not(.waits)")).to_have_count(4)
    live.ends("worker-2", 1, message="loss is NaN")
    expect(tab.locator("pre")).to_contain_text("loss is NaN", timeout=20_000)
    expect(tab.locator(".timeline svg path")).to_have_count(1)
    tab.go_back()
    expect(tab.get_by_role("link", name="mnist")).to_be_visible()


def test_a_square_says_what_it_waits_for(tab: Page, run_space: Space) -> None:
    """On hover, for screen readers, and in the table; the focus stays where it was."""
    create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}})
    tab.get_by_role("link", name="stuck").click()
    square = tab.locator(".squares .waits a")
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
    policy_api: ControlPlane,
    cluster_kubectl: Kubectl,
    picture: Picture,
    scheme: Literal["light", "dark"],
) -> None:
    """In the list, on the pages of a Run whose replica failed, and on those of the cluster."""
    assert policy_api is run_space.plane
    cluster_kubectl("apply", *POLICIES)
    create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}})
    replicas = {"master": {}, "worker": {"count": 3}}
    live = create_run(run_space, "mnist", framework="pytorch", replicas=replicas)
    failed = create_run(run_space, "resnet", framework="pytorch", backoffLimit=0)
    failed.until_phase("Running")
    live.until_phase("Running")
    # No webhook runs here; the page of the cluster has the pods that one has stamped.
    run_space.kubectl("annotate", "pods", "--all", f"{names.PLACEMENT}={{}}")
    failed.ends("master-0", 1, message="no")
    failed.until_phase("Failed")
    live.ends("worker-2", 1, message="loss is NaN")
    context = browser.new_context(color_scheme=scheme)
    one = f"/runs/{run_space.name}/mnist"
    try:
        tab = context.new_page()
        tab.goto(served.address)
        for path, shown in {
            "/runs": "a[href$=stuck]",
            one: ".timeline svg path",
            f"{one}/cost": "#live .note, #live td",
            f"{one}/master/0": "summary",
            "/cluster": "text=nodes are available",
            f"/pods/{run_space.name}/stuck-master-0": "summary",
            "/findings": "li .bad",
            "/change": "#old",
        }.items():
            tab.goto(served.origin + path)
            tab.locator(shown).first.wait_for()
            assert Axe().run(tab).response["violations"] == [], path
            assert [*faults_of_layout(tab)] == [], path
            titles = {"/runs": "runs", one: "run", "/cluster": "cluster", "/findings": "findings"}
            if title := titles.get(path):
                picture(tab, f"{title}-{scheme}")
    finally:
        context.close()
        cluster_kubectl("delete", *POLICIES)


def test_a_cluster_that_goes_away_is_said_and_one_that_is_back_is_shown(
    browser: Browser, start_module_plane: StartControlPlane
) -> None:
    """What was known stays on the page, with the reason why it may be old."""
    plane = start_module_plane(Settings(definitions=definitions()))
    run = {**run_manifest("before"), "metadata": {"name": "before", "namespace": "default"}}
    runs = f"/apis/{names.API_VERSION}/namespaces/default/runs"
    plane.api.create(runs, run)
    with served_pages.page("cluster", "--kubeconfig", str(plane.kubeconfig)) as served:
        context = browser.new_context()
        try:
            tab = context.new_page()
            tab.goto(served.address)
            expect(tab.get_by_role("link", name="before")).to_be_visible()
            plane.stop_component("kube-apiserver")
            expect(tab.locator(".trouble")).to_contain_text("may be old", timeout=60_000)
            expect(tab.get_by_role("link", name="before")).to_be_visible()
            plane.start_component("kube-apiserver")
            plane.wait_for_api_server()
            run["metadata"] = {"name": "after", "namespace": "default"}
            plane.api.create(runs, run)
            expect(tab.get_by_role("link", name="after")).to_be_visible(timeout=60_000)
            expect(tab.locator(".trouble")).to_have_count(0, timeout=30_000)
        finally:
            context.close()
