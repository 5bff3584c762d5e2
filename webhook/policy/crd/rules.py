"""Rules in CEL for what the schemas of policies, classes and exceptions cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.placement_rules import PLACEMENT
from webhook.crd.rule import Rule, literal
from webhook.placement.schema.placement import Defaults, PlacementSettings
from webhook.placement.schema.selectors import LabelSelector
from webhook.policy.conditions import FIELDS
from webhook.policy.crd.expensive_rules import DEAR
from webhook.policy.crd.forms import FORMS
from webhook.policy.exception_model import ALL
from webhook.policy.model import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAMED: Final = Rule(
    "!has(self.metadata.generateName)",
    "is not taken, for policies of equal priority go by name: give a name",
    at=".metadata.generateName",
)
_NAMED_EXCEPTION: Final = Rule(
    "!has(self.metadata.generateName)",
    "is not taken, for stamps and the audit log tell of an exception by its name: give a name",
    at=".metadata.generateName",
)
_OWN_COMPLEMENT: Final = Rule(
    "!has(self.spec.complementOf) || self.spec.complementOf != self.metadata.name",
    "a class cannot be its own complement: name another class, or give nodes",
    at=".spec.complementOf",
)
_SHAPE: Final = Rule(
    "(has(self.labels) && size(self.labels) > 0)"
    " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
    "taints alone do not tell a node of the class: give a label or an expression",
)
_CLASS: Final = (
    Rule(
        "has(self.nodes) || has(self.complementOf)",
        "a class needs nodes or complementOf: give one of the two",
    ),
    Rule(
        "!has(self.nodes) || !has(self.complementOf)",
        "a class has nodes or complementOf: keep one of the two",
    ),
)


def _says_something(part: str) -> str:
    """Whether a part of a policy has a field, of whatever value."""
    fields = (Defaults if part == "defaults" else PlacementSettings).outer_names()
    there = " || ".join(f"has(self.{part}.{field})" for field in fields)
    return f"(has(self.{part}) && ({there}))"


def _own_keys() -> Iterator[Rule]:
    for field in ("labels", "annotations"):
        yield Rule(
            f"!has(self.{field}) || self.{field}.all(k, !k.startsWith({literal(names.PREFIX)}))",
            f"policies may not write {field} under {names.PREFIX}, for Fairlead reads them itself: "
            "remove them",
            at=f".{field}",
        )


def _selects(block: str, field: str) -> str:
    """Whether a block has a selector that leaves something out."""
    selector = f"{block}.{field}"
    said = " || ".join(
        f"(has({selector}.{part}) && size({selector}.{part}) > 0)"
        for part in LabelSelector.outer_names()
    )
    return f"(has({selector}) && ({said}))"


def _says_which(block: str) -> str:
    """Whether a block has a condition that some pod does not meet."""
    conditions = [
        _selects(block, field.written)
        if field.form == "labels"
        else f"has({block}.{field.written})"
        for field in FIELDS
    ]
    return " || ".join(conditions)


_EXCLUDES: Final = Rule(
    _says_which("self"), "an empty block would exclude every pod: give a condition, or remove it"
)
_EXCEPTION: Final = (
    Rule(
        f"!({literal(ALL)} in self.policies) || size(self.policies) == 1",
        f"{ALL} stands for all policies: leave out the others, or leave out {ALL}",
        at=".policies",
    ),
    Rule(
        _says_which("self.match"),
        "an empty block would let every pod pass: give a condition, or if you mean every pod say "
        "so, by namespaces: ['*']",
        at=".match",
    ),
)


_PARTS: Final = Rule(
    " || ".join(map(_says_something, PARTS)),
    f"a policy needs at least one of {', '.join(PARTS)}: say there what pods get",
)

_ROLLED_OUT: Final = Rule(
    "!has(self.rollout) || !has(self.enforcement) || self.enforcement != 'Audit'",
    "means nothing under enforcement: Audit, which changes no pod anywhere: leave out one of the "
    "two",
    at=".rollout",
)

_OWN: Final[Mapping[str, tuple[Rule, ...]]] = {
    names.POLICY_KIND: (_NAMED,),
    "PolicySpec": (_PARTS, _ROLLED_OUT),
    "PolicySpec.exclude": (_EXCLUDES,),
    "Defaults": (*_own_keys(),),
    "PlacementSettings": (*_own_keys(),),
    names.CLASS_KIND: (_NAMED, _OWN_COMPLEMENT),
    "CapacityClassSpec": _CLASS,
    "Shape": (_SHAPE,),
    names.EXCEPTION_KIND: (_NAMED_EXCEPTION,),
    "ExceptionSpec": _EXCEPTION,
}
_TABLES: Final = (_OWN, PLACEMENT, DEAR, FORMS)

# By the name of the definition that they are about, or for the value of a field by Class.field.
RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ()))
    for name in {**_OWN, **PLACEMENT, **DEAR, **FORMS}
}
