"""Read the state of a cluster once, for all checks of `doctor`."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar

from certs.kept import BUNDLE, CERTIFICATE
from webhook import names
from webhook.api_paths import NAMESPACES, VERSION, CollectionPath
from webhook.api_paths import NODES as NODES_PATH
from webhook.cluster_objects.heartbeat import holder
from webhook.cluster_objects.namespaces import read_namespace
from webhook.cluster_objects.policy_objects import read_objects
from webhook.cluster_objects.unplaced_pods import find_unplaced
from webhook.cluster_objects.watched_objects import CLASS_PATHS
from webhook.cluster_objects.webhook_replicas import (
    CONTROLLER,
    WEBHOOK,
    NoReplica,
    read_by_replica,
)
from webhook.errors import ClusterError
from webhook.installation import rollout
from webhook.installation.apply import list_guards
from webhook.installation.changes import CONCURRENT_REQUESTS
from webhook.installation.doctor import (
    object_checks,
    queue_checks,
)
from webhook.installation.doctor.cluster_state import (
    NO_KUEUE,
    ClusterState,
    Kueue,
    ReadKind,
    Unread,
    sources_of,
    takes_policies_from_cluster,
)
from webhook.installation.doctor.policy_checks import NODES, WANTED, needed
from webhook.installation.manifests import (
    CONFIG_MAP,
    DEFAULT,
    FROM_FILES,
    INTERCEPTION,
    JUDGING,
    LEASE,
    render,
)
from webhook.installation.object_kinds import CRD
from webhook.installation.policy_files import has_argument
from webhook.installation.policy_plan import files_of
from webhook.installation.probe import Probe, choose_namespace, probe, probe_policy
from webhook.installation.rights import Right, is_allowed
from webhook.interception import placed_whole, read_record
from webhook.judgement.entry_states import as_meant
from webhook.kube.secrets import data_of, secrets
from webhook.placement.nodes import parse_node as read_node
from webhook.run.queue_workload import API_VERSION as QUEUES_VERSION
from webhook.server.watch_metrics import read_state
from webhook.sources import SHIPPED
from webhook.turns import gather_some

if TYPE_CHECKING:
    from collections.abc import Awaitable, Container, Iterable, Mapping, Sequence
    from datetime import datetime

    from webhook.api_paths import ObjectPath
    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client
    from webhook.placement.nodes import Node
    from webhook.server.watch_metrics import ReplicaState

    Json = dict[str, Any]

T = TypeVar("T")

_CONFIGURATIONS: Final = CollectionPath(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"
)
_LOCAL_QUEUES: Final = CollectionPath(QUEUES_VERSION, "localqueues")
_RUNS: Final = CollectionPath(names.API_VERSION, names.RUNS)
_NO_RIGHT: Final = "run it with an administrator's rights"
_ASK_AGAIN: Final = "run it again; if it stays so, the log of the API server has the reason"


class ClusterReader:
    """Reads one cluster once. Missing rights are recorded; without an answer it raises.

    kinds: without the kinds of rights, their requests, some 150 in all, are not sent.
    """

    def __init__(self, client: Client, kinds: Container[ReadKind] = tuple(ReadKind)) -> None:
        self._client = client
        self._kinds = kinds
        self._unread: dict[ReadKind, Unread] = {}
        self._leads: bool | None = None

    async def read_cluster(
        self, now: datetime, version: str, namespaces: Sequence[str] = ()
    ) -> ClusterState:
        """Read all that the checks need; pods of runs in these namespaces, or in all of them.

        Raises ClusterError if the API server does not answer.
        """
        server = str((await self._client.get(VERSION)).get("gitVersion", ""))
        configuration = await self._object(ReadKind.POD_RULES, INTERCEPTION.path)
        judging = await self._object(ReadKind.JUDGING, JUDGING.path)
        listed_deployments = await self._list(
            ReadKind.DEPLOYMENTS, CollectionPath("apps/v1", "deployments", names.NAMESPACE)
        )
        programs = (names.CONTROLLER, names.WEBHOOK, names.UI)
        deployments = {
            _name(deployment): deployment
            for deployment in listed_deployments
            if _name(deployment) in programs
        }
        for what in (ReadKind.METRICS, ReadKind.POLICIES):
            if missing := self._unread.get(ReadKind.DEPLOYMENTS):
                why = f"its source is unknown without {ReadKind.DEPLOYMENTS}"
                self._unread[what] = missing._replace(why=why)
        from_cluster = takes_policies_from_cluster(deployments, judging)
        labels_by_namespace = await self._namespaces(namespaces)
        whole = placed_whole(labels_by_namespace)
        daemon_sets = [
            daemon_set
            for name in whole
            for daemon_set in await self._list(
                ReadKind.DAEMON_SETS, CollectionPath("apps/v1", "daemonsets", name)
            )
        ]
        policies = (
            await self._tried(ReadKind.POLICIES, read_objects(self._client))
            if from_cluster
            else await self._files()
        )
        table = SHIPPED if policies is None else sources_of(policies, from_cluster=from_cluster)
        record = read_record(deployments.get(names.CONTROLLER))
        stamping = as_meant(record, configuration, table, whole)
        unplaced = find_unplaced(
            self._client, stamping, labels_by_namespace, everywhere=not namespaces
        )
        expected = _expected(deployments)
        wanted = object_checks.installed_objects(deployments, policies, from_cluster=from_cluster)
        metrics = await self._metrics(deployments)
        judges = takes_policies_from_cluster({}, judging)
        pods = await self._list(ReadKind.PODS, CollectionPath("v1", "pods", names.NAMESPACE))
        refused = await self._tried(ReadKind.JUDGED, probe_policy(self._client)) if judges else ""
        return ClusterState(
            now=now,
            version=version,
            server=server,
            definitions={
                key.name: definition
                for key in expected
                if key.kind.name == CRD
                and (definition := await self._object(ReadKind.DEFINITIONS, key.path))
            },
            expected=expected,
            wanted=wanted,
            stored=await self._stored(wanted),
            deployments=deployments,
            pods=pods,
            reasons=await rollout.read_reasons(self._client, pods),
            endpoints=await self._endpoints(),
            configuration=configuration,
            guard_objects=await self._tried(ReadKind.GUARDS, list_guards(self._client)) or {},
            judging=judging,
            refused_policies=refused or "",
            serving=await self._serving(),
            watches={
                (replica, resource): state
                for replica, replica_state in metrics.items()
                for resource, state in replica_state.watches.items()
            },
            failing_writes={
                (replica, write): seconds
                for replica, replica_state in metrics.items()
                for write, seconds in replica_state.failing_writes.items()
            },
            leader=await self._leader(now),
            leads=self._leads,
            namespaces=labels_by_namespace,
            daemon_sets=daemon_sets,
            nodes=await self._nodes(),
            classes=await self._classes(),
            unplaced=await self._tried(ReadKind.PODS_OF_RUNS, unplaced) or (),
            policies=policies,
            missing_rights=await self._missing_rights(deployments, expected),
            kueue=await self._kueue(),
            probe=await self._probe(
                [*namespaces, choose_namespace(record, labels_by_namespace)][0]
            ),
            unread=self._unread,
        )

    async def _probe(self, namespace: str) -> Probe:
        tried = await probe(self._client, namespace)
        if tried.was_prevented:
            self._unread[ReadKind.PROBE] = Unread(
                f"none can be tried in {namespace}: {tried.words}",
                "fairlead doctor --namespace NAME tries it elsewhere",
            )
        return tried

    async def _kueue(self) -> Kueue:
        configurations = await self._list(ReadKind.QUEUES, _CONFIGURATIONS)
        entries = (*queue_checks.pod_entries(configurations),)
        if not entries:
            return NO_KUEUE
        named = {"fieldSelector": f"metadata.name={queue_checks.DEFAULT_QUEUE}"}
        queues = await self._list(ReadKind.QUEUES, _LOCAL_QUEUES, named)
        runs = await self._list(ReadKind.QUEUES, _RUNS, {"labelSelector": names.KUEUE_QUEUE})
        read = Kueue(entries, _namespaces_of(queues), _namespaces_of(runs))
        namespace = queue_checks.namespace_of(entries)
        if not namespace:
            return read
        path = CollectionPath("v1", "configmaps", namespace).path_of(queue_checks.CONFIG_MAP)
        if not queue_checks.names_runs(await self._object(ReadKind.QUEUES, path)):
            return read
        right = Right("list", names.GROUP, names.RUNS)
        account = is_allowed(self._client, right, queue_checks.ACCOUNT, namespace)
        allowed = await self._tried(ReadKind.QUEUES, account)
        return read._replace(external=True, reads_runs=allowed is not False)

    async def _nodes(self) -> Sequence[Node]:
        if ReadKind.NODES not in self._kinds:
            return ()
        listing = await self._tried(ReadKind.NODES, self._client.list(NODES_PATH, read_node))
        return listing.items if listing else ()

    async def _classes(self) -> dict[str, dict[str, Json]]:
        listed = {
            kind: await self._tried(
                ReadKind.CLASSES, self._client.list(path, lambda document: document)
            )
            for kind, path in CLASS_PATHS.items()
        }
        return {
            kind: {_name(document): document for document in listing.items}
            for kind, listing in listed.items()
            if listing is not None
        }

    async def _tried(self, what: ReadKind, answer: Awaitable[T]) -> T | None:
        """Return the answer; None if it is not found or is forbidden, which is recorded."""
        try:
            return await answer
        except ClusterError as error:
            if error.status is None or error.status == HTTPStatus.UNAUTHORIZED:
                raise
            if error.status != HTTPStatus.NOT_FOUND:
                self._unread[what] = _unread(error)
            return None

    async def _object(self, what: ReadKind, path: ObjectPath) -> Json | None:
        return await self._tried(what, self._client.get(path))

    async def _list(
        self, what: ReadKind, path: CollectionPath, query: Mapping[str, str] | None = None
    ) -> list[Json]:
        listing = await self._tried(
            what, self._client.list(path, lambda document: document, query=query)
        )
        return listing.items if listing else []

    async def _endpoints(self) -> list[bool]:
        slices = await self._list(
            ReadKind.ENDPOINTS,
            CollectionPath("discovery.k8s.io/v1", "endpointslices", names.NAMESPACE),
            {"labelSelector": f"kubernetes.io/service-name={names.WEBHOOK}"},
        )
        # Absent means ready (k8s.io/api/discovery/v1, EndpointConditions).
        return [
            (endpoint.get("conditions") or {}).get("ready") is not False
            for endpoint_slice in slices
            for endpoint in endpoint_slice.get("endpoints") or ()
        ]

    async def _serving(self) -> dict[str, bytes] | None:
        path = secrets(names.NAMESPACE).path_of(names.SERVING_SECRET)
        secret = await self._object(ReadKind.SERVING, path)
        # Without the private key.
        return secret and {k: v for k, v in data_of(secret).items() if k in (CERTIFICATE, BUNDLE)}

    async def _metrics(self, deployments: Mapping[str, Json]) -> dict[str, ReplicaState]:
        state_by_replica: dict[str, ReplicaState] = {}
        unreached = []
        for deployment, component in ((names.WEBHOOK, WEBHOOK), (names.CONTROLLER, CONTROLLER)):
            if deployment not in deployments:
                continue
            try:
                texts = await read_by_replica(self._client, component)
                read = {replica: read_state(text) for replica, text in texts.items()}
                state_by_replica |= read
                if component == CONTROLLER:
                    self._leads = any(replica_state.leads for replica_state in read.values())
            except NoReplica:
                pass  # another check reports why none runs
            except (ClusterError, ValueError) as error:
                # The replica does not answer; the API server does.
                template = deployments[deployment]["spec"]["template"]
                port = rollout.describe_port(template, "health")
                unreached.append(f"{port} of the pods of {deployment}")
                self._unread[ReadKind.METRICS] = _unread(
                    error,
                    "the pod is starting or ending, or the API server does not reach its port for "
                    f"health and metrics: let it through to {' and '.join(unreached)}",
                )
        return state_by_replica

    async def _leader(self, now: datetime) -> str:
        lease = await self._object(ReadKind.LEASE, LEASE.path)
        return holder(lease, now) if lease else ""

    async def _namespaces(self, wanted: Sequence[str]) -> dict[str, dict[str, str]]:
        if wanted:
            namespaces = [
                await self._tried(ReadKind.NAMESPACES, read_namespace(self._client, name))
                for name in wanted
            ]
        else:
            namespaces = [*await self._list(ReadKind.NAMESPACES, NAMESPACES)]
        return {
            _name(namespace): namespace["metadata"].get("labels") or {}
            for namespace in namespaces
            if namespace
        }

    async def _files(self) -> dict[str, bytes] | None:
        config_map = await self._object(ReadKind.POLICIES, CONFIG_MAP.path)
        return None if config_map is None else files_of(config_map)

    async def _missing_rights(
        self, deployments: Mapping[str, Json], expected: Mapping[Key, Json]
    ) -> list[tuple[str, Right]]:
        accounts = needed(expected.values()) if names.CONTROLLER in deployments else {}
        questions = [
            *(("", right) for right in WANTED),
            *((at, right) for at in accounts if at in deployments for right in accounts[at]),
        ]
        lacks = await gather_some(CONCURRENT_REQUESTS, self._lacks, questions)
        return [question for question, lacking in zip(questions, lacks, strict=True) if lacking]

    async def _stored(self, wanted: Iterable[Key]) -> dict[Key, Json]:
        if ReadKind.OBJECTS not in self._kinds:
            return {}

        async def read(key: Key) -> Json | None:
            return await self._object(ReadKind.OBJECTS, key.path)

        keys = [key for key in wanted if object_checks.is_compared(key)]
        stored_objects = await gather_some(CONCURRENT_REQUESTS, read, keys)
        return {
            key: stored_object
            for key, stored_object in zip(keys, stored_objects, strict=True)
            if stored_object
        }

    async def _lacks(self, question: tuple[str, Right]) -> bool:
        account, right = question
        what = ReadKind.PROGRAMS_RIGHTS if account else ReadKind.OWN_RIGHTS
        if what not in self._kinds:
            return False
        allowed = await self._tried(what, is_allowed(self._client, right, account))
        return allowed is False


def _expected(deployments: Mapping[str, Json]) -> dict[Key, Json]:
    """Return the objects that this version installs, with the options of the installed programs."""

    def has(program: str, argument: str) -> bool:
        return program in deployments and has_argument(deployments[program], argument)

    chosen = {
        FROM_FILES: not takes_policies_from_cluster(deployments, None),
        "nodes": has(names.WEBHOOK, NODES),
        "policy-reports": has(names.CONTROLLER, "--policy-reports"),
        "ui": names.UI in deployments,
    }
    keeps = not deployments or has(names.CONTROLLER, "--certificates")
    overlay = DEFAULT if keeps else "cert-manager"
    return render((overlay,), [name for name, wanted in chosen.items() if wanted])


def _unread(error: Exception, cure: str = _ASK_AGAIN) -> Unread:
    """Return what prevents a read; a missing right has another cure than a missing answer."""
    # A proxy on the way to a pod may answer with the same status.
    forbidden = getattr(error, "reason", "") == "Forbidden"
    why = getattr(error, "why", "") or str(error)
    return Unread(why, _NO_RIGHT if forbidden else cure)


def _namespaces_of(objects: Iterable[Json]) -> frozenset[str]:
    return frozenset(live_object["metadata"]["namespace"] for live_object in objects)


def _name(live_object: Mapping[str, Any]) -> str:
    return str(live_object["metadata"]["name"])
