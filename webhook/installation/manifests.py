"""The objects of an installation, rendered from the kustomizations that ship in the package.

Covers the part of kustomize that `manifests/` uses. A test compares the objects with kustomize's,
for every overlay and component. `replacements` are left out: they are about the entries of sources,
which `choices.py` computes.
"""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonpatch
import yaml

from webhook import names
from webhook.errors import InstallationError
from webhook.installation.object_kinds import (
    CONFIGURATION,
    DEPLOYMENT,
    VALIDATING,
    in_order,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.installation.object_kinds import Key

    Json = dict[str, Any]

# Links to the folders of the checkout; folders in the wheel.
_SHIPPED: Final = Path(__file__).parent / "shipped"
_MANIFESTS: Final = _SHIPPED / "manifests"
_COMPONENTS: Final = _MANIFESTS / "components"
_CLASSES: Final = _SHIPPED / "policies" / "capacity" / "any-provider.yaml"
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "Kustomization")
# Kustomize reads such an object, and does not write it.
_LOCAL: Final = "config.kubernetes.io/local-config"
_BACKEND: Final = "backend-"
DEFAULT: Final = "default"
FROM_FILES: Final = "policies-from-files"
WEBHOOK: Final = key_of(DEPLOYMENT, names.WEBHOOK, names.NAMESPACE)
CONTROLLER: Final = key_of(DEPLOYMENT, names.CONTROLLER, names.NAMESPACE)
CONFIG_MAP: Final = key_of("ConfigMap", names.POLICIES_CONFIG_MAP, names.NAMESPACE)
LEASE: Final = key_of("Lease", names.CONTROLLER, names.NAMESPACE)
INTERCEPTION: Final = key_of(CONFIGURATION, names.WEBHOOK_CONFIGURATION)
JUDGING: Final = key_of(VALIDATING, names.WEBHOOK_CONFIGURATION)


def overlays() -> tuple[str, ...]:
    """Return the overlays' names: the default first, then in alphabetical order."""
    overlay_names = {path.parent.name for path in _MANIFESTS.glob("*/kustomization.yaml")} - {
        "base"
    }
    return tuple(sorted(overlay_names, key=lambda name: (name != DEFAULT, name)))


def components() -> tuple[str, ...]:
    """Return the names of the components beside the overlays, without those of sources."""
    component_names = (path.parent.name for path in _COMPONENTS.glob("*/kustomization.yaml"))
    return tuple(sorted(name for name in component_names if not name.startswith("source-")))


def backends() -> tuple[str, ...]:
    """Return the engines for which there is a component with the controller's rights."""
    component_names = (name for name in components() if name.startswith(_BACKEND))
    return tuple(name.removeprefix(_BACKEND) for name in component_names)


def render(overlays: Sequence[str] = (DEFAULT,), components: Sequence[str] = ()) -> dict[Key, Json]:
    """Return the objects of the overlays with the components, in order.

    What each overlay changes of `default` is changed, whatever their order. Raises
    InstallationError if there is no overlay or component of a name, or if two overlays change the
    same differently.
    """
    paths = [_existing(_MANIFESTS, name) for name in overlays]
    document = {"components": [_existing(_COMPONENTS, name) for name in components]}
    return deepcopy(in_order(_build(_MANIFESTS, document, _combined(paths))))


def _combined(overlays: Sequence[Path]) -> list[Json]:
    if not overlays:
        return []
    base = in_order(_load(_MANIFESTS / DEFAULT))
    result = {**base}
    removed: set[Key] = set()
    for overlay in overlays:
        manifest_by_key = in_order(_load(overlay))
        removed |= base.keys() - manifest_by_key.keys()
        for key, manifest in manifest_by_key.items():
            joined = _joined(base.get(key), manifest, result.get(key))
            if joined is None:
                given = " and ".join(f"--overlay {path.name}" for path in overlays)
                raise InstallationError(f"{given} change {key} differently: give one of them")
            result[key] = joined
    return [manifest for key, manifest in result.items() if key not in removed]


def _joined(base: Json | None, manifest: Json, other: Json | None) -> Json | None:
    """Return the object with both changes of the base (None: absent); None if they contradict."""
    if manifest in (base, other):
        return other
    if other in (None, base):
        return manifest
    if base is None or other is None:
        return None
    try:
        results: list[Json] = [
            jsonpatch.make_patch(base, change).apply(to)
            for change, to in ((manifest, other), (other, manifest))
        ]
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        return None
    return results[0] if results[0] == results[1] else None


def shipped_classes() -> list[Json]:
    """Return the capacity classes for a cluster without any. No overlay has them."""
    return deepcopy(_load(_CLASSES))


@cache
def every_key() -> frozenset[Key]:
    """Return every object of any overlay and component, except the ConfigMap: it has a user's
    policies."""
    keys = {key for name in overlays() for key in render((name,))} | {*render((), components())}
    return frozenset(keys - {CONFIG_MAP})


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_dir():
        raise InstallationError(f"there is no {name!r} in {folder.name}")
    return path


@cache
def _load(path: Path) -> list[Json]:
    """Return the objects of a file or a kustomization, to be shared: a change makes copies."""
    if path.is_dir():
        return _build(path, _kustomization(path), [])
    manifests = _parse(path.read_text(encoding="utf-8"))
    return [
        manifest
        for manifest in manifests
        if _LOCAL not in (manifest["metadata"].get("annotations") or {})
    ]


def _kustomization(folder: Path) -> Json:
    (file,) = (folder / name for name in _KUSTOMIZATIONS if (folder / name).exists())
    kustomization: Json = _parse(file.read_text(encoding="utf-8"))[0]
    return kustomization


def _parse(text: str) -> list[Any]:
    # libyaml, if present, is ten times as fast.
    return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _build(folder: Path, document: Mapping[str, Any], before: Sequence[Json]) -> list[Json]:
    """Return the objects before, with what a kustomization of this folder adds and changes."""
    objects = [*before]
    for name in document.get("resources") or ():
        objects += _load(folder / name)
    for name in document.get("components") or ():
        objects = _build(folder / name, _kustomization(folder / name), objects)
    objects += (
        _config_map(folder, generator) for generator in document.get("configMapGenerator") or ()
    )
    for patch in document.get("patches") or ():
        (change,) = _parse(patch["patch"])
        objects = list(_patched(objects, patch["target"], change))
    for label in document.get("labels") or ():
        objects = [_labelled(manifest, label["pairs"]) for manifest in objects]
    return objects


def _config_map(folder: Path, wanted: Json) -> Json:
    files = (file.split("=") for file in wanted["files"])
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": wanted["name"],
            "namespace": wanted["namespace"],
            "labels": wanted["options"]["labels"],
        },
        "data": {name: (folder / file).read_text(encoding="utf-8") for name, file in files},
    }


def _patched(objects: Iterable[Json], target: Json, patch: Any) -> Iterator[Json]:
    """Yield the objects with a patch of those that the target selects: RFC 6902, or a deletion."""
    for manifest in objects:
        identity = f"{manifest['kind']} {manifest['metadata']['name']}"
        if not re.fullmatch(f"{target['kind']} {target.get('name', '.*')}", identity):
            yield manifest
        elif isinstance(patch, list):
            yield jsonpatch.apply_patch(manifest, patch)


def _labelled(manifest: Json, labels: Mapping[str, str]) -> Json:
    written_labels = manifest["metadata"].get("labels") or {}
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "labels": {**written_labels, **labels}},
    }
