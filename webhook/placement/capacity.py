"""Capacity classes: named kinds of node, told by labels and taints, and what each mode asks for.

A class is compiled once into two disjunctions of terms, `inside` and `outside`, exact complements
of each other, so that Constrain and Prevent are the same operation on either.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """A capacity class that cannot be: it admits every node, or its negation is too large."""


class Mode(StrEnum):
    """What a pod has to do with a class."""

    ALLOW = "Allow"
    PREFER = "Prefer"
    CONSTRAIN = "Constrain"
    PREVENT = "Prevent"
    NONE = "None"

    @property
    def tolerates(self) -> bool:
        """Whether the pod tolerates the taints of the class."""
        return self in (Mode.ALLOW, Mode.PREFER, Mode.CONSTRAIN)

    @property
    def prefers(self) -> bool:
        """Whether the pod prefers nodes of the class, by a weight; no other mode has a weight."""
        return self is Mode.PREFER

    @property
    def requires(self) -> bool:
        """Whether the pod runs on nodes of the class only."""
        return self is Mode.CONSTRAIN

    @property
    def excludes(self) -> bool:
        """Whether the pod runs outside the class only, and loses tolerations of its taints."""
        return self is Mode.PREVENT

    @property
    def does_nothing(self) -> bool:
        """Whether it changes nothing, and only decides that no later policy does."""
        return self is Mode.NONE

    def compatible(self, other: Mode) -> bool:
        """Whether both can be meant of one class at once: only Prevent agrees with no other."""
        if self is other or self.does_nothing or other.does_nothing:
            return True
        return not (self.excludes or other.excludes)

    def condition(self, capacity: CapacityClass) -> tuple[Term, ...] | None:
        """The terms of which a node must meet one, or None if every node will do."""
        if self.requires:
            return capacity.inside
        return capacity.outside if self.excludes else None


MODES: Final = tuple(Mode)


@dataclass(frozen=True, slots=True)
class CapacityClass:
    """A compiled class. `inside` and `outside` are ORed terms; `keys` the node labels they read.

    `autoscaled`: its nodes are made on demand, so that there may be none at the moment.
    """

    name: str
    inside: tuple[Term, ...]
    outside: tuple[Term, ...]
    taints: tuple[Taint, ...]
    keys: frozenset[str]
    autoscaled: bool = False

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """One toleration for each taint of the class, exactly as wide as the taint."""
        return tuple(_toleration(taint) for taint in self.taints)

    def preferences(self, weight: int) -> list[PreferredTerm]:
        """Preferred terms, one for each way to be a node of the class."""
        return [{"weight": weight, "preference": term} for term in self.inside]


def _toleration(taint: Taint) -> Toleration:
    result: Toleration = {"key": taint["key"]}
    if taint.get("value"):
        result |= {"operator": "Equal", "value": taint["value"]}
    else:
        # A class that gives no value means the taint, whatever its value.
        result["operator"] = "Exists"
    if taint.get("effect"):
        result["effect"] = taint["effect"]
    return result


def shape(labels: dict[str, str], expressions: Sequence[Requirement]) -> Term:
    """The term that holds on nodes of one shape."""
    wanted = [equal(key, value) for key, value in sorted(labels.items())]
    return {"matchExpressions": [*wanted, *(e for e in expressions if e not in wanted)]}


def compiled(
    name: str, shapes: Sequence[Term], taints: Iterable[Taint], *, autoscaled: bool = False
) -> CapacityClass:
    """The class of all nodes that one of the shapes holds on.

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
        products = (node_affinity.both(one, other) for one in outside for other in alternatives)
        # Pruned and thinned at each step, so that the size named in the error is the true one.
        outside = node_affinity.without_redundant(
            [p for p in products if node_affinity.contradiction(p, {}) is None]
        )
        if len(outside) > MAX_NEGATION_TERMS:
            raise InvalidClass(
                f"what is not of class {name!r} takes more than {MAX_NEGATION_TERMS} terms to say:"
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


def complement(name: str, of: CapacityClass, *, autoscaled: bool = False) -> CapacityClass:
    """The class of all nodes that are not of class `of`. It has no taints of its own.

    Nor is it autoscaled because `of` is.
    """
    return CapacityClass(name, of.outside, of.inside, (), of.keys, autoscaled)


def names_taint(toleration: Toleration, taints: Iterable[Taint]) -> bool:
    """Whether the toleration names key and effect of one of the taints, and admits it.

    A toleration without key or without effect speaks of more than the taint: it does not name it.
    """
    return (
        bool(toleration.get("key"))
        and bool(toleration.get("effect"))
        and any(tolerates(toleration, taint) for taint in taints)
    )
