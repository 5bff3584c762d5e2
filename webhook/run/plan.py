"""From a Run to the manifests of all that is made for it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidRun
from webhook.run import deployments, mounts
from webhook.run.drafts import Draft, drafts
from webhook.run.gang import Gang
from webhook.run.observed import Needs
from webhook.run.ownership import labels, metadata, named, selector
from webhook.run.pod_template_cache import template_cache as mould_of
from webhook.run.rendezvous.framework import SharedConfig
from webhook.run.rendezvous.table import render_env, render_shared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.pod_template_cache import PodTemplateCache
    from webhook.run.rendezvous.framework import ReplicaEnv

# Service meshes take the protocol from what stands before the hyphen.
_PORT_NAME: Final = "tcp-rendezvous"


@dataclass(frozen=True)
class Plan:
    """The manifests of one generation of a Run. They share their parts: change none in place.

    shared: what all replicas share beside variables.
    needs: what the run needs beside its pods.
    moulds: by role; special: by role and index, where a replica differs.
    """

    run: Run
    gang: Gang
    shared: SharedConfig
    needs: Needs
    moulds: Mapping[str, PodTemplateCache]
    special: Mapping[tuple[str, int], PodTemplateCache]
    ports: tuple[JsonObject, ...] = ()

    @property
    def main_container(self) -> str:
        """The name of the main container of the first role; every pod's annotation has its own."""
        name: str = next(iter(self.moulds.values())).main["name"]
        return name

    def pod(self, role: str, index: int, attempt: int) -> JsonObject:
        """The pod of one replica: a v1.Pod."""
        name = self.gang.pod(role, index)
        return self.template_cache(role, index).pod(name, index, attempt, self.told(role, index))

    def template_cache(self, role: str, index: int) -> PodTemplateCache:
        """What the replica shares with those that are like it."""
        return self.special.get((role, index)) or self.moulds[role]

    def told(self, role: str, index: int) -> ReplicaEnv:
        """What the replica is told of the others."""
        return render_env(self.gang, role, index)

    def service(self, *, closed: bool = False) -> JsonObject:
        """The run's v1.Service: headless, or before the Deployment of a run that stays.

        `closed`: a headless one that selects no pod yet, for a large run's first moments.
        """
        if self.run.spec.serving:
            return deployments.service(self.run, self.ports)
        return headless_service(self.run, self.gang, closed=closed)

    def config_map(self) -> JsonObject | None:
        """The v1.ConfigMap of the files that all replicas share; None if there are none."""
        return config_map(self.run, self.shared) if self.needs.config_map else None

    @property
    def keys_secret(self) -> str | None:
        """The name of the Secret of SSH keys; None if the run needs none."""
        return mounts.secret_name(self.run) if self.needs.keys else None

    def keys_secret_manifest(self, private: str, public: str) -> JsonObject:
        """The v1.Secret: `private` is PEM text, `public` a line of authorized_keys."""
        return keys_secret(self.run, private, public)

    def deployment(self) -> JsonObject:
        """The apps/v1.Deployment of a run that stays."""
        return deployments.deployment(self.run, next(iter(self.moulds.values())), self.ports)


def plan(run: Run, *, cluster_domain: str = "") -> Plan:
    """The plan of a run. Raises InvalidRun with everything for which no pods can be made of it."""
    found, problems = drafts(run)
    ports: list[JsonObject] = []
    if found and run.spec.serving:
        ports = deployments.service_ports(run, found[0].container)
        if not ports:
            problems.append(
                f"spec.ports: a {run.spec.kind} needs a port to be reached by; give it here, or in "
                f"the ports of container {found[0].main}"
            )
    gang = _gang(run, found, cluster_domain)
    shared = SharedConfig()
    try:
        shared = render_shared(gang)
    except InvalidRun as error:
        problems += error.problems
    if problems:
        raise InvalidRun(problems)
    moulds = {
        (draft.role, draft.index): mould_of(
            run,
            draft.role,
            draft.template,
            draft.placement,
            draft.resources,
            draft.main,
            shared,
        )
        for draft in found
    }
    return Plan(
        run,
        gang,
        shared,
        Needs(
            config_map=bool(shared.files),
            keys=bool(shared.ssh_keys_at),
            address=deployments.address(run, ports, cluster_domain) if ports else None,
        ),
        {role: each for (role, index), each in moulds.items() if index is None},
        {(role, index): each for (role, index), each in moulds.items() if index is not None},
        tuple(ports),
    )


def _gang(run: Run, found: list[Draft], cluster_domain: str) -> Gang:
    roles = run.spec.roles
    devices = {}
    for role, replica in roles.items():
        own = {draft.index: gpus(draft.asked) for draft in found if draft.role == role}
        usual = own.get(None, 0)
        devices[role] = tuple(own.get(index, usual) for index in range(replica.count))
    first = found[0] if found else None
    spec = first.template["spec"] if first else {}
    return Gang(
        run=run.name,
        namespace=run.namespace,
        framework=run.spec.framework,
        counts={role: replica.count for role, replica in roles.items()},
        options=run.spec.settings,
        cluster_domain=cluster_domain,
        devices=devices,
        labels={**(first.placement.get("labels", {}) if first else {}), **labels(run)},
        service_account=spec.get("serviceAccountName") or "default",
    )


def gpus(resources: Mapping[str, Any] | None) -> int:
    """The GPUs of a container's resources: nvidia.com/gpu, amd.com/gpu, and those of others.

    Extended resources are whole numbers, and limits and requests of them are the same where both
    are given (https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus). Anything else counts
    as none.
    """
    limits, requests = ((resources or {}).get(part) for part in ("limits", "requests"))
    asked = {
        **(requests if isinstance(requests, dict) else {}),
        **(limits if isinstance(limits, dict) else {}),
    }
    return sum(_whole(count) for name, count in asked.items() if str(name).endswith("/gpu"))


def _whole(quantity: object) -> int:
    text = str(quantity)
    return int(text) if text.isascii() and text.isdigit() else 0


def headless_service(run: Run, gang: Gang, *, closed: bool = False) -> JsonObject:
    """The Service under which every replica has its address; none has, while it is closed.

    Not-ready addresses are published, since replicas look for each other before they are ready.
    It has the framework's port; without a framework none, as a headless Service may.
    """
    spec: JsonObject = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        # Without any selector it would get two address families, where the cluster may have one.
        "selector": {**selector(run), **({names.CLOSED: "true"} if closed else {})},
    }
    if run.spec.framework is not None:
        spec["ports"] = [{"name": _PORT_NAME, "port": gang.port, "protocol": "TCP"}]
    return named("v1", "Service", metadata(run, run.name), {"spec": spec})


def config_map(run: Run, shared: SharedConfig) -> JsonObject:
    """The ConfigMap with the files that all replicas share."""
    meta = metadata(run, mounts.config_map_name(run))
    return named("v1", "ConfigMap", meta, {"data": dict(shared.files)})


def keys_secret(run: Run, private: str, public: str) -> JsonObject:
    """The Secret with the run's SSH keys: PEM text, and a line of authorized_keys."""
    data = {mounts.PRIVATE: private, mounts.PUBLIC: public}
    encoded = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    meta = metadata(run, mounts.secret_name(run))
    return named("v1", "Secret", meta, {"type": "kubernetes.io/ssh-auth", "data": encoded})
