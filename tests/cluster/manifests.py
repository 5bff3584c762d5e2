"""Objects that tests create: pods that nobody ever pulls, and what makes such pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.objects import an_object, required_affinity
from webhook import names

Json = dict[str, Any]

SPOT = "cloud.google.com/gke-spot"
# The class of spot nodes, as the first document of a text of policies.
SPOT_CLASS = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec:
  nodes:
    - labels: {cloud.google.com/gke-spot: "true"}
      taints: [{key: cloud.google.com/gke-spot, value: "true", effect: NoSchedule}]
---"""
# One of that name by a label, as a document of its own.
LABELLED_SPOT = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {lifecycle: spot}}]}
"""
SPOT_TAINT = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}


def policy_text(name: str, *spec: str) -> str:
    """A policy as a document of a text of policies; `spec` in lines of YAML."""
    lines = "\n  ".join(spec)
    return f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec:
  {lines}
---"""


WORKERS_ON_SPOT = SPOT_CLASS + policy_text(
    "workers-on-spot",
    "match: {roles: [worker]}",
    "overrides: {capacity: [{class: spot, mode: Constrain}]}",
)


def spec(**fields: object) -> Json:
    """A pod's spec of one container."""
    return {"containers": [{"name": "main", "image": "example.invalid/none"}], **fields}


def pod(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **fields: object,
) -> Json:
    """A pod of a run, unless told otherwise by its labels."""
    return an_object(
        "v1",
        "Pod",
        {
            "name": name,
            "labels": {names.RUN: "r"} if labels is None else dict(labels),
            "annotations": dict(annotations or {}),
        },
        spec(**fields),
    )


def template(*, labels: Mapping[str, str] | None = None, **fields: object) -> Json:
    """A template of such pods, that a selector on `app: app` finds."""
    return {
        "metadata": {"labels": {names.RUN: "r", "app": "app", **(labels or {})}},
        "spec": spec(**fields),
    }


def workload(kind: str, name: str, pods: Json | None = None, **fields: object) -> Json:
    """A Deployment, StatefulSet or DaemonSet."""
    return an_object(
        "apps/v1",
        kind,
        name,
        {
            "selector": {"matchLabels": {"app": "app"}},
            "template": pods or template(),
            **fields,
        },
    )


def job_spec() -> Json:
    return {"template": template(restartPolicy="Never")}


def terms(*expressions: Json) -> Json:
    """An affinity that requires one of several terms, of one expression each."""
    return required_affinity(*[{"matchExpressions": [one]} for one in expressions])


def within(key: str, *values: str) -> Json:
    """An expression that wants one of these values."""
    return {"key": key, "operator": "In", "values": list(values)}


def required_terms(seen: Json) -> list[list[Json]]:
    """The expressions of every required term of a pod."""
    required = seen["spec"]["affinity"]["nodeAffinity"]
    found = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [term["matchExpressions"] for term in found]


def open_definition(group: str, kind: str, version: str = "v1") -> Json:
    """A definition that takes any object of a kind."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
        "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
    }
    head = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    return an_object(*head, f"{plural}.{group}", spec)
