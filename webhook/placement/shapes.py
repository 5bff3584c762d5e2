"""Types of the Kubernetes JSON that placement works on.

They stay plain dictionaries, as the API server sent them, so that a field or an operator that
Fairlead does not know passes through untouched. Source: k8s.io/api/core/v1 types.go.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


class Taint(TypedDict, total=False):
    """v1.Taint: `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


class Toleration(TypedDict, total=False):
    """v1.Toleration: no `operator` means Equal, no `effect` means all effects."""

    key: str
    operator: str
    value: str
    effect: str
    tolerationSeconds: int


class Requirement(TypedDict, total=False):
    """v1.NodeSelectorRequirement: one expression on a label (or field) of a node."""

    key: str
    operator: str
    values: list[str]


class Term(TypedDict, total=False):
    """v1.NodeSelectorTerm: its requirements are ANDed; without any it matches no node."""

    matchExpressions: list[Requirement]
    matchFields: list[Requirement]


class PreferredTerm(TypedDict):
    """v1.PreferredSchedulingTerm."""

    weight: int
    preference: Term
