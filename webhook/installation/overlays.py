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
# Capacity classes, for a cluster that has none: no overlay has them.
_CLASSES: Final = "classes"
# What the component `nodes` grants: it is chosen beside an overlay.
_NODES: Final = "nodes"
DEFAULT: Final = "default"


def overlays() -> tuple[str, ...]:
    """Their names: the default first, then by the alphabet."""
    others = {_DEFINITIONS, _CLASSES, _NODES}
    found = {each.name.removesuffix(".yaml") for each in _FOLDER.iterdir()} - others
    return tuple(sorted(found, key=lambda name: (name != DEFAULT, name)))


def objects_of(overlay: str) -> list[dict[str, Any]]:
    """The objects of one overlay, and the classes: shared, so whoever changes one copies it first.

    Raises InstallationError if there is no overlay of that name.
    """
    if overlay not in overlays():
        raise InstallationError(f"no overlay {overlay!r}: want one of {', '.join(overlays())}")
    return [*_read(_DEFINITIONS), *_read(_CLASSES), *_read(overlay)]


def rights_to_nodes() -> list[dict[str, Any]]:
    """The objects of the component `nodes`, shared as those of an overlay are."""
    return [*_read(_NODES)]


@cache
def every_key() -> frozenset[Key]:
    """Each object that any overlay, or the component `nodes`, has."""
    everything = (_DEFINITIONS, _NODES, *overlays())
    return frozenset(key for name in everything for key in in_order(_read(name)))


@cache
def _read(name: str) -> tuple[dict[str, Any], ...]:
    text = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    # libyaml where it is there: ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(each for each in yaml.load_all(text, Loader=loader) if each)
