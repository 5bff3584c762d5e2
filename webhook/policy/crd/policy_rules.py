"""CEL rules for policies, classes, exceptions and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.rules import PLACEMENT, Rule, formed, literal
from webhook.placement.capacity import Mode
from webhook.placement.schema.placement import Defaults, PlacementSettings, Requirements
from webhook.placement.schema.selectors import LabelSelector
from webhook.placement.schema.syntax import (
    COUNTED_KEY_PATTERN,
    IS_NO_MOMENT,
    LABEL_VALUE_PATTERN,
    MAX_NAME,
    MOMENT_PATTERN,
    OBJECT_NAME_PATTERN,
    LabelKey,
    LabelValue,
    ObjectName,
)
from webhook.policy.conditions import FIELDS
from webhook.policy.model import ALL, PARTS, POLICY_NAME_PATTERN, REASON_PATTERN
from webhook.times import SPAN_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def _named(why: str) -> Rule:
    return Rule(
        "!has(self.metadata.generateName)",
        f"is not supported, because {why}: give a name",
        at=".metadata.generateName",
    )


_NAMED: Final = _named("policies of equal priority are ordered by name")
_OWN_COMPLEMENT: Final = Rule(
    "!has(self.spec.complementOf) || self.spec.complementOf != self.metadata.name",
    "a class cannot be its own complement: name another class, or give nodes",
    at=".spec.complementOf",
)
_SHAPE: Final = Rule(
    "(has(self.labels) && size(self.labels) > 0)"
    " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
    "taints alone do not identify a node of the class: give a label or an expression",
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
# Rules about placement within the cost budget of a policy, but not of a Run: a Run has an
# environment per role and per replica, a policy has three placements. As in the API server, an
# annotation's prefix may be in upper case.
_LOWER: Final = ".lowerAscii()"
_WHOLE_NUMBERS: Final = Rule(
    "(self.operator != 'Gt' && self.operator != 'Lt') || !has(self.values)"
    " || size(self.values) != 1 || self.values[0].matches('^[0-9]+$')",
    "Gt and Lt compare whole numbers: give one, in quotes",
    at=".values",
)
_IN_ONE_LIST: Final = Rule(
    "!has(self.mismatchLabelKeys) || !has(self.matchLabelKeys)"
    " || !self.mismatchLabelKeys.exists(k, k in self.matchLabelKeys)",
    "a key is also in matchLabelKeys: keep it in one of the two",
    at=".mismatchLabelKeys",
)
_NOT_SELECTED_BY: Final = (
    Rule(
        "!has(self.matchLabelKeys) || !has(self.labelSelector)"
        " || !has(self.labelSelector.matchLabels)"
        " || !self.matchLabelKeys.exists(k, k in self.labelSelector.matchLabels)",
        "a key is in labelSelector too: keep it in one of the two",
        at=".matchLabelKeys",
    ),
    Rule(
        "!has(self.matchLabelKeys) || !has(self.labelSelector)"
        " || !has(self.labelSelector.matchExpressions)"
        " || !self.labelSelector.matchExpressions.exists(e, e.key in self.matchLabelKeys)",
        "a key is in labelSelector's matchExpressions too: keep it in one of the two",
        at=".matchLabelKeys",
    ),
)
# The format of a value with a readable message; for a pattern the API server prints the regular
# expression. Most values in long lists keep their pattern, because a rule for each is too costly.
_SIGNS: Final = f"of at most {MAX_NAME} letters, digits, '-', '_' and '.' after the slash"
_KEY: Final = formed(
    COUNTED_KEY_PATTERN,
    f"is not a label key: give one such as team or example.com/team, {_SIGNS}",
)
_LABEL_VALUE: Final = formed(
    LABEL_VALUE_PATTERN,
    f"is not a label value: give at most {MAX_NAME} letters, digits, '-', '_' or '.', with a "
    "letter or a digit at both ends",
)
_OBJECT_NAME: Final = formed(
    OBJECT_NAME_PATTERN,
    "is not an object's name: give lower-case letters, digits, '-' or '.', with a letter or "
    "a digit at both ends of each part",
)
_POLICY_NAME: Final = formed(
    POLICY_NAME_PATTERN,
    "is not a policy's name: give lower-case letters, digits, '-' or '.', or * alone for "
    "all policies",
)
_MOMENT: Final = formed(MOMENT_PATTERN, IS_NO_MOMENT)
_REASON: Final = formed(REASON_PATTERN, "is blank: give the reason why these pods may pass")

FORMS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "ExceptionSpec.policies": (_POLICY_NAME,),
    "ExceptionSpec.until": (_MOMENT,),
    "ExceptionSpec.reason": (_REASON,),
    "CapacityClassSpec.complementOf": (_OBJECT_NAME,),
    "PolicyCapacity.class": (_OBJECT_NAME,),
    "SplitShare.class": (_OBJECT_NAME,),
    "Toleration.key": (_KEY,),
    **{
        f"{name}.{field}": (rule,)
        for name in ("NodeSelectorFrom", "TolerationFrom")
        for field, rule in (
            ("key", _KEY),
            ("namespaceLabel", _KEY),
            ("default", _LABEL_VALUE),
        )
    },
    "TopologySpreadConstraint.topologyKey": (_KEY,),
    "PodAffinityTerm.topologyKey": (_KEY,),
    "Shape.labels": (_LABEL_VALUE,),
    **{
        f"{model.__name__}.{field.serialization_alias}": (rule,)
        for model in (Defaults, PlacementSettings, Requirements)
        for field in model.model_fields.values()
        if field.serialization_alias in model.outer_names()
        for form, rule in ((dict[LabelKey, LabelValue], _LABEL_VALUE), (ObjectName, _OBJECT_NAME))
        if field.annotation == form | None
    },
}


def _has_any_field(part: str) -> str:
    """Return CEL that is true if a part of a policy has any field."""
    models = {"defaults": Defaults, "overrides": PlacementSettings}
    fields = models.get(part, Requirements).outer_names()
    condition = " || ".join(f"has(self.{part}.{field})" for field in fields)
    return f"(has(self.{part}) && ({condition}))"


def _own_keys() -> Iterator[Rule]:
    for field in ("labels", "annotations"):
        yield Rule(
            f"!has(self.{field}) || self.{field}.all(k, !k.startsWith({literal(names.PREFIX)}))",
            f"policies may not write {field} under {names.PREFIX}, for Fairlead reads them itself: "
            "remove them",
            at=f".{field}",
        )


def _selects(block: str, field: str) -> str:
    """Return CEL that is true if a block has a selector that excludes something."""
    selector = f"{block}.{field}"
    checks = " || ".join(
        f"(has({selector}.{part}) && size({selector}.{part}) > 0)"
        for part in LabelSelector.outer_names()
    )
    return f"(has({selector}) && ({checks}))"


def _has_condition(block: str) -> str:
    """Return CEL that is true if a block has a condition that some pod does not meet."""
    conditions = [
        _selects(block, field.document_name)
        if field.form == "labels"
        else f"has({block}.{field.document_name})"
        for field in FIELDS
    ]
    return " || ".join(conditions)


_EXCLUDES: Final = Rule(
    _has_condition("self"), "an empty block would exclude every pod: give a condition, or remove it"
)
_EXCEPTION: Final = (
    Rule(
        f"!({literal(ALL)} in self.policies) || size(self.policies) == 1",
        f"{ALL} means all policies: leave out the others, or leave out {ALL}",
        at=".policies",
    ),
    Rule(
        _has_condition("self.match"),
        "an empty block would let every pod pass: give a condition, or for every pod write "
        "namespaces: ['*']",
        at=".match",
    ),
)


_PARTS: Final = Rule(
    " || ".join(map(_has_any_field, PARTS)),
    f"a policy needs at least one of {', '.join(PARTS)}: add one",
)

_SIZED: Final = "has(s.count) || has(s.percent)"
_SPLIT: Final = (
    Rule(
        f"!has(self.split) || (self.split.exists_one(s, !({_SIZED}))"
        f" && [self.split[size(self.split) - 1]].all(s, !({_SIZED})))",
        "the last share has the rest, and each other one count or percent: add or remove them",
        at=".split",
    ),
    Rule(
        f"!has(self.split) || self.split.filter(s, {_SIZED}).map(s, has(s.percent) ? 1 : 0)"
        ".isSorted()",
        "shares with count come before those with percent: move them up",
        at=".split",
    ),
    Rule(
        "!has(self.split) || self.split.map(s, has(s.percent) ? s.percent : 0).sum() <= 100",
        "the percentages are more than 100 together: lower them",
        at=".split",
    ),
    Rule(
        "!has(self.split) || !has(self.capacity)"
        " || !self.split.exists(s, self.capacity.exists(c, c.class == s.class))",
        "a class is in capacity too: keep it in one of the two",
        at=".split",
    ),
)
_FROM_NAMESPACE: Final = Rule(
    "!has(self.nodeSelectorFrom) || !has(self.nodeSelector)"
    " || !self.nodeSelectorFrom.exists(e, e.key in self.nodeSelector)",
    "a key is in nodeSelector too: keep it in one of the two",
    at=".nodeSelectorFrom",
)
_ONE_SPLIT: Final = Rule(
    "[has(self.requirements) && has(self.requirements.split),"
    " has(self.overrides) && has(self.overrides.split),"
    " has(self.defaults) && has(self.defaults.split)].filter(x, x).size() <= 1",
    "a policy has one split: write a policy for each",
)
_SHARE: Final = (
    Rule(
        f"!has(self.weight) || (has(self.mode) && self.mode == '{Mode.PREFER}')",
        f"is valid with mode {Mode.PREFER} only: remove it, or change the mode",
        at=".weight",
    ),
    Rule(
        "!has(self.count) || !has(self.percent)",
        "count is given too: keep one of the two",
        at=".percent",
    ),
)

_GIVES_UP: Final = Rule(
    f"!has(self.fallback) || !has(self.mode) || self.mode == '{Mode.CONSTRAIN}'",
    f"is valid with mode {Mode.CONSTRAIN} only: remove it, or change the mode",
    at=".fallback",
)
_FALLBACK: Final = (
    Rule(
        "has(self.afterDisruptions) || has(self.afterPending)",
        "needs afterDisruptions or afterPending: give one, or both",
    ),
    Rule(
        "!has(self.within) || has(self.afterDisruptions)",
        "goes with afterDisruptions only: remove it, or give that",
        at=".within",
    ),
)


def _span(least: str) -> tuple[Rule, ...]:
    held = f"duration(self) >= duration('{least}') && duration(self) <= duration('24h')"
    return (
        Rule(
            f"self.matches('^{SPAN_PATTERN}$') && {held}",
            f"is not a duration of {least} to 24h: give one such as 90s, 15m or 1h30m",
            form=f"^{SPAN_PATTERN}$",
        ),
    )


_ROLLED_OUT: Final = Rule(
    "!has(self.rollout) || !has(self.enforcement) || self.enforcement != 'Audit'",
    "means nothing under enforcement: Audit, which changes no pod anywhere: leave out one of the "
    "two",
    at=".rollout",
)

_OWN: Final[Mapping[str, tuple[Rule, ...]]] = {
    names.POLICY_KIND: (_NAMED,),
    "PolicySpec": (_PARTS, _ROLLED_OUT, _ONE_SPLIT),
    "PolicySpec.exclude": (_EXCLUDES,),
    "Defaults": (*_own_keys(), *_SPLIT, _FROM_NAMESPACE),
    "PlacementSettings": (*_own_keys(), *_SPLIT, _FROM_NAMESPACE),
    "Requirements": (*_own_keys(), *_SPLIT, _FROM_NAMESPACE),
    "SplitShare": (*_SHARE, _GIVES_UP),
    "PolicyCapacity": (*PLACEMENT["CapacitySetting"], _GIVES_UP),
    "Fallback": _FALLBACK,
    "RequestRange": (
        Rule("has(self.atLeast) || has(self.atMost)", "needs a bound: give atLeast or atMost"),
    ),
    "AllowedValues": (
        Rule(
            "(self.field == 'nodeSelector') == (size(self.key) > 0)",
            "nodeSelector needs a key, and no other field has one: add or remove it",
            at=".key",
        ),
    ),
    "CapacityClassSpec.lostAfter": _span("1m"),
    "Illness.lasts": _span("0s"),
    "Fallback.within": _span("1m"),
    "Fallback.afterPending": _span("1s"),
    "Fallback.returnAfter": _span("1s"),
    names.CLASS_KIND: (_NAMED, _OWN_COMPLEMENT),
    "CapacityClassSpec": _CLASS,
    "Shape": (_SHAPE,),
    names.EXCEPTION_KIND: (_named("stamps and the audit log use the exception's name"),),
    "ExceptionSpec": _EXCEPTION,
    names.SOURCE_KIND: (_named("`fairlead install --source` uses the source's name"),),
    # The webhook validates the rest of a source when it is written (decision 71).
    "SourceSpec": (
        Rule(
            "has(self.identity) || (has(self.kinds) && size(self.kinds) > 0)",
            "a source needs identity or kinds: give one of the two, or both",
        ),
    ),
}


def _keys(field: str, read: str = "") -> Rule:
    """Return the rule for the keys of a mapping, which a structural schema cannot restrict."""
    return Rule(
        f"!has(self.{field}) || self.{field}.all(k, k{read}.matches(r'{COUNTED_KEY_PATTERN}'))",
        f"each key is a name such as team or example.com/team, {_SIGNS}: change the key",
        at=f".{field}",
    )


_OF_A_PLACEMENT: Final = (_keys("nodeSelector"), _keys("labels"), _keys("annotations", _LOWER))

EXPENSIVE: Final[Mapping[str, tuple[Rule, ...]]] = {
    "Defaults": _OF_A_PLACEMENT,
    "PlacementSettings": _OF_A_PLACEMENT,
    "Requirements": _OF_A_PLACEMENT,
    "LabelSelector": (_keys("matchLabels"),),
    "Shape": (_keys("labels"),),
    "NodeSelectorRequirement": (_WHOLE_NUMBERS,),
    "PodAffinityTerm": (_IN_ONE_LIST, *_NOT_SELECTED_BY),
    "TopologySpreadConstraint": _NOT_SELECTED_BY,
}

_TABLES: Final = (_OWN, PLACEMENT, EXPENSIVE, FORMS)

# By the name of a definition, or by Class.field for the value of a field.
RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ()))
    for name in {**_OWN, **PLACEMENT, **EXPENSIVE, **FORMS}
}
