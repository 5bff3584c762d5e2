"""Engines to which a Run can be delegated: how their objects and pods are read, as one table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import InvalidRun
from webhook.policy.findings import path_text
from webhook.run import manifests
from webhook.run.backends.backend import NATIVE_CURE, put
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.backends.training_operator import KINDS
from webhook.run.observation import controller_of, engine_object, engine_pod, main_container, pod

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.run.backends.backend import Manifest
    from webhook.run.model import Run
    from webhook.run.observed import EngineObject, OwnedPod


@dataclass(frozen=True)
class PodSource:
    """The pods of one operator, whatever their kind of object.

    label: all of them have it, and its value is the name of the object.
    role, index: labels. containers: by kind of the pod's controller, the main container.
    """

    label: str
    role: str
    index: str
    containers: Mapping[str, str]

    @property
    def selector(self) -> str:
        """The label selector of the pods of Runs."""
        return f"{self.label},{names.RUN_UID}"


@dataclass(frozen=True)
class Engine:
    """One kind of object that makes pods, and how its status is read.

    operator: the program that acts on it, for messages.
    roles: the value of the pods' role label -> the Run's role.
    succeeded, failed: types of the conditions that end it.
    suspend: the dotted path of the field that suspends it; empty if there is none.
    withheld: dotted paths that are not handed down, because Fairlead itself acts on them.
    clean: the dotted path of cleanPodPolicy, which is Running if it is unset.
    templates: the dotted path of the map of replicas with a pod template each.
    """

    backend: str
    operator: str
    api_version: str
    kind: str
    resource: str
    pods: PodSource
    roles: Mapping[str, str]
    templates: str
    suspend: str = ""
    succeeded: str = "Succeeded"
    failed: str = "Failed"
    withheld: tuple[str, ...] = ()
    clean: str = ""

    @property
    def group(self) -> str:
        """The path of the group and version on the API server."""
        return f"/apis/{self.api_version}"

    def read(self, raw: Mapping[str, Any]) -> EngineObject | None:
        """Return the object; None if no Run owns it."""
        return engine_object(raw, self.suspend, self.templates)


_TRAINING_PODS: Final = PodSource(
    "training.kubeflow.org/job-name",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/replica-index",
    {each.kind: each.container for each in KINDS.values() if each.container},
)
# The operator writes the keys of the replicas in lower case.
_TRAINING_ROLES: Final[Mapping[str, Mapping[str, str]]] = {
    "tensorflow": {"ps": "ps", "worker": "worker", "evaluator": "evaluator"},
    "paddle": {"master": "server", "worker": "worker"},
}


def _training(framework: str) -> Engine:
    kind = KINDS[framework]
    roles = _TRAINING_ROLES.get(framework) or {role: role for role in kind.roles}
    return Engine(
        backend="kubeflow",
        operator="the training operator",
        api_version=kind.api_version,
        kind=kind.kind,
        resource=f"{kind.kind.lower()}s",
        pods=_TRAINING_PODS,
        roles=roles,
        templates=kind.replicas,
        suspend="runPolicy.suspend",
        # Its queue does not count, and it looks at the deadline only when something else happens.
        withheld=(
            "runPolicy.ttlSecondsAfterFinished",
            "runPolicy.backoffLimit",
            "runPolicy.activeDeadlineSeconds",
        ),
        clean="runPolicy.cleanPodPolicy",
    )


# By engine_key.
ENGINES: Final[Mapping[str, Engine]] = {
    f"kubeflow/{framework}": _training(framework)
    for framework in ("tensorflow", "pytorch", "paddle", "xgboost", "jax")
}


def created_objects() -> dict[str, tuple[str, str]]:
    """Return group and resource of the object of each engine, by its key in ENGINES."""
    return {
        key: (engine.api_version.partition("/")[0], engine.resource)
        for key, engine in ENGINES.items()
    }


def engine_key(spec: Mapping[str, Any]) -> str:
    """Return the key of a raw spec's engine in ENGINES; empty without one."""
    key = f"{spec.get('backend')}/{spec.get('framework') or ''}"
    return key if key in ENGINES else ""


def find_engine(run: Run) -> Engine | None:
    """Return the engine of a delegated Run; None if its backend has none for the framework."""
    return ENGINES.get(f"{run.spec.backend}/{run.spec.framework or ''}")


def role_of(roles: Collection[str], engine: Engine, label: str) -> str:
    """Return the role of a Run with these roles for a value of the pods' role label."""
    if engine.kind == "TFJob" and label in ("chief", "master"):
        # The key depends on masterTaskType, and both are one role of the Run.
        return next((role for role in ("chief", "master") if role in roles), label)
    return engine.roles.get(label, label)


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

    def read(self, raw: Mapping[str, Any]) -> OwnedPod | None:
        """Return the pod with the Run's role; None for a pod of another object."""
        if self.engine is None:
            return pod(raw)
        source = self.engine.pods
        found = engine_pod(raw, source.role, source.index, source.containers)
        if found is None or raw["metadata"]["labels"].get(source.label) != self.run:
            return None
        controller = controller_of(raw) or {}
        if controller["kind"] == self.engine.kind and controller["name"] != self.run:
            return None
        return replace(found, role=role_of(self.roles, self.engine, found.role))

    def role(self, raw: Mapping[str, Any]) -> str:
        """Return the Run's role of an engine's pod; empty without the engine's label."""
        labels = raw["metadata"].get("labels") or {}
        if self.engine is None or self.engine.pods.role not in labels:
            return ""
        return role_of(self.roles, self.engine, labels[self.engine.pods.role])

    def main_container(self, raw: Mapping[str, Any]) -> str:
        """Return the name of the container whose log is the replica's."""
        containers = self.engine.pods.containers if self.engine else {}
        return main_container(raw, containers)


def pod_reader(run: Mapping[str, Any], roles: Collection[str]) -> PodReader:
    """Return the reader for the pods of a raw Run, whose roles the caller knows."""
    return PodReader(run["metadata"]["name"], roles, ENGINES.get(engine_key(run["spec"])))


def delegated_object(run: Run) -> Manifest:
    """Return the object of a delegated Run. Raises InvalidRun with all problems."""
    if (engine := find_engine(run)) is None:
        raise InvalidRun(undelegated_problems(run))
    return render_delegated(run, engine)


def render_delegated(run: Run, engine: Engine) -> Manifest:
    """Return the object that the controller creates. Raises InvalidRun with all problems.

    Fairlead itself acts on the end of the run. Its pods have labels with the Run's uid, by which
    the controller watches them, and with its kind, which the engine's own labels do not tell.
    """
    (manifest,) = render_run(run, BACKENDS[engine.backend])
    spec = manifest["spec"]
    for path in engine.withheld:
        *above, last = path.split(".")
        _below(spec, above).pop(last, None)
    if engine.clean:
        *above, last = engine.clean.split(".")
        put(spec, engine.clean, _below(spec, above).get(last, "Running"))
    if engine.suspend:
        *above, last = engine.suspend.split(".")
        _below(spec, above).pop(last, None)
    own = {names.RUN_UID: run.metadata.uid, names.KIND: run.spec.kind}
    for replica in _below(spec, engine.templates.split(".")).values():
        metadata = replica["template"].setdefault("metadata", {})
        metadata["labels"] = {**metadata.get("labels", {}), **own}
    meta = manifests.metadata(run, run.name)
    written = manifest["metadata"]
    meta["labels"] = {**written.get("labels", {}), **meta["labels"]}
    if written.get("annotations"):
        meta["annotations"] = written["annotations"]
    return {**manifest, "metadata": meta}


def _below(document: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """Return the mapping at the path; an empty one if it is not there."""
    for step in path:
        document = document.get(step) or {}
    return document


def undelegated_problems(run: Run) -> list[str]:
    """Return why no engine can be given the Run: its own problems, or that the pair is unknown."""
    found = BACKENDS[run.spec.backend].problems(run)
    if found:
        return [f"{path_text(each.at)}: {each.message}" for each in found]
    of = f"framework {run.spec.framework}" if run.spec.framework else "a run without a framework"
    return [f"spec.backend: {run.spec.backend} does not run {of} yet; {NATIVE_CURE}"]
