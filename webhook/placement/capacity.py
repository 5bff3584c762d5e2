"""Capacity classes, and the effect of each mode.

A class is compiled once into two disjunctions of terms, `inside` and `outside`, exact complements
of each other, so that Constrain and Prevent are the same operation on either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from webhook.errors import FairleadError
from webhook.placement import node_affinity
from webhook.placement.label_values import equal, negated
from webhook.placement.tolerations import tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.shapes import PreferredTerm, Requirement, Taint, Term, Toleration

DEFAULT_WEIGHT = 50
MAX_NEGATION_TERMS = 64


class InvalidClass(FairleadError):
    """An invalid capacity class: it admits every node, or its negation is too large."""


class Mode(StrEnum):
    """The effect of a class on a pod."""

    ALLOW = "Allow"
    PREFER = "Prefer"
    CONSTRAIN = "Constrain"
    PREVENT = "Prevent"
    NONE = "None"

    def __init__(self, word: str) -> None:
        # Attributes, not properties: every review reads them.
        self.tolerates: Final = word in ("Allow", "Prefer", "Constrain")
        """Whether the pod tolerates the taints of the class."""
        self.prefers: Final = word == "Prefer"
        """Whether the pod prefers nodes of the class, by a weight. No other mode has a weight."""
        self.requires: Final = word == "Constrain"
        """Whether the pod runs only on nodes of the class."""
        self.excludes: Final = word == "Prevent"
        """Whether the pod runs only outside the class, and loses tolerations of its taints."""
        self.does_nothing: Final = word == "None"
        """Whether the mode changes nothing, and only decides that no later policy does."""

    def compatible(self, other: Mode) -> bool:
        """Return whether both can apply to one class; Prevent is compatible only with itself."""
        if self is other or self.does_nothing or other.does_nothing:
            return True
        return not (self.excludes or other.excludes)

    def condition(self, capacity: CapacityClass) -> tuple[Term, ...] | None:
        """Return the terms of which a node must meet one, or None if every node will do."""
        if self.requires:
            return capacity.inside
        return capacity.outside if self.excludes else None


MODES: Final = tuple(Mode)


@dataclass(frozen=True, slots=True)
class CapacityClass:
    """A compiled class. `inside` and `outside` are ORed terms; `keys` the node labels they read.

    `autoscaled`: its nodes are created on demand, so there may be none at the moment.
    `most_grace`: the longest terminationGracePeriodSeconds of pods that run only there.
    `tolerations`: one for each taint of the class, exactly as wide as the taint.
    """

    name: str
    inside: tuple[Term, ...]
    outside: tuple[Term, ...]
    taints: tuple[Taint, ...]
    keys: frozenset[str]
    autoscaled: bool = False
    most_grace: int | None = None
    tolerations: tuple[Toleration, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Once for each class: every review reads them.
        object.__setattr__(self, "tolerations", tuple(map(_toleration, self.taints)))

    def preferences(self, weight: int) -> list[PreferredTerm]:
        """Preferred terms, one for each shape of the class."""
        return [{"weight": weight, "preference": term} for term in self.inside]


def _toleration(taint: Taint) -> Toleration:
    result: Toleration = {"key": taint["key"]}
    if taint.get("value"):
        result |= {"operator": "Equal", "value": taint["value"]}
    else:
        # Without a value in the class, the taint can have any value.
        result["operator"] = "Exists"
    if taint.get("effect"):
        result["effect"] = taint["effect"]
    return result


def shape(labels: dict[str, str], expressions: Sequence[Requirement]) -> Term:
    """Return the term that matches nodes of one shape."""
    wanted = [equal(key, value) for key, value in sorted(labels.items())]
    return {"matchExpressions": [*wanted, *(e for e in expressions if e not in wanted)]}


def compiled(
    name: str, shapes: Sequence[Term], taints: Iterable[Taint], *, autoscaled: bool = False
) -> CapacityClass:
    """Return the class of all nodes that match one of the shapes.

    Each shape has at least one expression, with an operator that can be negated. Raises
    InvalidClass if a shape contradicts itself, if the shapes together admit every node, or if the
    negation exceeds 64 terms.
    """
    for term in shapes:
        if key := node_affinity.contradiction(term, {}):
            raise InvalidClass(f"no node can have this shape of class {name!r}: see label {key!r}")
    outside: list[Term] = [{}]
    for term in shapes:
        alternatives: list[Term] = [
            {"matchExpressions": [negated(r)]} for r in term["matchExpressions"]
        ]
        products = (node_affinity.both(term, other) for term in outside for other in alternatives)
        # Pruned and thinned at each step, so that the size named in the error is the true one.
        outside = node_affinity.without_redundant(
            [p for p in products if node_affinity.contradiction(p, {}) is None]
        )
        if len(outside) > MAX_NEGATION_TERMS:
            raise InvalidClass(
                f"the complement of class {name!r} needs more than {MAX_NEGATION_TERMS} terms:"
                " give it fewer shapes, or fewer expressions in each"
            )
    if not outside:
        raise InvalidClass(
            f"the shapes of class {name!r} together admit every node:"
            " a class must leave some node out"
        )
    unique: list[Taint] = []
    unique.extend(taint for taint in taints if taint not in unique)
    keys = node_affinity.keys(shapes)
    return CapacityClass(name, tuple(shapes), tuple(outside), tuple(unique), keys, autoscaled)


def complement(
    name: str, capacity_class: CapacityClass, *, autoscaled: bool = False
) -> CapacityClass:
    """Return the class of all nodes that are not in class `capacity_class`.

    It has no taints of its own, and is not autoscaled even if `capacity_class` is.
    """
    return CapacityClass(
        name, capacity_class.outside, capacity_class.inside, (), capacity_class.keys, autoscaled
    )


def names_taint(toleration: Toleration, taints: Iterable[Taint]) -> bool:
    """Return whether the toleration names key and effect of one of the taints, and admits it.

    A toleration without a key or an effect covers more than the taint, and does not name it.
    """
    return (
        bool(toleration.get("key"))
        and bool(toleration.get("effect"))
        and any(tolerates(toleration, taint) for taint in taints)
    )
