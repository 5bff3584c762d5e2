"""Create, delete and read the objects that Runs own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import NODES, CollectionPath
from webhook.controller.refusals import NAME_TAKEN, name_taken, refusal
from webhook.controller.stored_run import store
from webhook.errors import ClusterError
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.run import observation
from webhook.run.backends.engines import created_objects
from webhook.run.controller_reference import owner_uid
from webhook.run.model import SERVING
from webhook.run.observed import Refusal
from webhook.run.queue_workload import API_VERSION as KUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client
    from webhook.kube.writer import Writer
    from webhook.run.model import Run
    from webhook.run.observed import NodeHealth, OwnedPod

# Up to this many pods are read one by one; more pods are read with one list of the namespace. The
# list does not select by the run's label, because the label can be removed from a pod.
ONE_BY_ONE: Final = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that runs own, and its API path."""

    name: str
    api_version: str
    resource: str

    @property
    def group(self) -> str:
        """The API group; empty for the core one."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str) -> CollectionPath:
        """Return the path of the collection."""
        return CollectionPath(self.api_version, self.resource, namespace)


POD: Final = Kind("Pod", "v1", "pods")
SERVICE: Final = Kind("Service", "v1", "services")
CONFIG_MAP: Final = Kind("ConfigMap", "v1", "configmaps")
SECRET: Final = Kind("Secret", "v1", "secrets")
DEPLOYMENT: Final = Kind("Deployment", "apps/v1", "deployments")
WORKLOAD: Final = Kind("Workload", KUEUE, "workloads")
RUN: Final = Kind("Run", names.API_VERSION, names.RUNS)


class RunShape(NamedTuple):
    """What decides which kinds of objects a Run of the native backend has."""

    serving: bool
    framework: str | None

    @property
    def shares_files(self) -> bool:
        """Whether its replicas may share files, and SSH keys among them."""
        return bool(self.framework) and FRAMEWORKS[str(self.framework)].render_shared is not None


# The kinds that Runs of the native backend have, and which Runs. `Objects.create` creates nothing
# else, and the authors of these Runs need the right to create them. None: of any Run, and authors
# need no right. Kueue too creates the Workloads of those who may only create its jobs.
CREATED: Final[Mapping[Kind, Callable[[RunShape], bool] | None]] = {
    POD: lambda run: not run.serving,
    DEPLOYMENT: lambda run: run.serving,
    SERVICE: lambda _: True,
    CONFIG_MAP: lambda run: run.shares_files,
    SECRET: lambda run: run.shares_files,
    WORKLOAD: None,
}


def created_for_runs() -> dict[str, list[tuple[str, str]]]:
    """Return groups and resources that the controller creates for Runs.

    By backend and framework (`kubeflow/jax`, `native/`), and by kind of the native Runs that serve
    (`native/notebook`).
    """
    native = {
        **{
            f"native/{framework or ''}": RunShape(serving=False, framework=framework)
            for framework in ROLES
        },
        **{f"native/{kind}": RunShape(serving=True, framework=None) for kind in SERVING},
    }
    return {
        **{key: [created] for key, created in created_objects().items()},
        **{
            key: [
                (kind.group, kind.resource)
                for kind, made_for in CREATED.items()
                if made_for and made_for(shape)
            ]
            for key, shape in native.items()
        },
    }


class Objects:
    """The objects of runs on the API server.

    Every call raises ClusterError for an unavailable or failing API server, and NotLeading if
    another process may be the leader.
    """

    def __init__(self, client: Client, writer: Writer, state: ObservedState) -> None:
        self._client = client
        self._writer = writer
        self._known = state
        self._caches: dict[Kind, Cache[Any]] = {
            POD: state.pods,
            SERVICE: state.services,
            CONFIG_MAP: state.config_maps,
            DEPLOYMENT: state.deployments,
            WORKLOAD: state.workloads,
            RUN: state.runs,
        }

    async def create(self, kind: Kind, run: Run, manifest: Mapping[str, Any]) -> Refusal | None:
        """Create an object of the run; None if it exists now, even if created earlier.

        A Secret that exists is a refusal: nobody can tell who has made it.
        """
        name: str = manifest["metadata"]["name"]
        made_for = CREATED[kind]
        if made_for and not made_for(RunShape(run.spec.serving, run.spec.framework)):
            raise RuntimeError(f"no author of a Run like {run.name} was asked for a {kind.name}")
        try:
            self.learn(kind, await self._writer.create(kind.path(run.namespace), manifest))
        except ClusterError as error:
            if error.status != HTTPStatus.CONFLICT or error.reason != "AlreadyExists":
                refused = refusal(name, error)
                if refused is None:
                    raise
                return refused
            if kind is SECRET:
                # The right to read one Secret would be a right to read all.
                return Refusal(name, NAME_TAKEN, f"Secret {name} exists already")
            stored_object = await self._client.get(kind.path(run.namespace).path_of(name))
            if owner_uid(stored_object) != run.metadata.uid:
                return name_taken(kind.name, stored_object)
            if kind is WORKLOAD:
                stored_object = await self.restore_label(kind, stored_object)
            self.learn(kind, stored_object)
        return None

    async def restore_label(self, kind: Kind, stored_object: dict[str, Any]) -> dict[str, Any]:
        """Give an object of a Run the label again by which its watch selects; return it."""
        metadata = stored_object["metadata"]
        if (metadata.get("labels") or {}).get(names.MANAGED_BY) == names.MANAGER:
            return stored_object
        labels = {"labels": {names.MANAGED_BY: names.MANAGER}, "uid": metadata["uid"]}
        path = kind.path(metadata["namespace"]).path_of(metadata["name"])
        return await self._writer.patch(path, {"metadata": labels}, "merge")

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str,
        version: str = "",
        force: bool = False,
    ) -> bool:
        """Delete an object if it has this uid, and this version if given.

        Return whether this call deleted it. Dependents are deleted in the background. `force`: do
        not wait for the kubelet to end the pod.
        """
        preconditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": preconditions,
            "propagationPolicy": "Background",
            **({"gracePeriodSeconds": 0} if force else {}),
        }
        try:
            answer = await self._writer.delete(kind.path(namespace).path_of(name), options)
        except ClusterError as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                return False
            raise
        if "metadata" in answer and answer["metadata"].get("uid") == uid:
            self.learn(kind, answer, gone=_is_deleted(answer["metadata"]))
        return True

    async def delete_run(self, run: Run) -> None:
        """Delete a Run at the version that was read."""
        uid, version = run.metadata.uid, run.metadata.resource_version
        await self.delete(RUN, run.namespace, run.name, uid=uid, version=version)

    async def scale(self, run: Run, uid: str, replicas: int) -> None:
        """Set the replicas of the run's Deployment, if it has this uid."""
        await self._patch(DEPLOYMENT, run, uid, {"replicas": replicas})

    async def open_service(self, run: Run, uid: str) -> None:
        """Make the run's Service select its pods, if it has this uid."""
        await self._patch(SERVICE, run, uid, {"selector": {names.CLOSED: None}})

    async def _patch(self, kind: Kind, run: Run, uid: str, spec: Mapping[str, Any]) -> None:
        """Patch the spec of the object that has the run's name.

        The uid is immutable: if another object has the name now, the API server rejects the patch
        with 422 (Invalid). The watch delivers the other object.
        """
        patch = {"metadata": {"uid": uid}, "spec": spec}
        try:
            answer = await self._writer.patch(
                kind.path(run.namespace).path_of(run.name), patch, "merge"
            )
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND or _is_of_another(error):
                return
            raise
        self.learn(kind, answer)

    async def read_nodes(self, wanted: Collection[str]) -> dict[str, NodeHealth]:
        """Read the nodes of these names from the API server."""
        health_by_node = {}
        for name in wanted:
            try:
                raw = await self._client.get(NODES.path_of(name))
            except ClusterError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
                self._known.nodes.lost(name)
                health_by_node[name] = self._known.nodes.health_of_deleted(name)
            else:
                health_by_node[name] = self._known.nodes.health_of_raw(raw)
        return health_by_node

    async def refresh_run(self, stored: StoredRun) -> None:
        """Read a Run again at the same version: the definitions may have dropped fields of it.

        No watch tells of that. A later version will be told of.
        """
        fresh_run = await self._read_run(stored, store)
        if fresh_run and fresh_run.version == stored.version:
            self._known.runs.put(stored.key, fresh_run, fresh_run.version)

    async def read_run(self, stored: StoredRun) -> StoredRun | None:
        """Read the whole Run at its latest version; None if it is deleted."""
        return await self._read_run(stored, partial(store, whole=True))

    async def _read_run(
        self, stored: StoredRun, keep: Callable[[dict[str, Any]], StoredRun]
    ) -> StoredRun | None:
        # A list of one: the controller has no right to get Runs.
        selector = {"fieldSelector": f"metadata.name={stored.name}"}
        listing = await self._client.list(RUN.path(stored.namespace), keep, query=selector)
        return next((run for run in listing.items if run.uid == stored.uid), None)

    async def write_status(self, raw: Mapping[str, Any]) -> bool:
        """Replace the status of a Run, at the version of `raw`; return whether it is stored whole.

        With an older definition of Runs the API server drops fields. If nothing else of the status
        has changed, the object stays as it was, and no watch tells of the write.
        """
        metadata = raw["metadata"]
        path = RUN.path(metadata["namespace"]).path_of(metadata["name"]).subresource("status")
        answer = await self._writer.replace(path, raw)
        self.learn(RUN, answer)
        return _has(answer.get("status"), raw["status"])

    async def get_pods(self, run: Run, pods: Collection[str]) -> dict[str, OwnedPod]:
        """Read those of the named pods that exist and belong to the run from the API server."""
        if len(pods) > ONE_BY_ONE:
            listing = await self._client.list(POD.path(run.namespace), observation.pod)
            live_pods = [pod for pod in listing.items if pod]
        else:
            live_pods = [pod for name in pods if (pod := await self._read_pod(run, name))]
        wanted = frozenset(pods)
        return {
            pod.name: pod
            for pod in live_pods
            if pod.name in wanted and pod.run_uid == run.metadata.uid
        }

    async def _read_pod(self, run: Run, name: str) -> OwnedPod | None:
        try:
            raw = await self._client.get(POD.path(run.namespace).path_of(name))
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        self.learn(POD, raw)
        return observation.pod(raw)

    def learn(self, kind: Kind, raw: dict[str, Any], *, gone: bool = False) -> None:
        """Store an object from an answer, unless a newer one is cached.

        The watch would tell nothing more of a pod without its label, which stays unknown.
        """
        cache, metadata = self._caches.get(kind), raw["metadata"]
        watched = kind is not POD or names.RUN_UID in (metadata.get("labels") or {})
        if cache is not None and (watched or gone):
            key = f"{metadata['namespace']}/{metadata['name']}"
            cache.offer(key, None if gone else cache.keep(raw), metadata["resourceVersion"])


def _is_of_another(error: ClusterError) -> bool:
    return error.status == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in error.words


def _is_deleted(metadata: Mapping[str, Any]) -> bool:
    """Return True if the response to a deletion is the object's final version.

    The API server deletes a pod at once if it has ended or was never scheduled. Other pods get
    a grace period, and an object may have finalizers.
    """
    return not metadata.get("deletionGracePeriodSeconds") and not metadata.get("finalizers")


def _has(stored: Any, sent: Any) -> bool:
    """Return whether all that was sent is stored, whatever else is."""
    if stored == sent:
        return True
    match stored, sent:
        case dict(), dict():
            return all(key in stored and _has(stored[key], value) for key, value in sent.items())
        case list(), list():
            return len(stored) == len(sent) and all(map(_has, stored, sent))
    return False
