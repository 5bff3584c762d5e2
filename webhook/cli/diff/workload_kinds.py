"""Which kinds of workload a cluster serves, and under which paths they are listed."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError
from webhook.workloads.by_kind import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.kube.client import Client

# Pods are listed by themselves, and some kinds only become pods as other objects.
_WANTED: Final = frozenset(
    {key for key, kinds in KINDS.items() if not any(kind.reusable for kind in kinds)}
    - {("", "Pod")}
    | {(names.GROUP, names.RUN_KIND)}
)


class Listed(NamedTuple):
    """A kind as the API server lists it."""

    version: str
    kind: str
    resource: str

    def path(self, namespace: str) -> str:
        """Where its objects are listed, in all namespaces if none is named."""
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self.resource}"


async def listed_kinds(client: Client) -> list[Listed]:
    """The kinds of which the cluster has definitions, each in one version. Raises ClusterError."""
    found: dict[tuple[str, str], Listed] = {}
    groups = {group for group, _ in _WANTED}
    served = (await client.get("/apis")).get("groups") or ()
    versions = ["v1", *(v for each in served if each["name"] in groups for v in _versions(each))]
    for version in versions:
        group = version.rpartition("/")[0]
        for resource in await _resources(client, version):
            kind = resource["kind"]
            listable = "/" not in resource["name"] and "list" in (resource.get("verbs") or ())
            if listable and (group, kind) in _WANTED:
                found.setdefault((group, kind), Listed(version, kind, resource["name"]))
    return list(found.values())


def _versions(group: dict[str, Any]) -> Iterable[str]:
    """The group's versions, the preferred one first."""
    preferred = (group.get("preferredVersion") or {}).get("groupVersion")
    every = [each["groupVersion"] for each in group["versions"]]
    return sorted(every, key=lambda version: version != preferred)


async def _resources(client: Client, version: str) -> list[dict[str, Any]]:
    path = f"/apis/{version}" if "/" in version else f"/api/{version}"
    try:
        found: list[dict[str, Any]] = (await client.get(path)).get("resources") or []
    except ClusterError as error:
        # A definition may be deleted between two questions.
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return []
    return found
