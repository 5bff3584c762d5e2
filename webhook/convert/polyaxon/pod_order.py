"""The order in which people write a container's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft

_FIRST: Final = (
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "ports",
    "env",
    "envFrom",
    "resources",
    "volumeMounts",
)


def ordered(container: dict[str, Draft]) -> dict[str, Draft]:
    """The container with its usual fields first; those that it has not are left out."""
    first: dict[str, Draft] = {name: container[name] for name in _FIRST if name in container}
    return {**first, **container}
