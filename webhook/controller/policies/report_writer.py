"""Keep a policy report in each namespace with pods of runs, while this process leads."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.api_paths import NAMESPACES, CollectionPath
from webhook.cluster_objects.watched_objects import value_of_default
from webhook.controller.policies.pod_results import JudgedPod, PodJudge
from webhook.controller.policies.report_documents import (
    NAME,
    NO_DEFINITION,
    OWNER,
    RESOURCE,
    SELECTOR,
    collection,
    differs,
    report,
)
from webhook.decision.arrival import Cluster
from webhook.decision.prospects import Prospects
from webhook.errors import ClusterError, NotLeading
from webhook.evaluation.plugins import inputs_of
from webhook.evaluation.world import World
from webhook.placement import nodes as placement_nodes
from webhook.placement.node_groups import NodeGroups
from webhook.policy.refused_pods import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from webhook.cluster_objects.watched_objects import ClusterClasses, NodeView
    from webhook.kube.client import Client
    from webhook.kube.writer import Writes
    from webhook.policy.policy_set import PolicySet

    Json = dict[str, Any]

_logger = logging.getLogger(__name__)

# Seconds between two passes over all pods.
REPORT_INTERVAL: Final = 300.0
# Seconds until the next look for policies and nodes that are not known yet.
_SOON: Final = 0.5
# Pods in one page; each page is judged in a thread, and then forgotten.
_PAGE_SIZE: Final = 500
# Seconds between two writes. Runs use hundreds of writes per second of the same limit.
_SPACING: Final = 0.2
_PODS: Final = CollectionPath("v1", "pods")
_OWNERS: Final = CollectionPath("rbac.authorization.k8s.io/v1", "clusterroles")


@dataclass(eq=False, repr=False)
class PodReports:
    """Writes the reports. `policies` returns the set in force, None before it is known.

    `interval` is the time between two passes in seconds; `clock` is the wall clock, in UTC.
    """

    client: Client
    writer: Writes
    policies: Callable[[], PolicySet | None]
    nodes: NodeView
    classes: ClusterClasses
    _: KW_ONLY
    interval: float = REPORT_INTERVAL
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    trouble: str = field(default="", init=False)
    state: str = field(default="no policy report written yet", init=False)
    _faults: int = field(default=0, init=False)

    async def run(self) -> NoReturn:
        """Write reports until cancelled. An error ends one pass, and shows in `trouble`."""
        while True:
            policies = self.policies()
            if policies is None or self._waits_for_nodes():
                await asyncio.sleep(_SOON)
                continue
            try:
                await self.write_all(policies)
                self._note("")
            except NotLeading:
                self._note("")
            except ClusterError as error:
                self._note(str(error))
            await asyncio.sleep(self.interval)

    async def write_all(self, policies: PolicySet) -> None:
        """Judge all pods once, and write each report that differs. Raises ClusterError."""
        stored = await self._stored()
        labels, ending = await self._namespaces()
        owner = await self._owner()
        classes = await self._classes()
        cluster, plugins = self._cluster(classes), inputs_of(classes)
        world = World.for_pods_as_sent(policies, cluster, labels, self.clock(), plugins, classes)
        pods = await self._judge_pods(world, self._prospects())
        now = int(self.clock().timestamp())
        written, existing, refused = 0, 0, ""
        for namespace in sorted({*pods, *stored}):
            before = stored.get(namespace)
            if before is None and namespace in ending:
                # The API server creates nothing in it, but what is there can be changed.
                continue
            judged_pods = pods.get(namespace)
            wanted = (
                report(namespace, judged_pods, before=before, owner=owner, now=now)
                if judged_pods
                else None
            )
            try:
                changed = await self._write(namespace, wanted, before)
                existing += wanted is not None
            except ClusterError as error:
                refused = refused or f"the report of namespace {namespace}: {error}"
                changed = True
                existing += before is not None
            if changed:
                written += 1
                await asyncio.sleep(_SPACING)
        self.state = f"{existing} policy reports, {written} of them changed last time"
        if self._faults:
            self.state += f"; faults left {self._faults} pods unjudged, see the log"
        if refused:
            raise ClusterError(refused)

    async def _write(self, namespace: str, wanted: Json | None, before: Json | None) -> bool:
        """Create, replace or delete a report, or leave it as it is; return whether it changed."""
        path = collection(namespace).path_of(NAME)
        try:
            if wanted is None:
                if before is not None:
                    uid = before["metadata"]["uid"]
                    await self.writer.delete(path, {"preconditions": {"uid": uid}})
                return before is not None
            if before is None:
                await self.writer.create(collection(namespace), wanted)
                return True
            if not differs(wanted, before):
                return False
            await self.writer.replace(path, _onto(wanted, before))
        except ClusterError as error:
            if error.reason == "AlreadyExists":
                text = f"{RESOURCE}/{NAME} exists, and is not Fairlead's; delete or rename it"
                raise ClusterError(text, status=error.status) from error
            # The namespace or the report is gone, or somebody has written: the next pass sees it.
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise
            _logger.debug("policy report of %s: %s", namespace, error)
        return True

    async def _stored(self) -> dict[str, Json]:
        try:
            listing = await self.client.list(
                collection(), lambda raw: raw, query={"labelSelector": SELECTOR}
            )
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                # Deleting the definition has deleted all reports.
                self.state = "no policy reports"
                raise ClusterError(NO_DEFINITION, status=error.status) from error
            raise
        ours = (document for document in listing.items if document["metadata"]["name"] == NAME)
        return {document["metadata"]["namespace"]: document for document in ours}

    async def _namespaces(self) -> tuple[dict[str, Mapping[str, str]], set[str]]:
        """Return the labels of all namespaces, and those that are being deleted."""
        ending: set[str] = set()

        def keep(raw: Json) -> tuple[str, Mapping[str, str]]:
            metadata = raw["metadata"]
            if metadata.get("deletionTimestamp"):
                ending.add(metadata["name"])
            return metadata["name"], metadata.get("labels") or {}

        return dict((await self.client.list(NAMESPACES, keep)).items), ending

    async def _owner(self) -> Json | None:
        """Return the reference to the ClusterRole of the component; None if there is none."""
        try:
            owner = await self.client.get(_OWNERS.path_of(OWNER))
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return None
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": OWNER,
            "uid": owner["metadata"]["uid"],
        }

    async def _classes(self) -> dict[str, dict[str, Json]]:
        """Return by kind and name the objects without which the API server refuses pods."""
        classes: dict[str, dict[str, Json]] = {}
        for kind, path in PATHS.items():
            listed = await self.client.list(path, lambda raw: (raw["metadata"]["name"], raw))
            classes[kind] = dict(listed.items)
        return classes

    def _cluster(self, classes: Mapping[str, Mapping[str, Json]]) -> Cluster:
        """Return the default PriorityClass; an enforced policy may depend on it."""
        values = {
            name: value_of_default(priority_class)
            for name, priority_class in classes["PriorityClass"].items()
        }
        # As the Priority plugin does: of several the one with the lowest value.
        defaults = [(value, name) for name, value in values.items() if value is not None]
        default = min(defaults)[1] if defaults else ""
        return Cluster(default, node=placement_nodes.by_name(self.nodes.nodes()))

    def _waits_for_nodes(self) -> bool:
        return self.nodes.nodes() is None and not self.nodes.trouble()

    def _prospects(self) -> Prospects | None:
        nodes = self.nodes.nodes()
        if nodes is None:
            return None
        devices = inputs_of(self.classes.by_kind()).devices
        return Prospects(NodeGroups(nodes), lambda: devices)

    async def _judge_pods(
        self, world: World, prospects: Prospects | None
    ) -> dict[str, list[JudgedPod]]:
        pods_by_namespace: dict[str, list[JudgedPod]] = defaultdict(list)
        judging = PodJudge(world, prospects)
        async for pods, _ in self.client.pages(_PODS, page_size=_PAGE_SIZE):
            for pod in await asyncio.to_thread(judging.judge, pods):
                pods_by_namespace[pod.namespace].append(pod)
            del pods
        for pod in await asyncio.to_thread(judging.judge_rest):
            pods_by_namespace[pod.namespace].append(pod)
        self._faults = judging.faults
        return dict(pods_by_namespace)

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            _logger.warning("policy reports: %s", trouble)
        self.trouble = trouble


def _onto(wanted: Json, before: Mapping[str, Any]) -> Json:
    """Return the wanted report with the metadata that others added to the stored one."""
    live, metadata = before["metadata"], wanted["metadata"]
    merged = {
        **{key: value for key, value in live.items() if key != "managedFields"},
        **metadata,
        "labels": {**(live.get("labels") or {}), **metadata["labels"]},
    }
    if "ownerReferences" not in metadata:
        merged.pop("ownerReferences", None)
    return {**wanted, "metadata": merged}
