"""Rules in CEL for what may not change once a Run is created."""

from __future__ import annotations

from typing import Final

from webhook.crd.rule import Rule
from webhook.run.model import RunSpec

# What may be changed at any time.
CHANGEABLE: Final = ("suspend", "ttlSecondsAfterFinished")
_CURE: Final = "delete the Run, and create it anew"


def _same(field: str) -> str:
    """Whether the field is as it was. Optionals compare too, but at a cost without a limit."""
    return (
        f"has(self.{field}) == has(oldSelf.{field})"
        f" && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )


_SAME_ROLES: Final = (
    "has(self.replicas) == has(oldSelf.replicas) && (!has(self.replicas)"
    " || (size(self.replicas) == size(oldSelf.replicas)"
    " && self.replicas.all(r, r in oldSelf.replicas)))"
)
_FIELDS: Final = [
    field for field in RunSpec.outer_names() if field not in (*CHANGEABLE, "replicas")
]

FIXED: Final = (
    *(
        Rule(_same(field), f"may not be changed after creation: {_CURE}", at=f".{field}")
        for field in _FIELDS
    ),
    Rule(
        _SAME_ROLES,
        f"roles may not be added or removed after creation: {_CURE}",
        at=".replicas",
    ),
    Rule(
        f"!({_SAME_ROLES}) || ({_same('replicas')})",
        f"may not be changed after creation: {_CURE}",
        at=".replicas",
    ),
)
