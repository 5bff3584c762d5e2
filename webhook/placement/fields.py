"""The table of placement fields, which all code that works field by field uses.

Reading a pod, compiling, folding and merging policies, provenance, the patch, comparing pods,
policy tests, exported policies, Runs and `explain --field` take their fields from here. A scalar or
a map needs no code of its own. The fields that together choose a node (nodeSelector, tolerations,
affinity, spread, capacity) are merged by modules of their own; their rows have the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.placement.shapes import Json


class Shape(Enum):
    """What a field holds."""

    SCALAR = "one text or number"
    MAP = "values by key"
    LIST = "objects"
    TERMS = "affinity: lists of terms in objects"
    CLASSES = "capacity classes with modes; in a pod, an annotation"


def _any_system(key: str) -> str:  # noqa: ARG001  the signature of Field.system_of
    return ""


def _security_system(key: str) -> str:
    """windowsOptions are for Windows, all others for Linux (core/validation: ValidateOS)."""
    if key == "runAsNonRoot":
        return ""
    return "windows" if key == "windowsOptions" else "linux"


class Weakens(Protocol):
    """How a value weakens pods, as in Field."""

    def __call__(self, key: str, value: Any, *, is_default: bool) -> str: ...


def _nothing(key: str, value: Any, *, is_default: bool) -> str:  # noqa: ARG001  as Weakens
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One placement field.

    name:          its name in policies, stamps and traces, and in the pod
    shape:         what it holds
    attribute:     of PodPlacement; empty for affinity, which has two, and for capacity
    holder:        the part of a pod that it is in
    by_policies:   whether policies may set it
    chooses_node:  whether it helps to choose a node; unchanged in a pod with nodeName
    keyed_by:      how `explain --field` names the key of one entry; empty if there are no entries
    unset:         for a scalar, the effective value if the pod has none
    filled_in:     the value that the API server stores if the author wrote none, which counts as
                   unset; None if it stores none
    of_cluster:    whether the cluster's default PriorityClass is filled in too
    overrides:     what an override does to another value: set it, keep it, or reject the pod
    why:           for keep and reject, the reason that a message gives
    requirement:   whether a requirement is the value or, for a number, the most that it may be
    derived:       fields of the spec that an admission plugin derives from it, and that the patch
                   removes so that they are derived again
    label_keys:    whether the API server, after admission, merges its matchLabelKeys into selectors
    system_of:     the operating system that a key of a map is for; empty for every system
    selected:      whether the owners of pods select them by it
    weakens:       takes a key (empty without), a value that a policy sets, and whether it is a
                   default; returns how it weakens what holds pods apart, empty if it does not
    """

    name: str
    shape: Shape
    attribute: str = ""
    holder: Literal["metadata", "spec"] = "spec"
    by_policies: bool = True
    chooses_node: bool = False
    keyed_by: str = ""
    unset: str | int = ""
    filled_in: Json = None
    of_cluster: bool = False
    overrides: Literal["set", "keep", "reject"] = "set"
    why: str = ""
    requirement: Literal["equal", "maximum"] = "equal"
    derived: tuple[str, ...] = ()
    label_keys: bool = False
    system_of: Callable[[str], str] = _any_system
    selected: bool = False
    weakens: Weakens = _nothing

    @property
    def path(self) -> str:
        """Where it is in a pod, as a JSON Pointer."""
        return f"/{self.holder}/{self.name}"

    @property
    def silent(self) -> str | int:
        """The value of a scalar in a stored pod whose author wrote none."""
        value: str | int = self.unset if self.filled_in is None else self.filled_in
        return value

    def unwritten(self, default_priority_class: str) -> tuple[str | int, ...]:
        """Return the values of a scalar that count as unset."""
        filled_in = default_priority_class if self.of_cluster else self.silent
        return (self.unset,) if filled_in == self.unset else (self.unset, filled_in)


# What Pod Security's levels baseline and restricted forbid of what policies set (package
# k8s.io/pod-security-admission/policy, v0.36).
_SELINUX_TYPES: Final = (
    None,
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
)
_SAFE_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        *(
            f"net.ipv4.{name}"
            for name in (
                "ip_local_port_range",
                "ip_local_reserved_ports",
                "ip_unprivileged_port_start",
                "ping_group_range",
                "tcp_fin_timeout",
                "tcp_keepalive_intvl",
                "tcp_keepalive_probes",
                "tcp_keepalive_time",
                "tcp_rmem",
                "tcp_syncookies",
                "tcp_wmem",
            )
        ),
    }
)


def _weaker_security(key: str, value: Any, *, is_default: bool) -> str:
    mapping = value if isinstance(value, dict) else {}
    match key:
        case "runAsUser" if value == 0:
            return "runs containers as root"
        # As a default it says what is so without it.
        case "runAsNonRoot" if value is False and not is_default:
            return "lets containers run as root"
        case "seccompProfile" if mapping.get("type") == "Unconfined":
            return "lets containers make every system call"
        case "appArmorProfile" if mapping.get("type") == "Unconfined":
            return "takes AppArmor away from containers"
        case "seLinuxOptions" if (
            mapping.get("type") not in _SELINUX_TYPES or mapping.get("user") or mapping.get("role")
        ):
            return "gives containers another SELinux context than those for containers"
        case "sysctls":
            unsafe = [sysctl["name"] for sysctl in value if sysctl["name"] not in _SAFE_SYSCTLS]
            return f"sets unsafe kernel parameters: {', '.join(unsafe)}" if unsafe else ""
    return ""


def _weaker_annotation(key: str, value: Any, *, is_default: bool) -> str:  # noqa: ARG001
    weak = key.startswith(names.APP_ARMOR) and value == "unconfined"
    return "takes AppArmor away from a container" if weak else ""


def _critical(key: str, value: Any, *, is_default: bool) -> str:  # noqa: ARG001
    critical = value in names.SYSTEM_CLASSES
    return "lets pods preempt almost all others, the cluster's own among them" if critical else ""


# In the order in which policies are compiled, which is also the order of traces.
FIELDS: Final = (
    Field(
        name="nodeSelector",
        shape=Shape.MAP,
        attribute="node_selector",
        chooses_node=True,
        keyed_by="KEY",
    ),
    Field(
        name="labels",
        shape=Shape.MAP,
        attribute="labels",
        holder="metadata",
        keyed_by="KEY",
        overrides="keep",
        why="a label that is there is never changed",
        selected=True,
    ),
    Field(
        name="annotations",
        shape=Shape.MAP,
        attribute="annotations",
        holder="metadata",
        keyed_by="KEY",
        weakens=_weaker_annotation,
    ),
    Field(
        name="securityContext",
        shape=Shape.MAP,
        attribute="security_context",
        keyed_by="KEY",
        filled_in={},
        system_of=_security_system,
        weakens=_weaker_security,
    ),
    Field(
        name="priorityClassName",
        shape=Shape.SCALAR,
        attribute="priority_class_name",
        of_cluster=True,
        # The Priority plugin runs again, and fills in the values of the new class.
        derived=("priority", "preemptionPolicy"),
        weakens=_critical,
    ),
    Field(
        name="schedulerName",
        shape=Shape.SCALAR,
        attribute="scheduler_name",
        filled_in=names.DEFAULT_SCHEDULER,
    ),
    Field(
        name="runtimeClassName",
        shape=Shape.SCALAR,
        attribute="runtime_class_name",
        overrides="reject",
        why="whose overhead is in the pod already",
    ),
    Field(
        name="terminationGracePeriodSeconds",
        shape=Shape.SCALAR,
        attribute="termination_grace_period_seconds",
        unset=30,
        filled_in=30,
        requirement="maximum",
    ),
    Field(
        name="tolerations",
        shape=Shape.LIST,
        attribute="tolerations",
        chooses_node=True,
        keyed_by="KEY",
    ),
    Field(name="affinity", shape=Shape.TERMS, chooses_node=True, label_keys=True),
    Field(
        name="topologySpreadConstraints",
        shape=Shape.LIST,
        attribute="topology_spread",
        chooses_node=True,
        keyed_by="TOPOLOGYKEY,WHENUNSATISFIABLE",
        label_keys=True,
    ),
    Field(
        name="nodeName",
        shape=Shape.SCALAR,
        attribute="node_name",
        by_policies=False,
        chooses_node=True,
    ),
    Field(name="capacity", shape=Shape.CLASSES, chooses_node=True, keyed_by="CLASS"),
)


def _by_name(fields: Iterable[Field]) -> Mapping[str, Field]:
    return {field.name: field for field in fields}


BY_NAME: Final = _by_name(FIELDS)
# The name of a field at the start of a path.
_NAME: Final = re.compile(r"[^.\[]+")
# Of those that policies set:
MAPS: Final = _by_name(field for field in FIELDS if field.shape is Shape.MAP)
SCALARS: Final = _by_name(
    field for field in FIELDS if field.shape is Shape.SCALAR and field.by_policies
)
# The maps that do not choose a node: merged key by key, independently of other fields.
PLAIN_MAPS: Final = tuple(field for field in MAPS.values() if not field.chooses_node)
# The fields with the same name in a pod.
OF_PODS: Final = tuple(field for field in FIELDS if field.shape is not Shape.CLASSES)
# The API server drops empty parts of their values before it stores them.
STORED_NORMAL: Final = tuple(field for field in OF_PODS if field.shape in (Shape.LIST, Shape.TERMS))


def is_empty(value: Json) -> bool:
    """Return whether a value of a document or a pod counts as unset; 0 and false do not."""
    return value is None or value in ("", [], {})


def field_of(field: str) -> Field:
    """Return the row of a field as a trace names it: labels[team]."""
    return BY_NAME[_NAME.findall(field)[0]]
