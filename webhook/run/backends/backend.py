"""The base of backends, and what all backends share: fields, pod templates, metadata.

An engine's objects are made of drafts: layers folded, with placement and resources, and without the
variables, hostnames and volumes by which Fairlead's own controller connects replicas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.run.environment import SPEC, placed
from webhook.strict import Problem, Strict, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.run.model import Run
    from webhook.run.plan import Draft

Manifest: TypeAlias = "JsonObject"

# Fields of the spec that drafts contain, or that a backend reads itself.
_STRUCTURE: Final = frozenset(
    {"kind", "backend", "framework", "environment", "template", "main_container", "replicas"}
)
_ANY_ROLE: Final = "*"
NATIVE_CURE: Final = "use Fairlead's own controller (backend native)"
# What a Run takes for the processes of a replica if nothing sets them.
BY_GPUS: Final = "the GPUs of the main container, else 1"
_CURE: Final = f"remove it, or {NATIVE_CURE}"
# Annotations that name a container, and prefixes of annotations whose key ends with its name.
_NAMING: Final = (names.DEFAULT_CONTAINER, "kubectl.kubernetes.io/default-logs-container")
_PREFIXES: Final = (
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
)


class Drafts(NamedTuple):
    """A Run and the draft of each role, in the framework's order."""

    run: Run
    roles: Mapping[str, Draft]


def unchanged(value: Any) -> Any:
    """Return the value: both systems write it in the same way."""
    return value


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """One field of the Run and its counterpart.

    run: the path below the Run's spec; `replicas.*.` is any role.
    engine: the path below the object's spec; empty if the engine always behaves like this.
    only: the values that the engine supports; empty: all.
    to_engine, to_run: the value in the other system; to_run returns None if there is none.
    unset: what the engine does if the field is unset; empty if it is the same as native.
    beside: the same as `unset`, by another field of the object's spec that changes it.
    absent: by role, or "", the same for an object, if `unset` depends on the rest of the Run.
    native: what a Run means without the field, in words, if that is computed.
    place: where code renders it, in words, if that is not one field of the spec.
    note: how the engine differs, for the docs and for `run render`.
    """

    run: str
    engine: str
    only: tuple[object, ...] = ()
    to_engine: Callable[[Any], Any] = unchanged
    to_run: Callable[[Any], Any] = unchanged
    unset: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    native: str = ""
    place: str = ""
    note: str = ""

    def unset_in_object(self, role: str, others: Collection[str] = ()) -> str:
        """Return what an object means that lacks the field; empty if it is the same as native.

        `others` are the fields that the object's spec has.
        """
        for name, meaning in self.beside.items():
            if name in others:
                return meaning
        return self.absent.get(role, "") if self.absent else self.unset


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """One kind of object: its API and its fields.

    roles: the Run's role -> its counterpart in the object, for the docs too.
    own_variables: Fairlead writes the framework's variables, so all settings of a framework work.
    """

    api_version: str
    kind: str
    framework: str | None
    roles: Mapping[str, str]
    fields: tuple[FieldMapping, ...]
    own_variables: bool = False


def written_fields(run: Run) -> Iterator[tuple[Path, Any]]:
    """Yield path below the spec and value of each written field outside the drafts."""
    for path, value in _written(run.spec, _STRUCTURE):
        # The schema stores suspend: false in every Run.
        if path != ("suspend",) or value:
            yield path, value
    for role, replica in (run.spec.replicas or {}).items():
        for name, outer in (("restart_policy", "restartPolicy"), ("by_index", "byIndex")):
            value = getattr(replica, name)
            if name in replica.model_fields_set and value not in (None, []):
                yield ("replicas", role, outer), value


def _written(model: Strict, without: Iterable[str] = ()) -> Iterator[tuple[Path, Any]]:
    for name, field_info in type(model).model_fields.items():
        value = getattr(model, name)
        if name in without or name not in model.model_fields_set or value is None:
            continue
        outer = field_info.serialization_alias or name
        if isinstance(value, Strict):
            yield from (((outer, *path), inner_value) for path, inner_value in _written(value))
        else:
            yield (outer,), value


def field_key(path: Path) -> str:
    """Return the path as FieldMapping.run has it.

    >>> field_key(("replicas", "worker", "restartPolicy"))
    'replicas.*.restartPolicy'
    """
    steps = [_ANY_ROLE if n == 1 and path[0] == "replicas" else str(s) for n, s in enumerate(path)]
    return ".".join(steps)


def field_problems(run: Run, kind: ObjectKind) -> Iterator[Problem]:
    """Yield a problem for each written field that the kind does not have, or not with the value."""
    mappings = {field.run: field for field in kind.fields}
    for path, value in written_fields(run):
        mapping = mappings.get(field_key(path))
        if kind.own_variables and path[0] == run.spec.framework:
            continue
        if mapping is None:
            yield Problem(("spec", *path), f"{kind.kind} has no such field; {_CURE}")
        elif mapping.only and value not in mapping.only:
            allowed = ", ".join(str(allowed_value) for allowed_value in mapping.only)
            what = f"is {quoted(value)}, and {kind.kind} supports only {allowed}; {_CURE}"
            yield Problem(("spec", *path), what)


def role_problems(run: Run, kind: ObjectKind) -> Iterator[Problem]:
    """Yield a problem for each role that the kind does not have, and for a kind that serves."""
    if run.spec.serving:
        what = f"a {run.spec.kind} runs until it is stopped; {NATIVE_CURE}"
        yield Problem(("spec", "kind"), what)
    for role in run.spec.roles:
        if role not in kind.roles:
            role_names = ", ".join(kind.roles)
            what = f"{kind.kind} has no role {role}, only {role_names}; rename it, or {NATIVE_CURE}"
            yield Problem(("spec", "replicas", role), what)


def kind_problems(
    run: Run, kind: ObjectKind | None, backend: str, frameworks: str
) -> Iterator[Problem]:
    """Yield all problems with roles and fields, or the one that the backend has no kind for it.

    frameworks: those of the backend, in words.
    """
    if kind is None:
        framework = quoted(run.spec.framework or "none")
        what = f"is {framework}; backend {backend} runs framework {frameworks}; {NATIVE_CURE}"
        yield Problem(("spec", "framework"), what)
    else:
        yield from role_problems(run, kind)
        yield from field_problems(run, kind)


class Backend(ABC):
    """An engine to which a Run can be rendered.

    name: the value of --backend. only: its kind, if it has one, for one framework.
    frameworks: those that it runs, in words.
    """

    name: str
    only: ObjectKind
    frameworks = ""

    def kind(self, run: Run) -> ObjectKind | None:
        """Return the kind of the Run's object; None if the engine has none for the framework."""
        return self.only if run.spec.framework == self.only.framework else None

    def problems(self, run: Run) -> Sequence[Problem]:
        """Return what the Run sets and the engine cannot do, with the cure."""
        kind = self.kind(run)
        backend_problems = () if kind is None else self.own_problems(run)
        frameworks = self.frameworks or f"{self.only.framework} only"
        return [*kind_problems(run, kind, self.name, frameworks), *backend_problems]

    def own_problems(self, _run: Run) -> Iterable[Problem]:
        """Return those that roles and fields do not have."""
        return ()

    def draft_problems(self, _drafts: Drafts) -> Iterable[Problem]:
        """Return problems with the merged templates, for a Run without other problems."""
        return ()

    @abstractmethod
    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the engine's objects. Expects a Run without problems."""


def notes(run: Run, kind: ObjectKind) -> Iterator[tuple[Path, str]]:
    """Yield path and note of each written field that the engine treats differently."""
    mappings = {field.run: field for field in kind.fields}
    for path, _ in written_fields(run):
        mapping = mappings.get(field_key(path))
        if mapping is not None and mapping.note:
            yield ("spec", *path), mapping.note


def render_fields(run: Run, kind: ObjectKind) -> JsonObject:
    """Return the object's spec with the written fields that belong to no role."""
    mappings = {field.run: field for field in kind.fields}
    spec: JsonObject = {}
    fields = [*written_fields(run)]
    if "suspend" in run.spec.model_fields_set and not run.spec.suspend:
        fields.append((("suspend",), False))
    for path, value in fields:
        mapping = mappings.get(field_key(path))
        if mapping is not None and mapping.engine and path[0] != "replicas":
            put(spec, mapping.engine, mapping.to_engine(value))
    return spec


def put(document: JsonObject, path: str, value: Any) -> None:
    """Set a value at a dotted path, making the mappings above it."""
    *above, last = path.split(".")
    for step in above:
        document = document.setdefault(step, {})
    document[last] = value


def make_metadata(run: Run) -> JsonObject:
    """Return the object's metadata: the Run's name, labels and annotations.

    The namespace is left out if the Run does not name it, so that kubectl's own applies. kubectl's
    record of what was applied is the Run's own.
    """
    metadata = run.metadata
    result: JsonObject = {"name": run.name}
    if "namespace" in metadata.model_fields_set:
        result["namespace"] = metadata.namespace
    if metadata.labels:
        result["labels"] = dict(metadata.labels)
    annotations = {
        key: value
        for key, value in (metadata.annotations or {}).items()
        if key != names.LAST_APPLIED
    }
    if annotations:
        result["annotations"] = annotations
    return result


def make_object(run: Run, kind: ObjectKind, spec: JsonObject) -> Manifest:
    """Return the object of the kind, with the Run's metadata."""
    metadata = make_metadata(run)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    }


def job_limits(run: Run, role: str, container: str) -> JsonObject:
    """Return what a Job's spec has of the Run's limits, for the pods of one role."""
    policy, spec = run.spec.roles[role].restart_policy, run.spec
    job: JsonObject = {}
    if spec.restart_scope == "Run" or policy == "Never":
        job["backoffLimit"] = 0
    elif "backoff_limit" in spec.model_fields_set:
        job["backoffLimit"] = spec.backoff_limit
    if spec.active_deadline_seconds is not None:
        job["activeDeadlineSeconds"] = spec.active_deadline_seconds
    if policy == "ExitCode":
        job["podFailurePolicy"] = exit_code_policy(container)
    return job


def exit_code_policy(container: str) -> JsonObject:
    """Return the podFailurePolicy for restartPolicy ExitCode."""
    codes = {"containerName": container, "operator": "In", "values": [*range(1, 128)]}
    return {"rules": [{"action": "FailJob", "onExitCodes": codes}]}


def render_template(draft: Draft, *, container: str = "", first: bool = False) -> JsonObject:
    """Return the role's pod template, with placement and resources.

    container: the name that the engine gives its main container, or "" for any.
    first: the engine takes the first container for the main one.
    restartPolicy is left out, because engines set it.
    """
    where = placed(draft.placement)
    written = draft.written
    spec = {
        key: value
        for key, value in written["spec"].items()
        if key not in SPEC and key not in ("containers", "restartPolicy")
    }
    main = dict(written["spec"]["containers"][draft.at])
    if draft.resources is not None:
        main["resources"] = draft.resources
    others = [other for n, other in enumerate(written["spec"]["containers"]) if n != draft.at]
    containers = [*others]
    containers.insert(0 if first else draft.at, main)
    spec = {**spec, **where.spec, "containers": containers}
    annotations = dict(where.annotations)
    old = main["name"]
    if container and old != container:
        main["name"] = container
        spec = _with_reference(spec, old, container)
        annotations = dict(
            _rename_in_annotation(*annotation, old, container) for annotation in annotations.items()
        )
    metadata: JsonObject = {}
    if where.labels:
        metadata["labels"] = dict(where.labels)
    if annotations:
        metadata["annotations"] = annotations
    if finalizers := (written.get("metadata") or {}).get("finalizers"):
        metadata["finalizers"] = finalizers
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}


def add_labels(template: JsonObject, labels: Mapping[str, str]) -> None:
    """Add labels to a rendered pod template, by which Fairlead knows the pods; its own win."""
    if labels:
        metadata = template.setdefault("metadata", {})
        metadata["labels"] = {**labels, **metadata.get("labels", {})}


def container_problems(drafts: Drafts, container: str) -> Iterator[Problem]:
    """Yield a problem if another container has the name that the engine wants for the main one."""
    if not container:
        return
    for role, draft in drafts.roles.items():
        spec = draft.written["spec"]
        others = [other for n, other in enumerate(spec["containers"]) if n != draft.at]
        for other in (*others, *(spec.get("initContainers") or ())):
            if other["name"] == container:
                main = draft.container["name"]
                what = (
                    f"the engine wants its main container called {container}, and in role {role} "
                    f"that is {main}, beside another container {container}; rename the other one, "
                    f"or set mainContainer: {container}"
                )
                yield Problem(("spec", "mainContainer"), what)


def _with_reference(value: Any, old: str, new: str) -> Any:
    """Return the value with each resourceFieldRef to a container renamed."""
    if isinstance(value, list):
        return [_with_reference(item, old, new) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _with_reference(item, old, new) for key, item in value.items()}
    reference = result.get("resourceFieldRef")
    if isinstance(reference, dict) and reference.get("containerName") == old:
        result["resourceFieldRef"] = {**reference, "containerName": new}
    return result


def _rename_in_annotation(key: str, value: str, old: str, new: str) -> tuple[str, str]:
    if key in _NAMING and value == old:
        return key, new
    for prefix in _PREFIXES:
        if key == f"{prefix}{old}":
            return f"{prefix}{new}", value
    return key, value
