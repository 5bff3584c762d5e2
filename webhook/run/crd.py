"""The CustomResourceDefinition runs.fairlead.dev, made from the Run's model.

The rules in CEL are for what the schema cannot express.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from webhook import names
from webhook.crd.definition import (
    TEXT,
    Called,
    Column,
    Structural,
    definition,
    list_by_keys,
    placement_lists,
)
from webhook.crd.rules import PLACEMENT, TOO_DEEP, Rule, literal
from webhook.dns_names import MAX_LABEL, SERVICE_NAME
from webhook.frameworks.native_default import is_native_default
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.placement.schema.syntax import MAX_LISTED
from webhook.run.backends.dask_operator import SUFFIX as DASK_SUFFIX
from webhook.run.backends.jobset import COORDINATOR
from webhook.run.backends.jobset import SUFFIX as JOBSET_SUFFIX
from webhook.run.json_schema import raw
from webhook.run.model import DEFAULT_ROLE, SERVING, ReplicaSpec, RunSpec
from webhook.run.model.replica import MAX_OVERRIDES
from webhook.run.model.spec import MAX_EXIT_CODES, MAX_PORTS
from webhook.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.crd.definition import Lists
    from webhook.frameworks.framework import Roles

Json = dict[str, Any]

_SERVES: Final = f"self.kind in {literal([kind for kind in names.KINDS if kind in SERVING])}"
_NO_REPLICAS: Final = "!has(self.replicas)"

# The length of the longest of the names <run>-<role>-<index>.
_LONGEST_POD: Final = (
    "size(self.metadata.name) + (has(self.spec.replicas) ? self.spec.replicas.map(r,"
    " size(r) + size(string(self.spec.replicas[r].count - 1))).max() : "
    f"{len(DEFAULT_ROLE) + 1}) + 2"
)
_NAMES: Final = (
    Rule(
        f"self.metadata.name.matches('^{SERVICE_NAME}$')",
        "the run's Service has the same name: use lower-case letters, digits and '-', with a "
        "letter at the beginning and a letter or a digit at the end",
        at=".metadata.name",
    ),
    Rule(
        f"{_LONGEST_POD} <= {MAX_LABEL}",
        f"the names of pods, <run>-<role>-<index>, have at most {MAX_LABEL} characters: give the "
        "run a shorter name",
        at=".metadata.name",
    ),
    Rule(
        f"self.spec.?backend.orValue('') != 'jobset'"
        f" || {_LONGEST_POD} <= {MAX_LABEL - JOBSET_SUFFIX}",
        f"JobSet appends {JOBSET_SUFFIX} characters to <run>-<role>-<index> for the names of pods: "
        "give the run a shorter name",
        at=".metadata.name",
    ),
    Rule(
        "self.spec.?backend.orValue('') != 'jobset' || !has(self.spec.replicas)"
        " || size(self.spec.replicas) < 2 || self.spec.replicas.all(r,"
        f" !(r in {literal(sorted(names.COORDINATOR_ROLES))})"
        f" || 2 * size(self.metadata.name) + size(r) <= {MAX_LABEL - COORDINATOR})",
        "JobSet writes the leader's address, <run>-<role>-0-0.<run>, into a label, of at most "
        f"{MAX_LABEL} characters: give the run a shorter name",
        at=".metadata.name",
    ),
    Rule(
        "self.spec.?backend.orValue('') != 'dask'"
        f" || size(self.metadata.name) <= {MAX_LABEL - DASK_SUFFIX}",
        f"Dask's operator appends up to {DASK_SUFFIX} characters: give the run a name of at most "
        f"{MAX_LABEL - DASK_SUFFIX}",
        at=".metadata.name",
    ),
)
_OVERRIDES: Final = (
    Rule(
        "!has(self.byIndex) || self.byIndex.all(o, o.index < self.count)",
        "each index must be less than count, because indexes start at 0: increase count, or remove "
        "the override",
        at=".byIndex",
    ),
)
_CURE: Final = "delete the Run, and create it again"
_ALWAYS: Final = "true"
_IS_NATIVE: Final = "(!has(self.backend) || self.backend == 'native')"
# An engine counts the failures of a run that restarts as a whole, by a limit in its own object. It
# has a limit of its own there where the Run set none.
_FAIRLEAD_COUNTS: Final = (
    "(has(self.backoffLimit) && has(oldSelf.backoffLimit)"
    " && !(has(self.restartScope) && self.restartScope == 'Run'))"
)
_UNLESS_ENGINE_COUNTS: Final = (
    "on another backend than native it may be changed only if it was set at creation and "
    "restartScope is not Run, because otherwise the engine counts failures"
)
_ONLY_NATIVE: Final = "may be changed on backend native only"
# Fields that may be changed while a Run lives, by when: CEL, and in words where not all may.
CHANGEABLE: Final[Mapping[str, tuple[str, str]]] = {
    "suspend": (_ALWAYS, ""),
    "ttlSecondsAfterFinished": (_ALWAYS, ""),
    "activeDeadlineSeconds": (_ALWAYS, ""),
    "backoffLimit": (f"({_IS_NATIVE} || {_FAIRLEAD_COUNTS})", _UNLESS_ENGINE_COUNTS),
    "disruptionLimit": (_IS_NATIVE, _ONLY_NATIVE),
    "cleanPodPolicy": (_IS_NATIVE, _ONLY_NATIVE),
}


def _same(model: type[Strict], name: str, new: str = "self", old: str = "oldSelf") -> str:
    """Return CEL that is true if the field of the model is unchanged.

    An unset field equals its native default, because earlier versions stored the defaults.
    Optional values can be compared too, but the API server estimates an unbounded cost for that.
    """
    field = model.model_fields[name]
    outer = field.serialization_alias or name
    new, old = f"{new}.{outer}", f"{old}.{outer}"
    if is_native_default(field):
        default = _default_literal(field.default)
        return f"(has({new}) ? {new} : {default}) == (has({old}) ? {old} : {default})"
    inner = _with_defaults(field.annotation)
    equal = f"{new} == {old}" if inner is None else _same_fields(inner, new, old)
    return f"has({new}) == has({old}) && (!has({new}) || ({equal}))"


def _default_literal(value: bool | int | str) -> str:
    return literal(value) if isinstance(value, str) else str(value).lower()


def _same_fields(model: type[Strict], new: str, old: str) -> str:
    return " && ".join(f"({_same(model, name, new, old)})" for name in model.model_fields)


def _with_defaults(annotation: object) -> type[Strict] | None:
    """Return the model in the annotation that has native defaults, at any depth; else None."""
    for argument in get_args(annotation) or (annotation,):
        if isinstance(argument, type) and issubclass(argument, Strict):
            fields = argument.model_fields.values()
            if any(is_native_default(f) or _with_defaults(f.annotation) for f in fields):
                return argument
    return None


_SAME_ROLES: Final = (
    "has(self.replicas) == has(oldSelf.replicas) && (!has(self.replicas)"
    " || (size(self.replicas) == size(oldSelf.replicas)"
    " && self.replicas.all(r, r in oldSelf.replicas)))"
)
_SAME_REPLICAS: Final = (
    "!has(self.replicas) || self.replicas.all(r,"
    f" {_same_fields(ReplicaSpec, 'self.replicas[r]', 'oldSelf.replicas[r]')})"
)
_FIELDS: Final = {
    outer: name
    for name, outer in zip(RunSpec.model_fields, RunSpec.outer_names(), strict=True)
    if outer != "replicas"
}


def _fixed(outer: str, name: str) -> Rule | None:
    """Return the rule that the field does not change, or not always; None if it may at any time."""
    when, why = CHANGEABLE.get(outer, ("", "may not be changed after creation"))
    if when == _ALWAYS:
        return None
    same = _same(RunSpec, name)
    return Rule(f"{when} || ({same})" if when else same, f"{why}: {_CURE}", at=f".{outer}")


FIXED: Final = (
    *filter(None, (_fixed(outer, name) for outer, name in _FIELDS.items())),
    Rule(
        _SAME_ROLES,
        f"roles may not be added or removed after creation: {_CURE}",
        at=".replicas",
    ),
    Rule(
        f"!({_SAME_ROLES}) || ({_SAME_REPLICAS})",
        f"may not be changed after creation: {_CURE}",
        at=".replicas",
    ),
)


def _roles() -> Iterator[Rule]:
    """Yield the rules for known and for required roles of each framework."""
    for framework, roles in ROLES.items():
        other = f"self.?framework.orValue('') != {literal(framework or '')} || {_SERVES}"
        subject = f"framework {framework}" if framework else "a run without a framework"
        role_names = ", ".join(roles.names)
        yield Rule(
            f"{other} || {_NO_REPLICAS} || self.replicas.all(r, r in {literal(roles.names)})",
            f"{subject} has the roles {role_names} only: rename the others, or remove them",
            at=".replicas",
        )
        if DEFAULT_ROLE not in roles.names:
            yield Rule(
                f"{other} || has(self.replicas)",
                f"is required for {subject}: its roles are {role_names}",
                at=".replicas",
            )
        for some in roles.required:
            # A run needs at least one role anyway, so a rule that lists all roles is redundant.
            if set(some) != set(roles.names):
                presence_test = " || ".join(f"{literal(role)} in self.replicas" for role in some)
                yield Rule(
                    f"{other} || {_NO_REPLICAS} || {presence_test}",
                    f"{subject} needs a {' or a '.join(some)}: add it",
                    at=".replicas",
                )


def _counts() -> Iterator[Rule]:
    single = single_roles(ROLES)
    yield Rule(
        f"{_NO_REPLICAS}"
        f" || self.replicas.all(r, !(r in {literal(single)}) || self.replicas[r].count == 1)",
        f"the roles {', '.join(single)} have one replica at most: set the count to 1",
        at=".replicas",
    )
    replaced = {newer: older for roles in ROLES.values() for newer, older in roles.newer.items()}
    for newer, older in replaced.items():
        yield Rule(
            f"{_NO_REPLICAS} || !('{older}' in self.replicas && '{newer}' in self.replicas)",
            f"{newer} is the newer name of {older}: keep one of the two",
            at=".replicas",
        )
    yield Rule(
        f"!({_SERVES}) || {_NO_REPLICAS}"
        f" || self.replicas.all(r, r == {literal(DEFAULT_ROLE)} && self.replicas[r].count == 1)",
        f"a notebook, a tensorboard or a service is one pod, of role {DEFAULT_ROLE}: remove the "
        "replicas",
        at=".replicas",
    )
    for framework in FRAMEWORKS.values():
        for rule, message, at in framework.rules:
            yield Rule(rule, message, at=at)


def _companions() -> Iterator[Rule]:
    """Yield the rules for fields that are valid only together with others."""
    yield Rule(
        f"!({_SERVES}) || !has(self.framework)",
        "is valid with the kinds experiment, job and build only: remove it",
        at=".framework",
    )
    for field in ("ports", "maxAgeSeconds"):
        yield Rule(
            f"{_SERVES} || !has(self.{field})",
            "is valid with the kinds notebook, tensorboard and service only: remove it",
            at=f".{field}",
        )
    yield Rule(
        f"!({_SERVES}) || !has(self.gang)",
        "is valid with the kinds experiment, job and build only: remove it",
        at=".gang",
    )
    yield Rule(
        f"{_IS_NATIVE} || !has(self.gang)",
        "is valid on backend native only, because the engine creates the pods: remove it",
        at=".gang",
    )
    for framework in FRAMEWORKS:
        yield Rule(
            f"!has(self.{framework}) || self.?framework.orValue('') == {literal(framework)}",
            f"is valid with framework {framework} only: remove it",
            at=f".{framework}",
        )
    yield Rule(
        "!has(self.ports) || size(self.ports) == 1 || self.ports.all(p, has(p.name)"
        " && self.ports.exists_one(q, has(q.name) && q.name == p.name))",
        "with several ports, each needs a unique name: add or change the name",
        at=".ports",
    )


def single_roles(table: Mapping[str | None, Roles]) -> list[str]:
    """Return the roles that have at most one replica in every framework.

    Raises ValueError if a role is single in one framework and not in another, because one rule
    covers all frameworks.
    """
    single = {role for roles in table.values() for role in roles.single}
    for framework, roles in table.items():
        if several := single & {*roles.names} - roles.single:
            raise ValueError(f"{framework} has several {', '.join(several)}, others have one")
    return [role for role in names.ROLES if role in single]


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "Run": _NAMES,
    "RunSpec": (*_roles(), *_counts(), *_companions(), *FIXED),
    "ReplicaSpec": _OVERRIDES,
    **PLACEMENT,
}

# The short name for `kubectl get flrun`. Other groups also have a kind Run, so `run` is ambiguous.
_CALLED: Final = Called(names.RUN_KIND, names.RUNS, "Namespaced", "flrun", ("all", "fairlead"))
NAME: Final = _CALLED.resource
_COLUMNS: Final = (
    Column("Phase", "string", ".status.phase"),
    Column("Framework", "string", ".spec.framework"),
    Column("Replicas", "string", ".status.replicasReady"),
    Column("Restarts", "integer", ".status.restarts"),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("Kind", "string", ".spec.kind", wide=True),
    Column("Disruptions", "integer", ".status.disruptions", wide=True),
    Column("Duration", "string", ".status.duration", wide=True),
    Column("Repeated", "string", ".status.repeated", wide=True),
    Column("Gang", "string", ".status.gang.state", wide=True),
    Column("Message", "string", ".status.message", wide=True),
)
LISTS: Final[Lists] = {
    **placement_lists("Environment"),
    ("RunSpec", "replicas"): {"maxProperties": max(len(roles.names) for roles in ROLES.values())},
    ("RunSpec", "ports"): list_by_keys(MAX_PORTS, "port"),
    ("RunSpec", "disruptionExitCodes"): {
        "maxItems": MAX_EXIT_CODES,
        "x-kubernetes-list-type": "set",
    },
    ("ReplicaSpec", "byIndex"): list_by_keys(MAX_OVERRIDES, "index"),
    ("Resources", "claims"): list_by_keys(MAX_LISTED, "name"),
    ("RunStatus", "conditions"): list_by_keys(0, "type"),
}


def custom_resource_definition() -> Json:
    """Return the definition as an apiextensions.k8s.io/v1 object."""
    return definition(_CALLED, _COLUMNS, _schema())


def _schema() -> Json:
    """Return the schema of the object. In metadata a schema can restrict only the name."""
    whole = raw()
    structural = Structural(whole["$defs"], RULES, LISTS, "IndexSpec", TOO_DEEP)
    name = {**TEXT, "maxLength": MAX_LABEL}
    return {
        "description": whole["description"],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": {"type": "object", "properties": {"name": name, "generateName": name}},
            "spec": {
                **structural.definition("RunSpec"),
                "description": whole["properties"]["spec"]["description"],
            },
            "status": {
                **structural.definition("RunStatus"),
                "description": whole["properties"]["status"]["description"],
            },
        },
        "x-kubernetes-validations": [rule.schema() for rule in RULES["Run"]],
    }
