"""Pods and reviews as the API server sends them to a webhook."""

from __future__ import annotations

from typing import Any

import orjson

Json = dict[str, Any]

NAMESPACE = "ml-research"
NAMESPACE_LABELS = {"team": "research", "tier": "batch"}


def as_sent(pod: Json, namespace: str = NAMESPACE) -> Json:
    """The pod as the API server's review has it: defaults, token volume, tolerations, managers.

    Written after a review of Kubernetes 1.36; `pod` itself stays as it is.
    """
    pod = orjson.loads(orjson.dumps(pod))
    fields: Json = {
        "f:metadata": {
            "f:generateName": {},
            "f:labels": {".": {}, **{f"f:{key}": {} for key in pod["metadata"]["labels"]}},
        },
    }
    spec = pod["spec"]
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        container.update(
            terminationMessagePath="/dev/termination-log",
            terminationMessagePolicy="File",
            imagePullPolicy="IfNotPresent",
        )
    spec.update(
        dnsPolicy="ClusterFirst",
        enableServiceLinks=True,
        schedulerName="default-scheduler",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    fields["f:spec"] = _fields(spec)
    pod["metadata"]["namespace"] = namespace
    pod["metadata"]["managedFields"] = [
        {
            "manager": "kubectl-create",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]
    _add_service_account(spec)
    spec["tolerations"] = [
        {
            "key": f"node.kubernetes.io/{taint}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for taint in ("not-ready", "unreachable")
    ]
    spec.update(priority=0, preemptionPolicy="PreemptLowerPriority")
    pod["status"] = {}
    return pod


def _add_service_account(spec: Json) -> None:
    name = "kube-api-access-9w52c"
    spec["volumes"].append(
        {
            "name": name,
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {
                        "configMap": {
                            "name": "kube-root-ca.crt",
                            "items": [{"key": "ca.crt", "path": "ca.crt"}],
                        }
                    },
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "namespace",
                                    "fieldRef": {
                                        "apiVersion": "v1",
                                        "fieldPath": "metadata.namespace",
                                    },
                                }
                            ]
                        }
                    },
                ],
                "defaultMode": 420,
            },
        }
    )
    mount = {
        "name": name,
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        container["volumeMounts"].append(mount)
    spec.update(serviceAccountName="default", serviceAccount="default")


def _fields(value: Json) -> Json:
    """What managedFields says of an object: a member for each of its own, lists by their keys."""
    return {f"f:{key}": _owned(member) for key, member in value.items()}


def _owned(value: object) -> Json:
    if isinstance(value, dict) and value:
        return {".": {}, **_fields(value)}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {".": {}, **{_list_key(item): {".": {}, **_fields(item)} for item in value}}
    return {}


def _list_key(item: Json) -> str:
    for keys in (("name",), ("mountPath",), ("containerPort", "protocol")):
        if all(key in item for key in keys):
            return "k:" + orjson.dumps({key: item[key] for key in keys}).decode()
    return "k:{}"


def review(pod: Json, uid: str, namespace: str = NAMESPACE) -> bytes:
    """The body that the API server posts for the creation of `pod`, which as_sent() made."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return orjson.dumps(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": uid,
                "kind": kind,
                "resource": resource,
                "requestKind": kind,
                "requestResource": resource,
                "namespace": namespace,
                "operation": "CREATE",
                "userInfo": {
                    "username": "system:serviceaccount:ml-research:runner",
                    "uid": "3f1b7d5c-9c1e-4d6a-8a40-6f2b8e0f7a11",
                    "groups": ["system:serviceaccounts", "system:authenticated"],
                },
                "object": pod,
                "oldObject": None,
                "dryRun": True,
                "options": {
                    "kind": "CreateOptions",
                    "apiVersion": "meta.k8s.io/v1",
                    "dryRun": ["All"],
                },
            },
        }
    )
