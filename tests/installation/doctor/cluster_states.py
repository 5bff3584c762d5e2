"""An installation with nothing wrong, as the doctor sees it."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from certs.authority import new_authority
from certs.issue import Names, issue_server
from webhook import names, validating
from webhook.installation.doctor.cluster_state import ClusterState, Finding, Unread
from webhook.installation.doctor.program_checks import RUNS
from webhook.installation.object_kinds import CRD, Key, key_of
from webhook.installation.probe import Probe
from webhook.interception import record_annotations, webhooks

Json = dict[str, Any]
NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
SERVER_NAME = "fairlead-webhook.fairlead-system.svc"
FORBIDDEN = Unread("forbidden", "ask")
AUTHORITY = new_authority("fairlead", NOW)
LEAF = issue_server(AUTHORITY, "fairlead-webhook", Names((SERVER_NAME,)), NOW)
FIELDS = {"later": {"type": "string"}}
SPEC = {"type": "object", "properties": FIELDS}


def a_definition(spec: Json) -> Json:
    """One that is served, with this schema of a spec."""
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1alpha1", "served": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
        "spec": {"versions": [version]},
    }


DEFINITION = a_definition(SPEC)
POLICIES = key_of(CRD, "placementpolicies.fairlead.dev")


def configuration(**changes: Any) -> Json:
    """The webhook configuration, each entry with these changes."""
    entries = webhooks(ca_bundle=AUTHORITY.certificate)
    metadata = {
        "name": "fairlead",
        "resourceVersion": "1",
        "creationTimestamp": "2026-02-01T00:00:00Z",
    }
    return {"metadata": metadata, "webhooks": [{**each, **changes} for each in entries]}


def judging(*, policies: bool = True, **changes: Any) -> Json:
    """The validating configuration, each entry with these changes."""
    entries = validating.webhooks(ca_bundle=AUTHORITY.certificate, policies=policies)
    return {"webhooks": [{**each, **changes} for each in entries]}


def deployment(name: str, replicas: int, image: str = "fairlead:0.1.0", **status: Any) -> Json:
    """One that is as it should be, but for its status."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
    metadata: Json = {
        "name": name,
        "namespace": "fairlead-system",
        "generation": 1,
        "creationTimestamp": "2026-02-01T00:00:00Z",
    }
    if name == names.CONTROLLER:
        entries = ("pods-0", "namespaces"), ("policies", "workloads")
        metadata["annotations"] = record_annotations(*entries, ())
    return {
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"spec": {"containers": [{"name": "main", "image": image}]}},
        },
        "status": {"observedGeneration": 1, **counts, **status},
    }


BUDGET = key_of("PodDisruptionBudget", names.WEBHOOK, names.NAMESPACE)


def a_budget(labels: Json | None = None, **spec: Any) -> Json:
    """One that an installation has."""
    metadata: Json = {"name": names.WEBHOOK, "namespace": names.NAMESPACE}
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "spec": {"maxUnavailable": 1, **spec}}


def seen(**changes: Any) -> ClusterState:
    """Nothing wrong but the changes."""
    good: Json = {
        "now": NOW,
        "version": "0.1.0",
        "server": "v1.36.3",
        "definitions": {RUNS.name: DEFINITION, POLICIES.name: DEFINITION},
        "expected": {RUNS: DEFINITION, POLICIES: DEFINITION},
        "wanted": {BUDGET: a_budget()},
        "stored": {BUDGET: a_budget()},
        "deployments": {
            "fairlead-controller": deployment("fairlead-controller", 2),
            "fairlead-webhook": deployment("fairlead-webhook", 3),
        },
        "endpoints": [True, True, True],
        "configuration": configuration(),
        "judging": judging(policies=False),
        "serving": {"tls.crt": LEAF.certificate, "ca.crt": AUTHORITY.certificate},
        "leader": "fairlead-controller-1",
        "policies": {},
        "probe": Probe("default", stamped=True),
    }
    return ClusterState(**{**good, **changes})


def bundle(pem: bytes) -> str:
    """As a caBundle is written."""
    return base64.b64encode(pem).decode()


def days(count: float) -> timedelta:
    return timedelta(days=count)


def text_of(finding: Finding) -> str:
    """What was seen, and the cure below it."""
    return "\n".join(filter(None, (finding.what, finding.cure)))


def by_key(documents: Iterable[Json]) -> dict[Key, Json]:
    """The guards as they are read."""
    return {key_of(each["kind"], each["metadata"]["name"]): each for each in documents}
