"""Entries of the validating webhook configuration."""

from __future__ import annotations

import base64
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.interception import EXCLUDED_NAMESPACES, of_namespaces, service
from webhook.sources import POD_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Paths of the checks of policies before they are stored, and of workloads about future pods.
POLICIES_PATH: Final = "/validate"
WORKLOADS_PATH: Final = "/foresee"
POLICIES: Final = f"policies.{names.GROUP}"
WORKLOADS: Final = f"workloads.{names.GROUP}"
# Resources that make pods, by API group. A rule for a group that is not there matches nothing.
_RESOURCES: Final = sorted(
    {(kind.group, kind.resource) for kinds in POD_KINDS.values() for kind in kinds if kind.resource}
)
_MAKERS: Final[Mapping[str, Sequence[str]]] = {
    group: [resource for _, resource in pairs]
    for group, pairs in groupby(_RESOURCES, key=itemgetter(0))
}


def webhooks(
    *,
    url: str = "",
    ca_bundle: bytes = b"",
    excluded_namespaces: Sequence[str] = EXCLUDED_NAMESPACES,
    only_namespaces: Sequence[str] = (),
    policies: bool = True,
) -> list[dict[str, Any]]:
    """The `webhooks` of a ValidatingWebhookConfiguration: policies, then workloads.

    `url` is the server's, without a path; without it, the installation's Service is used. Without
    `ca_bundle` (PEM) the field is left out: see interception.webhooks. If the webhook does not
    answer, a policy is rejected, and a workload is admitted. Without `policies`, no policies are
    sent: for a server with policies from files, which validates no objects.
    """
    reach = [of_namespaces("NotIn", excluded_namespaces)]
    if only_namespaces:
        reach.append(of_namespaces("In", only_namespaces))
    workloads = _workloads(url, ca_bundle, reach)
    return [_policies(url, ca_bundle), workloads] if policies else [workloads]


def _policies(url: str, ca_bundle: bytes) -> dict[str, Any]:
    return {
        "name": POLICIES,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(url, ca_bundle, POLICIES_PATH),
        "rules": [
            _rule(
                names.GROUP,
                (names.PLACEMENT_POLICIES, names.CAPACITY_CLASSES, names.PLACEMENT_EXCEPTIONS),
                ("CREATE", "UPDATE", "DELETE"),
                "Cluster",
            )
        ],
        "namespaceSelector": {},
        "objectSelector": {},
        "matchPolicy": "Equivalent",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }


def _workloads(url: str, ca_bundle: bytes, reach: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": WORKLOADS,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(url, ca_bundle, WORKLOADS_PATH),
        "rules": [
            _rule(group, resources, ("CREATE", "UPDATE"), "Namespaced")
            for group, resources in _MAKERS.items()
        ],
        "namespaceSelector": {"matchExpressions": list(reach)},
        "objectSelector": {},
        # What another workload has made was told of with that one: a Deployment's ReplicaSet, a
        # CronJob's Job.
        "matchConditions": [
            {
                "name": "nobody-owns-it",
                "expression": "!has(object.metadata.ownerReferences) || "
                "!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)",
            },
        ],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": 2,
    }


def _client(url: str, ca_bundle: bytes, path: str) -> dict[str, Any]:
    client: dict[str, Any] = {"url": f"{url}{path}"} if url else {"service": service(path)}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    return client


def _rule(
    group: str, resources: Sequence[str], operations: Sequence[str], scope: str
) -> dict[str, Any]:
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": ["*"],
        "resources": list(resources),
        "scope": scope,
    }
