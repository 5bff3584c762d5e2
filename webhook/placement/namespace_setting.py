"""The setting whose value is a label of the pod's namespace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from webhook.placement.placement_setting import PlacementSetting
from webhook.placement.settings import MemberSetting
from webhook.placement.trace import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import TolerationSetting
    from webhook.placement.shapes import Json, Term, Toleration


@dataclass(frozen=True, kw_only=True)
class NamespaceSetting(PlacementSetting):
    """A setting whose value is a label of the pod's namespace.

    example:  the setting with any value
    label:    the namespace's label that has the value; default: the value without one, if any
    position: in its list of the document
    """

    example: MemberSetting | TolerationSetting
    label: str
    default: str
    position: int

    @cached_property
    def field(self) -> str:
        return self.example.field

    @property
    def written(self) -> str:
        """For example nodeSelectorFrom[pool]."""
        name, bracket, key = self.field.partition("[")
        return f"{name}From{bracket}{key}"

    @property
    def place(self) -> tuple[str | int, ...]:
        return (f"{self.row.name}From", self.position)

    @property
    def describe_value(self) -> str:
        default = f", or {quoted(self.default)}" if self.default else ""
        return f"the value of namespace label {self.label}{default}"

    @property
    def listed_value(self) -> Json:
        return self.describe_value

    def precludes(self, later: Self) -> bool:
        """Return False for a default that may be left out."""
        return bool(self.default or not self.is_default) and super().precludes(later)

    @property
    def node_terms(self) -> tuple[Term, ...] | None:
        """What every value asks of a node."""
        if not isinstance(self.example, MemberSetting):
            return None
        return ({"matchExpressions": [{"key": self.example.key, "operator": "Exists"}]},)

    @property
    def tolerated(self) -> Sequence[Toleration]:
        """What some value tolerates."""
        if isinstance(self.example, MemberSetting):
            return ()
        key, effect = self.example.toleration["key"], self.example.toleration["effect"]
        return ({"key": key, "operator": "Exists", "effect": effect},)

    @property
    def missing(self) -> str:
        """Why it has no value, for a message."""
        cure = "label the namespace, or give a default"
        return f"the pod's namespace has no label {self.label} with a value; {cure}"

    def agrees(self, other: Self) -> bool:
        return (self.example, self.label, self.default) == (
            other.example,
            other.label,
            other.default,
        )

    def contradicts(self, other: Self) -> bool:  # noqa: ARG002  their values may be equal
        return False

    def valued(self, value: str) -> PlacementSetting:
        """Return the setting with this value; itself if there is none, and no default."""
        value = value or self.default
        if not value:
            return self
        if isinstance(self.example, MemberSetting):
            return replace(self.example, value=value, origin=self)
        toleration: Toleration = {**self.example.toleration, "value": value}
        return replace(self.example, toleration=toleration, origin=self)

    def holds_in(self, final: PodPlacement) -> bool:  # noqa: ARG002  it has no value
        return False
