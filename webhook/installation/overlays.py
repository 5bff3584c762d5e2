"""The objects of each overlay of the manifests, as kustomize makes them: files of this package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.errors import InstallationError
from webhook.installation.kinds import in_order

if TYPE_CHECKING:
    from webhook.installation.kinds import Key

_FOLDER: Final = files("webhook.installation") / "rendered"
# In a file of their own, since every overlay has them, and they are long.
_DEFINITIONS: Final = "crds"
DEFAULT: Final = "default"


def overlays() -> tuple[str, ...]:
    """Their names: the default first, then by the alphabet."""
    found = {each.name.removesuffix(".yaml") for each in _FOLDER.iterdir()} - {_DEFINITIONS}
    return tuple(sorted(found, key=lambda name: (name != DEFAULT, name)))


def objects_of(overlay: str) -> list[dict[str, Any]]:
    """The objects of one overlay. Raises InstallationError if there is none of that name."""
    if overlay not in overlays():
        raise InstallationError(f"no overlay {overlay!r}: want one of {', '.join(overlays())}")
    return [*_read(_DEFINITIONS), *_read(overlay)]


def every_key() -> frozenset[Key]:
    """Each object that any overlay has."""
    return frozenset(key for overlay in overlays() for key in in_order(objects_of(overlay)))


@cache
def _text(name: str) -> str:
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def _read(name: str) -> list[dict[str, Any]]:
    # Anew for each caller, who may change what it gets.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(_text(name), Loader=loader) if each]
