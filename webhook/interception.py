"""The pods that the API server sends to the webhook: entries of its configuration."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.sources.marks import Mark, Source
    from webhook.sources.table import SourceTable

# Pods that say themselves that they are ours, and namespaces that are placed as a whole: nobody
# else's pods are caught by surprise.
DEFAULT_SOURCES: Final = ("fairlead", "namespace")
# Pods here never reach Fairlead: it must not stand in the way of what it runs on.
EXCLUDED_NAMESPACES: Final = ("kube-system", names.NAMESPACE)
PATH: Final = "/mutate"
# Names that were there before there were others.
_NAMED: Final = {"fairlead": "pods", "namespace": "namespaces"}


def webhooks(
    sources: Collection[str] = DEFAULT_SOURCES,
    *,
    url: str = "",
    ca_bundle: bytes = b"",
    failure_policy: str = "Fail",
    timeout_seconds: int = 3,
    excluded_namespaces: Sequence[str] = EXCLUDED_NAMESPACES,
    only_namespaces: Sequence[str] = (),
    table: SourceTable = SHIPPED,
) -> list[dict[str, Any]]:
    """The `webhooks` of a MutatingWebhookConfiguration: one entry for each mark of the sources.

    `sources` are names of rows of the `table`; its order counts, not theirs. Entries
    exclude each other, since every entry that matches a pod is one more call. They lead to `url`,
    or without one to the installation's Service. Without `ca_bundle` (PEM) the field is left out,
    for whoever keeps certificates to write. With `only_namespaces` the rest of the cluster stays
    untouched, to try it out in a corner. Raises ValueError for a name that is in no row.
    """
    client: dict[str, Any] = {"url": url} if url else {"service": service(PATH)}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    reach = [of_namespaces("NotIn", excluded_namespaces)]
    if only_namespaces:
        reach.append(of_namespaces("In", only_namespaces))
    return [
        {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client,
            "rules": rules(),
            "namespaceSelector": {"matchExpressions": [*of_namespace, *reach]},
            "objectSelector": {"matchExpressions": of_pod},
            "matchPolicy": "Equivalent",
            "failurePolicy": failure_policy,
            "reinvocationPolicy": "IfNeeded",
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": timeout_seconds,
        }
        for name, of_pod, of_namespace in _selections(select_sources(sources, table))
    ]


def rules() -> list[dict[str, Any]]:
    """What every entry is called for: the creation of pods, and nothing else."""
    return [
        {
            "operations": ["CREATE"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "scope": "Namespaced",
        }
    ]


def select_sources(sources: Collection[str], table: SourceTable = SHIPPED) -> list[Source]:
    """The rows of these names: those of DEFAULT_SOURCES first, then in the order of the table.

    Raises ValueError for other names.
    """
    known = [source.name for source in table.rows]
    if unknown := sorted(set(sources) - set(known)):
        raise ValueError(
            f"unknown source {', '.join(map(repr, unknown))}: want some of "
            f"{', '.join(known)}; `fairlead sources` describes them"
        )
    found = [source for source in table.rows if source.name in sources]
    return sorted(found, key=lambda source: source.name not in DEFAULT_SOURCES)


def entry_name(source: str, number: int) -> str:
    """What the entry of a source's mark is called; a source's first mark has the number 0."""
    if source == "namespace":
        return f"{_NAMED[source]}.{names.GROUP}"
    return f"{_NAMED.get(source, source)}-{number}.{names.GROUP}"


def present(mark: Mark) -> dict[str, Any]:
    """The expression that holds for what carries the mark."""
    if mark.value is None:
        return {"key": mark.key, "operator": "Exists"}
    return {"key": mark.key, "operator": "In", "values": [mark.value]}


def absent(mark: Mark) -> dict[str, Any]:
    """The expression that holds for what does not."""
    if mark.value is None:
        return {"key": mark.key, "operator": "DoesNotExist"}
    return {"key": mark.key, "operator": "NotIn", "values": [mark.value]}


def _selections(
    sources: Sequence[Source],
) -> Iterator[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Of each entry the name, and the expressions that select pods and namespaces.

    Of two marks on a pod the later one's entry gets it. So one more entry is one more expression
    for each that is there already, which is how the components of the manifests add theirs.
    """
    marks = [
        (entry_name(source.name, number), mark)
        for source in sources
        for number, mark in enumerate(source.marks)
    ]
    for position, (name, mark) in enumerate(marks):
        # A mark of the pod's own tells more than its namespace's.
        others = marks if mark.namespace else marks[position + 1 :]
        of_pod = [absent(other) for _, other in others if not other.namespace]
        if mark.namespace:
            yield name, of_pod, [present(mark)]
        else:
            yield name, [present(mark), *of_pod], []


def of_namespaces(operator: str, namespaces: Sequence[str]) -> dict[str, Any]:
    """The expression on a namespace's labels that its name is one of these, or none of them."""
    # Every namespace carries its own name as this label.
    key = "kubernetes.io/metadata.name"
    return {"key": key, "operator": operator, "values": list(namespaces)}


def service(path: str) -> dict[str, Any]:
    """The installation's Service, as configurations of webhooks name it."""
    # The port is Kubernetes' default, written out: what is applied is what is stored.
    return {"name": names.WEBHOOK, "namespace": names.NAMESPACE, "path": path, "port": 443}


def exclusion_reason(namespace: str) -> str:
    """Why no installation sends pods of a namespace to the webhook; empty for all others."""
    if namespace not in EXCLUDED_NAMESPACES:
        return ""
    return f"no pod of the namespace {namespace} is sent to the webhook"


def leads_to(entry: Mapping[str, Any], namespace: str, name: str) -> bool:
    """Whether an entry of a configuration of webhooks leads to this Service; a url does not.

    The entry is as the API server gives it.
    """
    to = (entry.get("clientConfig") or {}).get("service") or {}
    return (to.get("namespace"), to.get("name")) == (namespace, name)
