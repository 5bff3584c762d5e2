"""The MutatingWebhookConfiguration that sends an ML run's pods to Fairlead."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIGURATION_NAME: Final = "fairlead"
# Pods here never reach Fairlead: it must not stand in the way of what it runs on.
EXCLUDED_NAMESPACES: Final = ("kube-system", "fairlead-system")


def mutating_webhook_configuration(
    url: str,
    ca_bundle: bytes,
    *,
    labels: Sequence[str] = (names.RUN,),
    failure_policy: str = "Fail",
    timeout_seconds: int = 3,
    excluded_namespaces: Sequence[str] = EXCLUDED_NAMESPACES,
    only_namespaces: Sequence[str] = (),
    name: str = CONFIGURATION_NAME,
) -> dict[str, Any]:
    """The configuration that has pods reviewed at `url`, which `ca_bundle` (PEM) vouches for.

    A pod is reviewed if it carries one of the label keys, or if its namespace says
    `fairlead.dev/place: all`. Entries exclude each other, since every entry that matches a pod is
    one more call. Add the marks of other systems to `labels` to intercept their pods too. With
    `only_namespaces` the rest of the cluster stays untouched, to try it out in a corner.
    """
    entries: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
        (f"pods-{number}", [*_absent(labels[:number]), _present(label)], [])
        for number, label in enumerate(labels)
    ]
    whole = {"key": names.PLACE, "operator": "In", "values": [names.PLACE_ALL]}
    entries.append(("namespaces", _absent(labels), [whole]))
    reach = [_namespaces("NotIn", excluded_namespaces)]
    if only_namespaces:
        reach.append(_namespaces("In", only_namespaces))
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{entry}.{names.GROUP}",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": url,
                    "caBundle": base64.b64encode(ca_bundle).decode(),
                },
                "rules": [
                    {
                        "operations": ["CREATE"],
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["pods"],
                        "scope": "Namespaced",
                    }
                ],
                "namespaceSelector": {"matchExpressions": [*of_namespace, *reach]},
                "objectSelector": {"matchExpressions": of_pod},
                "matchPolicy": "Equivalent",
                "failurePolicy": failure_policy,
                "reinvocationPolicy": "IfNeeded",
                "sideEffects": "None",
                "timeoutSeconds": timeout_seconds,
            }
            for entry, of_pod, of_namespace in entries
        ],
    }


def _namespaces(operator: str, namespaces: Sequence[str]) -> dict[str, Any]:
    # Every namespace carries its own name as this label.
    key = "kubernetes.io/metadata.name"
    return {"key": key, "operator": operator, "values": list(namespaces)}


def _present(label: str) -> dict[str, Any]:
    return {"key": label, "operator": "Exists"}


def _absent(labels: Sequence[str]) -> list[dict[str, Any]]:
    return [{"key": label, "operator": "DoesNotExist"} for label in labels]
