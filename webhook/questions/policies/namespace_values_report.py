"""What policies take from labels of namespaces, as a table and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.policy.namespace_values import namespace_values
from webhook.questions.cluster_surroundings import read_labels
from webhook.questions.live.live_answers import policy_set
from webhook.questions.objects import labels_in
from webhook.questions.offline import read_policies
from webhook.questions.where import CLUSTER, Where, paths_of
from webhook.text.layout import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.policy.namespace_values import NamespaceValue
    from webhook.policy.policy_set import PolicySet

_NONE: Final = {True: "none: pods are rejected", False: "none: left out"}


def read_rows(
    policies: Sequence[Where], namespaces: Where, kubeconfig: Kubeconfig
) -> list[NamespaceValue]:
    """Return the values, policy by policy. Raises UnreadableInput and ClusterError."""
    paths = paths_of(policies)
    if paths and namespaces is not CLUSTER:
        return list(namespace_values(read_policies(paths).policies, labels_in(namespaces)))
    compiled, labels = kubeconfig.ask(lambda client: _ask(client, policies, namespaces))
    return list(namespace_values(compiled.policies, labels))


async def _ask(
    client: Client, policies: Sequence[Where], namespaces: Where
) -> tuple[PolicySet, Mapping[str, Mapping[str, str]]]:
    compiled = await policy_set(client, policies)
    return compiled, await read_labels(client) if namespaces is CLUSTER else labels_in(namespaces)


def lines(rows: Sequence[NamespaceValue]) -> Iterator[str]:
    """Yield a table with a row for each setting and namespace."""
    if not rows:
        yield "No policy takes a value from a namespace."
    head = ("policy", "setting", "namespace label", "namespace", "value")
    yield from table(head, [[*_cells(row)] for row in rows])


def _cells(row: NamespaceValue) -> Iterator[str]:
    yield row.policy
    yield f"{row.setting.part}.{row.setting.written}"
    yield row.setting.label
    yield row.namespace
    yield f"{row.value} (default)" if row.value and row.lacks else row.value or _NONE[row.rejects]


def document(rows: Sequence[NamespaceValue]) -> dict[str, Any]:
    """Return the same as JSON; `value` is null without one."""
    return {
        "values": [
            {
                "policy": row.policy,
                "setting": f"{row.setting.part}.{row.setting.written}",
                "namespaceLabel": row.setting.label,
                "namespace": row.namespace,
                "value": row.value or None,
                "isDefault": bool(row.value) and row.lacks,
                "rejects": row.rejects,
            }
            for row in rows
        ]
    }
