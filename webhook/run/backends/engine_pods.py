"""Read the pods of a Run, whoever creates them, with the Run's roles and indexes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from webhook.run.backends.engines import ENGINES, VARIANTS, engine_key
from webhook.run.controller_reference import controller_of
from webhook.run.observation import engine_pod, main_container, pod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.run.backends.engines import Engine
    from webhook.run.observed import OwnedPod


def assign_replicas(
    roles: Collection[str], engine: Engine, pods: Sequence[OwnedPod]
) -> list[OwnedPod]:
    """Return the pods of one object with the role and the index that they have in the Run.

    All of them are needed at once, because an engine may not number its pods.
    """
    return engine.number(
        [replace(owned_pod, role=engine.role_of(roles, owned_pod.role)) for owned_pod in pods]
    )


@dataclass(frozen=True)
class PodReader:
    """Reads the pods of one Run for people, whoever created them.

    roles: those of the Run. engine: None if Fairlead's own controller creates the pods. Of an
    engine's pods the controller's name is compared, and not its uid: reading the object would need
    rights that those who may read pods need not have.
    """

    run: str
    roles: Collection[str]
    engine: Engine | None

    def read(
        self, raw_pods: Iterable[Mapping[str, Any]]
    ) -> list[tuple[OwnedPod, Mapping[str, Any]]]:
        """Return the run's pods, each with the raw one, with the Run's roles."""
        pairs = [(owned_pod, raw) for raw in raw_pods if (owned_pod := self._read(raw))]
        if self.engine is None:
            return pairs
        pods = assign_replicas(self.roles, self.engine, [owned_pod for owned_pod, _ in pairs])
        return [(owned_pod, raw) for owned_pod, (_, raw) in zip(pods, pairs, strict=True)]

    def _read(self, raw: Mapping[str, Any]) -> OwnedPod | None:
        if self.engine is None:
            return pod(raw)
        labels = raw["metadata"].get("labels") or {}
        sources = (variant.pods for variant in self._variants if variant.pods.role in labels)
        source = next(sources, self.engine.pods)
        owned_pod = engine_pod(raw, source.role, source.index, source.containers)
        if owned_pod is None or labels.get(source.label) != self.run:
            return None
        controller = controller_of(raw) or {}
        if controller["kind"] == self.engine.kind and controller["name"] != self.run:
            return None
        return owned_pod

    @property
    def _variants(self) -> Iterable[Engine]:
        """The engines that may have created the pods; those of the older version come first.

        They have a label more than those of the newer.
        """
        variants = next((engines for engines in VARIANTS.values() if self.engine in engines), None)
        return reversed(variants) if variants else filter(None, (self.engine,))

    def role(self, raw: Mapping[str, Any]) -> str:
        """Return the Run's role of an engine's pod; empty without the engine's label."""
        labels = raw["metadata"].get("labels") or {}
        for variant in self._variants:
            if variant.pods.role in labels:
                return variant.role_of(self.roles, labels[variant.pods.role])
        return ""

    def main_container(self, raw: Mapping[str, Any]) -> str:
        """Return the name of the container whose log is the replica's."""
        containers = self.engine.pods.containers if self.engine else {}
        return main_container(raw, containers)


def pod_reader(run: Mapping[str, Any], roles: Collection[str]) -> PodReader:
    """Return the reader for the pods of a raw Run, whose roles the caller knows."""
    return PodReader(run["metadata"]["name"], roles, ENGINES.get(engine_key(run["spec"])))
