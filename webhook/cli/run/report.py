"""All that is told of a run at one moment."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.cli.run.cluster import fetch_run, pods_path
from webhook.cli.run.node_words import fetch_words
from webhook.cli.run.replicas import Replica, replicas
from webhook.run.model import RunStatus
from webhook.run.rendezvous.table import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.crd.reported import Condition
    from webhook.kube.client import Client

# A pod's part that is needed here; a large run's pods are many.
_KEPT: Final = ("metadata", "status")
# These are as they should be while they are True; every other one while it is not.
_GOOD: Final = ("Created", "Scheduled", "Ready")


@dataclass(frozen=True)
class Report:
    """A run, its status, and its replicas."""

    namespace: str
    name: str
    kind: str
    framework: str
    created: str
    behind: bool
    """Whether the controller has not looked at the Run as it is now."""
    deleted: bool
    status: RunStatus
    replicas: tuple[Replica, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def telling_conditions(self) -> tuple[Condition, ...]:
        """Those that say that something is not as it should be, or that the run has ended."""
        return tuple(
            each
            for each in self.status.conditions
            if (each.status == "True") != (each.type in _GOOD)
            and not (self.ended and each.type in _GOOD)
        )

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            "framework": self.framework or None,
            "creationTimestamp": self.created,
            "status": self.status.model_dump(mode="json", by_alias=True, exclude_none=True),
            "replicas": [{"name": each.name, **dataclasses.asdict(each)} for each in self.replicas],
        }


async def fetch(client: Client, namespace: str, name: str) -> Report:
    """Ask the API server for the run, its pods and their nodes.

    Raises ClusterError, and NoSuchRun if there is none of that name.
    """
    run = await fetch_run(client, namespace, name)
    pods = await client.list(
        pods_path(namespace),
        _kept,
        query={"labelSelector": f"{names.RUN_UID}={run['metadata']['uid']}"},
    )
    nodes = {node for pod in pods.items if (node := pod["spec"]["nodeName"])}
    status = _in_order(
        RunStatus.model_validate(run.get("status") or {}), run["spec"].get("framework")
    )
    told = replicas(name, status, pods.items, await fetch_words(client, nodes))
    spec, metadata = run["spec"], run["metadata"]
    return Report(
        namespace=namespace,
        name=name,
        kind=spec.get("kind") or names.DEFAULT_KIND,
        framework=spec.get("framework") or "",
        created=metadata.get("creationTimestamp") or "",
        behind=status.observed_generation < (metadata.get("generation") or 0),
        deleted=bool(metadata.get("deletionTimestamp")),
        status=status,
        replicas=tuple(told),
    )


def _in_order(status: RunStatus, framework: str | None) -> RunStatus:
    """The roles in the framework's own order; the API server sorts them by name."""
    known = ROLES[framework].known if framework in ROLES else ()
    order = {role: number for number, role in enumerate(known)}
    roles = sorted(status.replicas.items(), key=lambda item: order.get(item[0], len(order)))
    return status.model_copy(update={"replicas": dict(roles)})


def _kept(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = pod.get("spec") or {}
    containers = {
        key: [{"name": each["name"], "restartPolicy": each.get("restartPolicy")} for each in listed]
        for key in ("initContainers", "containers")
        if (listed := spec.get(key))
    }
    kept = {key: pod[key] for key in _KEPT if key in pod}
    gates = spec.get("schedulingGates")
    return {
        **kept,
        "spec": {
            "nodeName": spec.get("nodeName") or "",
            "schedulingGates": gates,
            **containers,
        },
    }
