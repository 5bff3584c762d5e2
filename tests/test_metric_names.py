"""Metrics have one table of names, which both programs, the manifests and the docs go by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from tests.controller.runs import Api
from webhook import metric_names
from webhook.controller.certificates.certificate_metrics import CertificateMetrics
from webhook.controller.controller_metrics import ControllerMetrics
from webhook.controller.controller_process import watch_parts
from webhook.controller.interception import Interception
from webhook.controller.observed_state import ObservedState
from webhook.kube.watches import Watches
from webhook.server.health import Exposition
from webhook.server.watch_metrics import WatchMetrics
from webhook.server.webhook_metrics import Metrics

ROOT = Path(__file__).resolve().parents[1]
NAMES = {value for name, value in vars(metric_names).items() if name.isupper()}


def names_of(registry: CollectorRegistry) -> set[str]:
    """The names of Fairlead's own metrics, as readers ask for them."""
    return {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in registry.collect()
        if family.name.startswith("fairlead_")
    }


def webhooks() -> CollectorRegistry:
    """All that a webhook exposes once it has shaken hands with itself and checked its policies."""
    metrics = Metrics()
    metrics.policies_checked(0)
    metrics.handshake_made(verified=True)
    WatchMetrics(metrics.registry, Watches(Api().client))
    return metrics.registry


def controllers() -> CollectorRegistry:
    """All that a controller exposes which keeps certificates, too."""
    exposition = Exposition()
    metrics = ControllerMetrics(exposition.registry)
    CertificateMetrics(exposition.registry)
    WatchMetrics(exposition.registry, Watches(Api().client))
    client = Api().client
    Interception(client, client, exposition.registry, namespace="x")
    known = ObservedState(clock=lambda: 0.0)
    parts: dict[str, Any] = {
        "known": known,
        "queue_depth": lambda: 0.0,
        "queue_age": lambda: 0.0,
        "failing_age": lambda: 0.0,
        "announcer": SimpleNamespace(dropped=0),
        "starts": SimpleNamespace(count=lambda _: 0, longest_wait=lambda: 0.0),
    }
    controller = cast("Any", SimpleNamespace(**parts))
    writer = cast("Any", SimpleNamespace(throttled=0))
    watch_parts(
        metrics, controller, writer, cast("Any", SimpleNamespace(pace=SimpleNamespace(rate=1.0)))
    )
    return exposition.registry


def test_the_table_has_what_both_programs_expose() -> None:
    """Nothing beside it is exposed, and nothing stands in it that nobody exposes."""
    assert names_of(webhooks()) | names_of(controllers()) == NAMES


def test_every_gauge_is_on_the_dashboard() -> None:
    """A state that nobody sees in a picture is found when it is too late."""
    gauges = {
        family.name
        for registry in (webhooks(), controllers())
        for family in registry.collect()
        if family.type == "gauge" and family.name in NAMES
    }
    shown = (ROOT / "manifests" / "components" / "monitoring" / "dashboard.json").read_text()
    assert {name for name in gauges if not re.search(rf"\b{name}\b", shown)} == set()


def test_no_name_stands_twice() -> None:
    """Or one of two would be forgotten when it changes."""
    values = [value for name, value in vars(metric_names).items() if name.isupper()]
    assert len(values) == len(NAMES)
    assert all(re.fullmatch(r"fairlead_[a-z_]+", name) for name in NAMES)


def test_no_other_module_writes_a_metric_name_itself() -> None:
    """A reader that types a name again finds nothing once the table changes it."""
    table = ROOT / "webhook" / "metric_names.py"
    typed = [
        (str(module.relative_to(ROOT)), name)
        for module in (ROOT / "webhook").rglob("*.py")
        if module != table
        for name in sorted(NAMES)
        if re.search(rf"{name}\b", module.read_text())
    ]
    assert typed == []


def pages() -> Iterable[Path]:
    """What tells people and Prometheus of metrics."""
    yield ROOT / "CHANGELOG.md"
    yield from (ROOT / "docs").rglob("*.md")
    yield from (each for each in (ROOT / "manifests").rglob("*") if each.is_file())


@pytest.mark.parametrize("page", sorted(pages()), ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_metrics_exist(page: Path) -> None:
    """In alerts, dashboard and docs; a histogram's series have endings of their own."""
    found = set(re.findall(r"\bfairlead_[a-z_]+", page.read_text()))
    series = {f"{name}_{end}" for name in NAMES for end in ("bucket", "sum", "count")}
    assert found <= NAMES | series
