"""Rules in CEL (x-kubernetes-validations), and the rules for the fields of a placement.

The controller checks with the model what would cost the API server too much: the form of a
mapping's keys (the cost estimate assumes keys of any length), whether Gt and Lt have a number,
whether a key is in two lists of labels, and the expressions of single replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.placement.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rule(NamedTuple):
    """A rule about `self`, an object of the class that it is listed under, or a value in a field.

    rule: the expression that must hold; with `oldSelf` in it, it is evaluated at updates only.
    message: the error, with the cure. Never an expression: the API server estimates its cost by
        the longest possible text, and rejects the definition.
    at: the field that the message is about, as a path below the object; else the object itself.
    form: the pattern that the rule replaces. The schema has neither the pattern nor a format: the
        API server's message for them would show the regular expression.
    """

    rule: str
    message: str
    at: str = ""
    form: str = ""

    def schema(self) -> dict[str, Any]:
        """Return the rule as a schema has it."""
        written = {"rule": self.rule, "message": self.message}
        return {**written, "fieldPath": self.at} if self.at else written


def formed(pattern: str, message: str) -> Rule:
    """Return the rule that a text has the form of a pattern; the message says it in words.

    pattern: without a quote. The API server estimates the cost by the longest possible text, so
        the field needs a maxLength.
    """
    return Rule(f"self.matches(r'{pattern}')", message, form=pattern)


def literal(value: str | tuple[str, ...] | list[str]) -> str:
    """Return a text or a list of texts as CEL writes it; the texts are words without quotes.

    >>> literal(["a", "b"])
    "['a', 'b']"
    """
    if isinstance(value, str):
        return f"'{value}'"
    return f"[{', '.join(map(literal, value))}]"


def _empty(field: str) -> str:
    return f"(!has(self.{field}) || size(self.{field}) == 0)"


# In and NotIn. A list of two texts in a rule costs more than all the rest of it.
_LIST: Final = "self.operator.endsWith('In')"
_NUMBER: Final = "(self.operator == 'Gt' || self.operator == 'Lt')"
_VALUES: Final = (
    Rule(
        f"{_LIST} != {_empty('values')}",
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
        "a term without expressions is empty: give matchExpressions, or remove the term",
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
        "is valid with effect NoExecute only: set it, or remove this",
        at=".tolerationSeconds",
    ),
)
_CAPACITY: Final = (
    Rule(
        f"!has(self.weight) || self.mode == '{Mode.PREFER}'",
        f"is valid with mode {Mode.PREFER} only: remove it, or change the mode",
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
        "needs a labelSelector: give one",
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

# No rules for these in the environment of a single replica: lists in lists in lists of replicas
# would exceed the API server's cost limit.
TOO_DEEP: Final = frozenset(
    {"LabelSelectorRequirement", "NodeSelectorRequirement", "NodeSelectorTerm"}
)
