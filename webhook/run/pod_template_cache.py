"""Pod templates that equal replicas share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.run.environment import SPEC, placed
from webhook.run.manifests import labels, mounts, owners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.frameworks.framework import ReplicaEnv, SharedConfig
    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.plan import Draft

# Use the end of the log if a failed container wrote no termination message.
_LOG: Final = "FallbackToLogsOnError"


@dataclass(frozen=True, slots=True)
class PodTemplateCache:
    """The shared parts of replicas of one role that differ only in index and variables.

    Must not be modified: every pod shares these parts.

    metadata: of the pods, without name, index and attempt.
    spec: of the pods, without hostname, subdomain and containers.
    all_containers: in order; the one at `at` is replaced by `main`, which has no env.
    env: the main container's own variables.
    own_variables: their names.
    replicas: how many the role has.
    """

    namespace: str
    subdomain: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    all_containers: Sequence[JsonObject]
    at: int
    main: JsonObject
    env: Sequence[JsonObject]
    own_variables: frozenset[str]
    replicas: int

    def pod(self, name: str, index: int, attempt: int, replica_env: ReplicaEnv) -> JsonObject:
        """Return the v1.Pod of one replica."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {
                    **self.labels,
                    names.REPLICA_INDEX: str(index),
                    names.REPLICAS: str(self.replicas),
                },
                "annotations": {**self.annotations, names.ATTEMPT: str(attempt)},
                **self.metadata,
            },
            "spec": {
                "hostname": name,
                "subdomain": self.subdomain,
                **self.spec,
                "containers": self.containers(replica_env),
            },
        }

    def containers(self, replica_env: ReplicaEnv) -> list[JsonObject]:
        """Return all containers, with the replica's variables in the main one.

        These come first, so that the container's own variables and arguments may refer to them:
        $(RANK) is expanded only from variables that precede it.
        """
        main = dict(self.main)
        if replica_env.command and not (main.get("command") or main.get("args")):
            main["command"] = list(replica_env.command)
        env = [
            {"name": k, "value": v}
            for k, v in replica_env.env.items()
            if k not in self.own_variables
        ]
        if env or self.env:
            main["env"] = [*env, *self.env]
        return [*self.all_containers[: self.at], main, *self.all_containers[self.at + 1 :]]


def make_template_cache(run: Run, draft: Draft, shared: SharedConfig) -> PodTemplateCache:
    """Compute the parts that the pods of equal replicas share."""
    where = placed(draft.placement)
    metadata, spec = draft.template.get("metadata") or {}, draft.template["spec"]
    containers = spec["containers"]
    container = {key: value for key, value in draft.container.items() if key != "env"}
    if draft.resources is not None:
        container["resources"] = draft.resources
    mounted = mounts(run, shared, where.spec, container)
    if mounted:
        written_mounts = container.get("volumeMounts") or ()
        container["volumeMounts"] = [*written_mounts, *(pair["mount"] for pair in mounted)]
    env = draft.container.get("env") or []
    finalizers = metadata.get("finalizers")
    return PodTemplateCache(
        namespace=run.namespace,
        subdomain=run.name,
        labels={**where.labels, **labels(run), names.ROLE: draft.role},
        annotations={**where.annotations, names.DEFAULT_CONTAINER: container["name"]},
        metadata={
            **({"finalizers": finalizers} if finalizers else {}),
            "ownerReferences": owners(run),
        },
        spec={
            **_spec(run, spec, where.spec),
            **_volumes(spec, [pair["volume"] for pair in mounted]),
            **_searches(spec, shared),
        },
        all_containers=containers,
        at=draft.at,
        main=container,
        env=env,
        own_variables=frozenset(
            variable["name"] for variable in env if isinstance(variable.get("name"), str)
        ),
        replicas=run.spec.roles[draft.role].count,
    )


def _spec(run: Run, spec: JsonObject, placement: Mapping[str, Any]) -> JsonObject:
    # An environment may have cleared a field, so only the placement's fields are used.
    result = {k: v for k, v in spec.items() if k != "containers" and k not in SPEC}
    result |= placement
    if not run.spec.serving:
        result["restartPolicy"] = "Never"
    if result.get("hostNetwork"):
        # The default policy would use the node's name server, which does not know the replicas.
        result.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    return result


def _volumes(spec: JsonObject, run_volumes: Sequence[JsonObject]) -> JsonObject:
    return {"volumes": [*(spec.get("volumes") or ()), *run_volumes]} if run_volumes else {}


def _searches(spec: JsonObject, shared: SharedConfig) -> JsonObject:
    if not shared.searches:
        return {}
    config = spec.get("dnsConfig") or {}
    searches = dict.fromkeys([*(config.get("searches") or ()), *shared.searches])
    return {"dnsConfig": {**config, "searches": list(searches)}}


def with_log_as_message(template: JsonObject) -> JsonObject:
    """Return the template with termination messages that fall back to the log."""
    spec = dict(template["spec"])
    for key in ("containers", "initContainers"):
        if spec.get(key):
            spec[key] = [_with_log_as_message(container) for container in spec[key]]
    return {**template, "spec": spec}


def _with_log_as_message(container: JsonObject) -> JsonObject:
    if container.get("terminationMessagePolicy"):
        return container
    return {**container, "terminationMessagePolicy": _LOG}
