"""Which series the alerts and the dashboard ask for, and whether an exposition has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from prometheus_client.parser import text_string_to_metric_families

from tests.manifests.kustomize import Json, of_kind, one

# What Prometheus adds to each series of a pod that the ServiceMonitor finds.
TARGET = frozenset({"component", "namespace", "pod"})
_SERIES = re.compile(r"\b((?:fairlead|process)_[a-z_]+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')


def alerts(objects: Sequence[Json]) -> list[Json]:
    groups = one(objects, "PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard(objects: Sequence[Json]) -> Json:
    (data,) = of_kind(objects, "ConfigMap", "fairlead-dashboard")
    (text,) = data["data"].values()
    found: Json = json.loads(text)
    return found


def expressions(objects: Sequence[Json]) -> list[str]:
    panels = dashboard(objects)["panels"]
    return [
        *(alert["expr"] for alert in alerts(objects)),
        *(target["expr"] for panel in panels for target in panel["targets"]),
    ]


def wanted(expression: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The series that an expression names, each with the labels that it selects by.

    What `by (…)` groups by counts as a label of each, with any value.
    """
    grouped = {
        label.strip(): ""
        for labels in re.findall(r"\bby \(([^)]*)\)", expression)
        for label in labels.split(",")
        if label.strip() != "le"
    }
    for name, matchers in _SERIES.findall(expression):
        labels = dict(_MATCHER.findall(matchers)) | grouped
        yield name, {key: value for key, value in labels.items() if key not in TARGET}


def missing(expositions: Sequence[str], expression: str) -> list[str]:
    """What of an expression none of the expositions has: a series, or a label of one.

    A series without a sample yet has no labels to compare.
    """
    families = [family for text in expositions for family in text_string_to_metric_families(text)]
    found = []
    for name, labels in wanted(expression):
        # Counters and histograms are declared without their samples' endings.
        stem = re.sub(r"_(total|bucket|sum|count)$", "", name)
        declared = [each for each in families if each.name in (name, stem)]
        keys = [set(one.labels) for each in declared for one in each.samples]
        if not declared:
            found.append(name)
        elif keys and not any(set(labels) <= each for each in keys):
            found.append(f"{name}{{{', '.join(labels)}}}")
    return found
