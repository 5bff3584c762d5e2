"""Rules in CEL about placement that a policy can pay for, and a Run cannot.

A Run has an environment for each role and for each single replica; a policy has three placements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.rule import Rule
from webhook.placement.schema.syntax import COUNTED_KEY_PATTERN, MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

# As the API server has it, an annotation's prefix may be written in capitals.
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
    "a key is among matchLabelKeys too: keep it in one of the two",
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


def _keys(field: str, read: str = "") -> Rule:
    """The keys of a mapping are [prefix/]name; a structural schema has no word for keys."""
    return Rule(
        f"!has(self.{field}) || self.{field}.all(k, k{read}.matches(r'{COUNTED_KEY_PATTERN}'))",
        f"each key is a name of 1 to {MAX_NAME} letters, digits, '-', '_' or '.', with a letter or "
        "a digit at both ends, perhaps after a DNS name and a slash: write the key so",
        at=f".{field}",
    )


_OF_A_PLACEMENT: Final = (_keys("nodeSelector"), _keys("labels"), _keys("annotations", _LOWER))

DEAR: Final[Mapping[str, tuple[Rule, ...]]] = {
    "Defaults": _OF_A_PLACEMENT,
    "PlacementSettings": _OF_A_PLACEMENT,
    "LabelSelector": (_keys("matchLabels"),),
    "Shape": (_keys("labels"),),
    "NodeSelectorRequirement": (_WHOLE_NUMBERS,),
    "PodAffinityTerm": (_IN_ONE_LIST,),
    "TopologySpreadConstraint": _NOT_SELECTED_BY,
}
