"""What the pods of like replicas share, made once; one pod is then a matter of microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.run.environment import SPEC, placed
from webhook.run.mounts import mounts
from webhook.run.ownership import labels, owners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.layers import Placement
    from webhook.run.model import Run
    from webhook.run.rendezvous.framework import ReplicaEnv, SharedConfig

# Of a pod that dies without a word for the API server the end of its log is kept.
_LOG: Final = "FallbackToLogsOnError"


@dataclass(frozen=True, slots=True)
class PodTemplateCache:
    """Replicas of one role that differ in nothing but their index and what they are told.

    Nothing of it may be changed in place: every pod made of it shares its parts.

    metadata: of the pods, but for name, index and attempt.
    spec: of the pods, but for hostname, subdomain and containers.
    before, main, after: the containers, in order; `main` without its env.
    env: the main container's own variables.
    own: their names.
    """

    namespace: str
    subdomain: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    before: Sequence[JsonObject]
    main: JsonObject
    after: Sequence[JsonObject]
    env: Sequence[JsonObject]
    own: frozenset[str]

    def pod(self, name: str, index: int, attempt: int, told: ReplicaEnv) -> JsonObject:
        """The v1.Pod of one replica."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {**self.labels, names.REPLICA_INDEX: str(index)},
                "annotations": {**self.annotations, names.ATTEMPT: str(attempt)},
                **self.metadata,
            },
            "spec": {
                "hostname": name,
                "subdomain": self.subdomain,
                **self.spec,
                "containers": self.containers(told),
            },
        }

    def containers(self, told: ReplicaEnv) -> list[JsonObject]:
        """All containers, the main one with what it is told.

        That comes first, so that the container's own variables and arguments may refer to it:
        $(RANK) is expanded from variables that stand before it.
        """
        main = dict(self.main)
        if told.command and not (main.get("command") or main.get("args")):
            main["command"] = list(told.command)
        env = [{"name": k, "value": v} for k, v in told.env.items() if k not in self.own]
        if env or self.env:
            main["env"] = [*env, *self.env]
        return [*self.before, main, *self.after]


def template_cache(
    run: Run,
    role: str,
    template: JsonObject,
    placement: Placement,
    resources: JsonObject | None,
    main: str,
    shared: SharedConfig,
) -> PodTemplateCache:
    """The template_cache of replicas.

    template: merged and checked; placement: with all environments upon the template's own;
    resources: of the main container, replacing the template's; None leaves those.
    """
    where = placed(placement)
    metadata, spec = template.get("metadata") or {}, template["spec"]
    containers = [_outspoken(each) for each in spec["containers"]]
    at = next(i for i, each in enumerate(containers) if each["name"] == main)
    container = {key: value for key, value in containers[at].items() if key != "env"}
    if resources is not None:
        container["resources"] = resources
    mounted = mounts(run, shared, where.spec, container)
    if mounted:
        own = container.get("volumeMounts") or ()
        container["volumeMounts"] = [*own, *(each["mount"] for each in mounted)]
    env = containers[at].get("env") or []
    finalizers = metadata.get("finalizers")
    return PodTemplateCache(
        namespace=run.namespace,
        subdomain=run.name,
        labels={**where.labels, **labels(run), names.ROLE: role},
        annotations={**where.annotations, names.DEFAULT_CONTAINER: main},
        metadata={
            **({"finalizers": finalizers} if finalizers else {}),
            "ownerReferences": owners(run),
        },
        spec={
            **_spec(run, spec, where.spec),
            **_volumes(spec, [each["volume"] for each in mounted]),
            **_searches(spec, shared),
        },
        before=containers[:at],
        main=container,
        after=containers[at + 1 :],
        env=env,
        own=frozenset(each["name"] for each in env if isinstance(each.get("name"), str)),
    )


def _spec(run: Run, spec: JsonObject, placement: Mapping[str, Any]) -> JsonObject:
    # An environment may have cleared a field: the placement has all that is left.
    result = {k: v for k, v in spec.items() if k != "containers" and k not in SPEC}
    result |= placement
    if not run.spec.serving:
        result["restartPolicy"] = "Never"
    if result.get("initContainers"):
        result["initContainers"] = [_outspoken(each) for each in result["initContainers"]]
    if result.get("hostNetwork"):
        # Else it would ask the node's name server, which does not know the other replicas.
        result.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    return result


def _volumes(spec: JsonObject, own: Sequence[JsonObject]) -> JsonObject:
    return {"volumes": [*(spec.get("volumes") or ()), *own]} if own else {}


def _searches(spec: JsonObject, shared: SharedConfig) -> JsonObject:
    if not shared.searches:
        return {}
    config = spec.get("dnsConfig") or {}
    searches = dict.fromkeys([*(config.get("searches") or ()), *shared.searches])
    return {"dnsConfig": {**config, "searches": list(searches)}}


def _outspoken(container: JsonObject) -> JsonObject:
    if container.get("terminationMessagePolicy"):
        return container
    return {**container, "terminationMessagePolicy": _LOG}
