"""Kinds of which no pod template is found are told, each once, and what makes no pods is not."""

from __future__ import annotations

import pytest

from tests.wording import mentions
from webhook.workloads.object import Object
from webhook.workloads.unread import unread


def of(version: str, kind: str, name: str = "a") -> Object:
    """An object without a template."""
    return Object("f", {"apiVersion": version, "kind": kind, "metadata": {"name": name}})


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("apps/v1", "ControllerRevision"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("fairlead.dev/v1alpha1", "PlacementPolicy"),
    ],
)
def test_what_makes_no_pods_is_no_matter(version: str, kind: str) -> None:
    """Of these groups every kind that makes pods is known."""
    assert unread([of(version, kind)]) == []


@pytest.mark.parametrize(
    ("version", "kind", "facts"),
    [
        ("argoproj.io/v1alpha1", "Workflow", ["Workflow makes pods", "not read", "Workflow/a"]),
        ("monitoring.coreos.com/v1", "Prometheus", ["Prometheus makes pods"]),
        ("apps/v1", "Deployment", ["Deployment makes pods", "no pod template"]),
        ("example.com/v1", "Thing", ["Thing", "not known"]),
        ("other.dev/v1", "Workflow", ["Workflow", "not known"]),
    ],
)
def test_what_may_make_pods_is_told(version: str, kind: str, facts: list[str]) -> None:
    """By group and kind, for kinds of one name mean different things."""
    (line,) = unread([of(version, kind)])
    mentions(line, *facts)


def test_each_kind_is_told_once() -> None:
    """And all that nobody knows in one line."""
    flows = [of("argoproj.io/v1alpha1", "Workflow", name) for name in "abc"]
    known, unknown = unread([*flows, of("x.dev/v1", "A"), of("y.dev/v1", "B")])
    mentions(known, "Workflow/a and 2 more")
    mentions(unknown, "A, B")
