"""The table of placement fields, which all code that works field by field uses.

Reading a pod, compiling, folding and merging policies, provenance, the patch, comparing pods,
policy tests, exported policies, Runs and `explain --field` take their fields from here. A scalar or
a map needs no code of its own. The fields that together choose a node (nodeSelector, tolerations,
affinity, spread, capacity) are merged by modules of their own; their rows have the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal

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
    ),
    Field(
        name="annotations",
        shape=Shape.MAP,
        attribute="annotations",
        holder="metadata",
        keyed_by="KEY",
    ),
    Field(
        name="securityContext",
        shape=Shape.MAP,
        attribute="security_context",
        keyed_by="KEY",
        filled_in={},
        system_of=_security_system,
    ),
    Field(
        name="priorityClassName",
        shape=Shape.SCALAR,
        attribute="priority_class_name",
        of_cluster=True,
        # The Priority plugin runs again, and fills in the values of the new class.
        derived=("priority", "preemptionPolicy"),
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
# Of those that policies set:
MAPS: Final = _by_name(each for each in FIELDS if each.shape is Shape.MAP)
SCALARS: Final = _by_name(
    each for each in FIELDS if each.shape is Shape.SCALAR and each.by_policies
)
# The maps that do not choose a node: merged key by key, independently of other fields.
PLAIN_MAPS: Final = tuple(each for each in MAPS.values() if not each.chooses_node)
# The fields with the same name in a pod.
OF_PODS: Final = tuple(each for each in FIELDS if each.shape is not Shape.CLASSES)
# The API server drops empty parts of their values before it stores them.
STORED_NORMAL: Final = tuple(each for each in OF_PODS if each.shape in (Shape.LIST, Shape.TERMS))


def is_empty(value: Json) -> bool:
    """Return whether a value of a document or a pod counts as unset; 0 and false do not."""
    return value is None or value in ("", [], {})
