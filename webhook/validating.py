"""Entries of the validating webhook configuration."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.interception import EXCLUDED_NAMESPACES, client_config, of_namespaces
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.sources.table import SourceTable

# The paths that validate writes of policies, and that return warnings on workloads.
POLICIES_PATH: Final = "/validate"
WORKLOADS_PATH: Final = "/foresee"
POLICIES: Final = f"policies.{names.GROUP}"
WORKLOADS: Final = f"workloads.{names.GROUP}"
_MORE_THAN_STATUS: Final = (
    "oldObject == null || object.?status == oldObject.?status || object.?spec != oldObject.?spec"
    " || object.metadata.?labels != oldObject.metadata.?labels"
    " || object.metadata.?annotations != oldObject.metadata.?annotations"
)


def webhooks(
    *,
    url: str = "",
    ca_bundle: bytes = b"",
    only_namespaces: Sequence[str] = (),
    namespace_labels: Sequence[Mapping[str, Any]] = (),
    policies: bool = True,
    table: SourceTable = SHIPPED,
) -> list[dict[str, Any]]:
    """Return the `webhooks` of a ValidatingWebhookConfiguration: policies, then workloads.

    `url` is the server's, without a path. For entries without `url` or `ca_bundle` (PEM), see
    interception.webhooks. If the webhook fails, the API server rejects a policy and admits a
    workload. Without `policies`, no writes of policies are sent: for a server that reads its
    policies from files, and so validates no objects.
    """
    reach = [of_namespaces("NotIn", EXCLUDED_NAMESPACES), *namespace_labels]
    if only_namespaces:
        reach.append(of_namespaces("In", only_namespaces))
    workloads = _workloads(url, ca_bundle, reach, table)
    return [_policies(url, ca_bundle), workloads] if policies else [workloads]


def _policies(url: str, ca_bundle: bytes) -> dict[str, Any]:
    return {
        "name": POLICIES,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(url, ca_bundle, POLICIES_PATH),
        "rules": [
            _rule(
                names.GROUP,
                tuple(names.POLICY_RESOURCES.values()),
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


def _makers(table: SourceTable) -> Mapping[str, Sequence[str]]:
    """Resources that make pods, by API group. A rule for an absent group matches nothing."""
    every = (kind for kinds in table.pod_kinds.values() for kind in kinds if kind.resource)
    group_resources = sorted({(kind.group, kind.resource) for kind in every})
    return {
        group: [resource for _, resource in pairs]
        for group, pairs in groupby(group_resources, key=itemgetter(0))
    }


def _workloads(
    url: str, ca_bundle: bytes, reach: Sequence[Mapping[str, Any]], table: SourceTable
) -> dict[str, Any]:
    return {
        "name": WORKLOADS,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(url, ca_bundle, WORKLOADS_PATH),
        "rules": [
            _rule(group, resources, ("CREATE", "UPDATE"), "Namespaced")
            for group, resources in _makers(table).items()
        ],
        "namespaceSelector": {"matchExpressions": list(reach)},
        "objectSelector": {},
        # Authors of Deployments and CronJobs get the warnings; their ReplicaSets and Jobs do not.
        "matchConditions": [
            {
                "name": "nobody-owns-it",
                "expression": "!has(object.metadata.ownerReferences) || "
                "!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)",
            },
            # Argo's controller writes the status of a Workflow with the rest of the object.
            {"name": "more-than-its-status", "expression": _MORE_THAN_STATUS},
        ],
        "matchPolicy": "Equivalent",
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": 2,
    }


def _client(url: str, ca_bundle: bytes, path: str) -> dict[str, Any]:
    return client_config(path, f"{url}{path}" if url else "", ca_bundle)


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
