"""From a Run to the manifests of all that is made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.errors import InvalidRun
from webhook.run import deployments, mounts, services
from webhook.run.devices import gpus
from webhook.run.drafts import Draft, drafts
from webhook.run.gang import Gang
from webhook.run.observed import Needs
from webhook.run.ownership import labels
from webhook.run.pod_template_cache import template_cache as mould_of
from webhook.run.rendezvous.framework import SharedConfig
from webhook.run.rendezvous.table import render_env, render_shared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.pod_template_cache import PodTemplateCache
    from webhook.run.rendezvous.framework import ReplicaEnv


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
        return services.headless_service(self.run, self.gang, closed=closed)

    def config_map(self) -> JsonObject | None:
        """The v1.ConfigMap of the files that all replicas share; None if there are none."""
        return services.config_map(self.run, self.shared) if self.needs.config_map else None

    @property
    def keys_secret(self) -> str | None:
        """The name of the Secret of SSH keys; None if the run needs none."""
        return mounts.secret_name(self.run) if self.needs.keys else None

    def keys_secret_manifest(self, private: str, public: str) -> JsonObject:
        """The v1.Secret: `private` is PEM text, `public` a line of authorized_keys."""
        return services.keys_secret(self.run, private, public)

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
