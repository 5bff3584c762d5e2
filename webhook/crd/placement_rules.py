"""Rules in CEL for placement: what is wrong between the fields of an environment.

What would cost too much is left to the controller, which reads with the model: the form of a
mapping's keys (the API server reckons with keys of any length), whether Gt and Lt have a number,
whether a key stands in two lists of labels, and the expressions of single replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.rule import Rule
from webhook.placement.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping


def _empty(field: str) -> str:
    return f"(!has(self.{field}) || size(self.{field}) == 0)"


# A list of two texts in a rule costs more than all the rest of it.
_LIST: Final = "(self.operator == 'In' || self.operator == 'NotIn')"
_NUMBER: Final = "(self.operator == 'Gt' || self.operator == 'Lt')"
_VALUES: Final = (
    Rule(
        f"{_LIST} ? !{_empty('values')} : {_empty('values')}",
        "In and NotIn need one value or more, Exists and DoesNotExist take none: add or remove "
        "values",
        at=".values",
    ),
)
_NODE_VALUES: Final = (
    Rule(
        f"{_LIST} ? !{_empty('values')}"
        f" : ({_NUMBER} ? has(self.values) && size(self.values) == 1 : {_empty('values')})",
        "In and NotIn need one value or more, Gt and Lt exactly one, Exists and DoesNotExist take "
        "none: add or remove values",
        at=".values",
    ),
)
_TERM: Final = (
    Rule(
        f"!{_empty('matchExpressions')} || !{_empty('matchFields')}",
        "a term without expressions matches no node: give matchExpressions, or remove the term",
    ),
)
_TOLERATION: Final = (
    Rule(
        "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
        "a toleration without a key needs operator Exists, and tolerates every taint: give a key",
    ),
    Rule(
        "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
        "Exists takes no value: remove it, or use Equal",
        at=".value",
    ),
    Rule(
        "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        "goes with effect NoExecute only: set it, or remove this",
        at=".tolerationSeconds",
    ),
)
_CAPACITY: Final = (
    Rule(
        f"!has(self.weight) || self.mode == '{Mode.PREFER}'",
        f"goes with mode {Mode.PREFER} only: remove it, or change the mode",
        at=".weight",
    ),
)
_PROFILE: Final = (
    Rule(
        "self.type != 'Localhost' || (has(self.localhostProfile) && self.localhostProfile != '')",
        "type Localhost needs a localhostProfile: give one",
    ),
    Rule(
        "self.type == 'Localhost' || !has(self.localhostProfile)",
        "goes with type Localhost only: remove it, or change the type",
        at=".localhostProfile",
    ),
)


def _label_keys(field: str) -> Rule:
    return Rule(
        f"{_empty(field)} || has(self.labelSelector)",
        "needs a labelSelector beside it: give one",
        at=f".{field}",
    )


_SPREAD: Final = (
    Rule(
        "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
        "goes with whenUnsatisfiable DoNotSchedule only: remove it",
        at=".minDomains",
    ),
    _label_keys("matchLabelKeys"),
)
_POD_TERM: Final = (_label_keys("matchLabelKeys"), _label_keys("mismatchLabelKeys"))

PLACEMENT: Final[Mapping[str, tuple[Rule, ...]]] = {
    "LabelSelectorRequirement": _VALUES,
    "NodeSelectorRequirement": _NODE_VALUES,
    "NodeSelectorTerm": _TERM,
    "Toleration": _TOLERATION,
    "CapacitySetting": _CAPACITY,
    "SeccompProfile": _PROFILE,
    "AppArmorProfile": _PROFILE,
    "TopologySpreadConstraint": _SPREAD,
    "PodAffinityTerm": _POD_TERM,
}

# What is not judged in the environment of a single replica: lists in lists in lists of replicas
# would be reckoned dearer than all else together.
TOO_DEEP: Final = frozenset(
    {"LabelSelectorRequirement", "NodeSelectorRequirement", "NodeSelectorTerm"}
)
