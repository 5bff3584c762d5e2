"""Alerts and dashboard are whole, and of what matters.

tests/cluster/test_installing.py compares their series with those that both programs expose.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.manifests.kustomize import Json, of_kind, one, selects
from tests.manifests.monitoring import alerts, dashboard, expressions, missing
from webhook import metric_names, names

Build = Callable[[str], tuple[Json, ...]]
ALERTS = Path(__file__).parents[2] / "docs" / "guides" / "alerts.md"
EXPOSITION = """\
# TYPE fairlead_leader gauge
fairlead_leader 1.0
# TYPE fairlead_reconciles_total counter
fairlead_reconciles_total{result="done"} 1.0
# TYPE fairlead_creations_refused_total counter
"""


@pytest.fixture(scope="module")
def objects(build: Build) -> tuple[Json, ...]:
    """The overlay's."""
    return build("monitoring")


def test_what_is_scraped_is_every_pod_ready_or_not(objects: tuple[Json, ...]) -> None:
    """Those that are not ready tell most."""
    spec = one(objects, "ServiceMonitor")["spec"]
    (service,) = [
        each
        for each in of_kind(objects, "Service")
        if selects(spec["selector"], each["metadata"]["labels"])
    ]
    assert service["spec"]["publishNotReadyAddresses"]
    (port,) = service["spec"]["ports"]
    assert [each["port"] for each in spec["endpoints"]] == [port["name"]]
    for deployment in of_kind(objects, "Deployment"):
        pod = deployment["spec"]["template"]
        assert selects({"matchLabels": service["spec"]["selector"]}, pod["metadata"]["labels"])
        ports = [each["name"] for each in pod["spec"]["containers"][0]["ports"]]
        assert port["targetPort"] in ports


def test_every_alert_says_what_is_wrong_and_what_to_do(objects: tuple[Json, ...]) -> None:
    """And how bad it is; no two have one name."""
    found = alerts(objects)
    assert len({alert["alert"] for alert in found}) == len(found)
    for alert in found:
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert set(alert["annotations"]) == {"summary", "description"}
        assert re.fullmatch(r"\d+[mh]", alert.get("for", "0m"))
        assert all(text.endswith(".") for text in alert["annotations"].values())


def test_there_is_an_alert_for_what_matters(objects: tuple[Json, ...]) -> None:
    """Expiry, nobody ready, what was refused, overload, no leader, nothing sent."""
    named = {alert["alert"]: alert["expr"] for alert in alerts(objects)}
    for name, series in (
        ("FairleadWebhookNotReady", metric_names.READY),
        ("FairleadCertificateExpires", metric_names.CERTIFICATE_EXPIRY),
        ("FairleadAuthorityExpires", metric_names.CERTIFICATE_EXPIRY),
        ("FairleadCertificateRefused", metric_names.REFUSED),
        ("FairleadPoliciesRefused", metric_names.REFUSED),
        ("FairleadShedsRequests", metric_names.ADMISSION_REQUESTS),
        ("FairleadControllerWithoutLeader", metric_names.LEADER),
        ("FairleadNotIntercepting", metric_names.INTERCEPTING),
        ("FairleadInterceptionUnknown", metric_names.INTERCEPTING),
        ("FairleadPodsUnplaced", metric_names.UNPLACED_PODS),
    ):
        assert series in named[name]


def test_each_alert_has_its_row_in_the_guide(objects: tuple[Json, ...]) -> None:
    """Critical alerts first, then the others, each in the order of the rules."""
    rows = re.findall(r"^\| `(Fairlead\w+)`( \(critical\))? \|", ALERTS.read_text(), re.MULTILINE)
    expected = sorted(
        ((each["alert"], each["labels"]["severity"]) for each in alerts(objects)),
        key=lambda row: row[1],
    )
    assert [(name, "critical" if mark else "warning") for name, mark in rows] == expected


def test_expressions_are_balanced(objects: tuple[Json, ...]) -> None:
    """No parenthesis, brace or bracket is left open."""
    for expression in expressions(objects):
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression


def test_panels_do_not_overlap(objects: tuple[Json, ...]) -> None:
    """Within Grafana's 24 columns, none over another; each has an identity and a source."""
    panels = panels_of(objects)
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (place["x"] + right, place["y"] + down)
            for right in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"


def panels_of(objects: tuple[Json, ...]) -> list[Json]:
    """The panels of the dashboard, with its rows."""
    panels: list[Json] = dashboard(objects)["panels"]
    return panels


def test_the_dashboard_begins_with_whether_placement_is_in_force(
    objects: tuple[Json, ...],
) -> None:
    """Each row has what one asks at once; each panel says what it means."""
    panels = panels_of(objects)
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert rows[:2] == ["Is placement in force?", "Rejections"]
    assert panels[0]["title"] == rows[0]
    tiles = [panel for panel in panels if panel["type"] == "stat"]
    assert [panel["title"] for panel in panels[1 : len(tiles) + 1]] == [
        panel["title"] for panel in tiles
    ]
    for panel in panels:
        assert panel["type"] == "row" or panel["description"].endswith(".")


def color(panel: Json, value: float) -> str:
    """The colour in which a panel shows a value."""
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    *_, last = (step for step in steps if step["value"] is None or step["value"] <= value)
    return str(last["color"])


def test_what_is_wrong_has_another_colour(objects: tuple[Json, ...]) -> None:
    """A certificate of two days does not look like one of 300, and the alert's limit is red."""
    day = 86400
    tiles = {panel["title"]: panel for panel in panels_of(objects) if panel["type"] == "stat"}
    for title, bad, good in (
        ("Placement in force", 0, 1),
        ("Pods without a placement", 1, 0),
        ("Ready replicas", 0, 3),
        ("Leads", 0, 1),
        ("Serving certificate ends in", 2 * day, 300 * day),
        ("Serving certificate ends in", 4.9 * day, 30 * day),
        ("Authority ends in", 59 * day, 300 * day),
    ):
        assert (color(tiles[title], bad), color(tiles[title], good)) == ("red", "green"), title
        assert tiles[title]["options"]["colorMode"] == "background"
    assert color(tiles["Policy sets in force"], 2) == color(tiles["Leads"], 2) == "orange"


def test_every_panel_is_about_the_namespace_that_is_chosen(objects: tuple[Json, ...]) -> None:
    """Two installations, or what else exposes such series, are not added up."""
    (variable,) = [
        each for each in dashboard(objects)["templating"]["list"] if each["name"] == "namespace"
    ]
    assert variable["current"]["value"] == names.NAMESPACE
    for panel in panels_of(objects):
        for target in panel["targets"]:
            series = re.findall(r"\b(?:fairlead|process)_[a-z_]+(\{[^}]*\})?", target["expr"])
            assert series
            assert all('namespace="$namespace"' in selector for selector in series)


def test_a_series_or_a_label_that_is_not_exposed_is_missed() -> None:
    """So that the comparison with both programs says something."""
    for expression, wanted in (
        ("sum(fairlead_leader)", []),
        ('sum(rate(fairlead_reconciles_total{result="failed"}[5m]))', []),
        ("sum by (pod, result) (fairlead_reconciles_total)", []),
        ("fairlead_creations_refused_total", []),
        ("fairlead_leaders", ["fairlead_leaders"]),
        ('fairlead_reconciles_total{code="1"}', ["fairlead_reconciles_total{code}"]),
        ("sum by (phase) (fairlead_leader)", ["fairlead_leader{phase}"]),
    ):
        assert missing([EXPOSITION], expression) == wanted, expression
