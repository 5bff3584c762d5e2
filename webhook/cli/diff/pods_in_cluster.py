"""A cluster's live pods, the templates of its workloads, and what decisions need to know of it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.cli.cluster_surroundings import read_default_class, read_labels
from webhook.cli.diff.comparison_input import Facts, Planned, Pods, Template
from webhook.cli.diff.runs import plan_of
from webhook.cli.live.unstamped import read_configuration
from webhook.cli.offline import labels_of
from webhook.errors import ClusterError, InvalidRun
from webhook.identity import identify
from webhook.placement import nodes as nodes_of
from webhook.workloads.by_kind import KINDS
from webhook.workloads.find import pod_templates
from webhook.workloads.object import ANSWERED, answered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.kube.client import Client
    from webhook.workloads.object import Object

_OVER: Final = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
# What of a container a decision can ask for.
_OF_CONTAINERS: Final = ("name", "resources")
_OF_METADATA: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
# Pods are listed by themselves, and some kinds only become pods as other objects.
_WANTED: Final = frozenset(
    {key for key, kinds in KINDS.items() if not any(kind.reusable for kind in kinds)}
    - {("", "Pod")}
    | {(names.GROUP, names.RUN_KIND)}
)


async def read_facts(client: Client, namespace: str) -> Facts:
    """Labels by namespace, of this one or of all; the default PriorityClass, nodes, and which pods
    are sent to the webhook.

    Raises ClusterError.
    """
    labels = await read_labels(client, namespace)
    nodes = (await client.list("/api/v1/nodes", nodes_of.read)).items
    default = await read_default_class(client)
    return Facts(labels, default, nodes, await read_configuration(client))


async def read_pods(client: Client, namespace: str, known: Mapping[str, Mapping[str, str]]) -> Pods:
    """Templates of workloads, and live pods of runs that no workload stands for.

    Of this namespace or of all. What a workload makes, be it pods or other workloads, it stands
    for: a template is what comes to admission, and in a live pod what was placed then looks like
    its own word. Left out are pods that belong to no run, and whatever is over or being deleted.
    `known` are labels by namespace. Raises ClusterError.
    """
    within = f"/namespaces/{namespace}" if namespace else ""
    listed = await client.list(f"/api/v1{within}/pods", lambda pod: kept(pod, known))
    live = [answered("v1", "Pod", pod) for pod in listed.items if pod]
    workloads: list[Object] = []
    for kind in await listed_kinds(client):
        workloads += await _workloads(client, kind, namespace)
    uids = {each.metadata.get("uid") for each in workloads}
    makers = [*_templates([each for each in live if _owner(each) not in uids], live=True)]
    notes: list[str] = []
    for each in workloads:
        if _is_over(each.value) or _owner(each) in uids:
            continue
        if not each.is_own_run:
            makers += _templates([each], live=False)
            continue
        try:
            makers.append(Planned(ANSWERED, plan_of(each.value, each.namespace)))
        except InvalidRun as error:
            notes.append(f"{each.title} in {each.namespace} is left out: {error}")
    return Pods(makers, notes)


def _templates(objects: list[Object], *, live: bool) -> Iterator[Template | Planned]:
    for each in objects:
        for template in pod_templates(each):
            yield Template(template, each.namespace, live)


async def _workloads(client: Client, kind: Listed, namespace: str) -> list[Object]:
    found = await client.list(
        kind.path(namespace), lambda one: answered(kind.version, kind.kind, _slim(one))
    )
    return found.items


def _slim(workload: dict[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in workload["metadata"].items() if k != "managedFields"}
    return {**workload, "metadata": metadata}


def kept(pod: dict[str, Any], known: Mapping[str, Mapping[str, str]]) -> dict[str, Any] | None:
    """What a decision can ask of a live pod, as if it were created again; None if none is due.

    Its nodeName is the scheduler's word and not its author's: with it, a pod would keep its place
    whatever the policies say.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    labels = labels_of(metadata["namespace"], known)
    if (
        _is_over(pod)
        or names.MIRROR_POD in annotations
        or identify(metadata.get("labels") or {}, annotations, labels) is None
    ):
        return None
    kept = {key: value for key, value in spec.items() if key != "nodeName"}
    for key in ("containers", "initContainers"):
        if key in kept:
            kept[key] = [_picked(container, _OF_CONTAINERS) for container in kept[key]]
    kept.pop("ephemeralContainers", None)
    return {"metadata": _picked(metadata, _OF_METADATA), "spec": kept}


def _picked(value: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def _is_over(value: Mapping[str, Any]) -> bool:
    """Whether it is being deleted, or says in its status that it is over.

    By phase (pods, Runs), by a condition (Jobs, and all that took after them), or as Ray has it.
    """
    if value["metadata"].get("deletionTimestamp"):
        return True
    status = value.get("status") or {}
    conditions = status.get("conditions") or ()
    return (
        status.get("phase") in _OVER
        or status.get("jobDeploymentStatus") in _OVER
        or any(each.get("type") in _OVER and each.get("status") == "True" for each in conditions)
    )


def _owner(each: Object) -> str | None:
    """The uid of the object that makes it."""
    for owner in each.metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid"))
    return None


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
