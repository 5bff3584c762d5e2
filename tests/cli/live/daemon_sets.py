"""A DaemonSet of a run, with its pod on a node that a requirement excludes, for a fake API."""

from __future__ import annotations

import json
from typing import Any

from tests.objects import required_affinity
from webhook import names

Json = dict[str, Any]
NODES = "/api/v1/nodes"
_OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent"}
_NODE = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LABELS = {names.RUN: "r"}

POD: Json = {
    "metadata": {
        "name": "agent-x",
        "namespace": "ml",
        "uid": "uid-agent-x",
        "labels": _LABELS,
        "annotations": {names.PLACEMENT: json.dumps({"set": "12ab", "policies": {}})},
        "ownerReferences": [{**_OWNER, "controller": True}],
    },
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "main"}],
        "affinity": required_affinity({"matchFields": [_NODE]}),
    },
}
SET: Json = {
    "metadata": {"name": "agent", "namespace": "ml", "uid": "uid-agent"},
    "spec": {
        "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "main"}]}}
    },
}
PATHS: Json = {
    "/apis/apps/v1": {
        "resources": [
            {"name": name, "kind": kind, "namespaced": True}
            for name, kind in (("daemonsets", "DaemonSet"), ("replicasets", "ReplicaSet"))
        ]
    },
    "/apis/apps/v1/namespaces/ml/daemonsets/agent": SET,
    "/apis/apps/v1/namespaces/ml/daemonsets": [SET],
    "/api/v1/namespaces/ml/pods/agent-x": POD,
    "/api/v1/namespaces/ml/pods": [POD],
    NODES: [{"metadata": {"name": "n1", "labels": {"pool": "a"}}, "spec": {}, "status": {}}],
    "/apis/fairlead.dev/v1alpha1/placementpolicies": [
        {
            "metadata": {"name": "pool"},
            "spec": {"requirements": {"nodeSelector": {"pool": "b"}}},
        }
    ],
}
