"""The rendered objects of the manifests: the overlays, and the components beside them."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook import names
from webhook.errors import InstallationError
from webhook.installation.object_kinds import DEPLOYMENT, VALIDATING, in_order, key_of
from webhook.installation.policy_objects import of_key
from webhook.validating import POLICIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.installation.object_kinds import Key

    Json = dict[str, Any]

_FOLDER: Final = files("webhook.installation") / "rendered"
# In a separate file, because they are long and every overlay has them.
_DEFINITIONS: Final = "crds"
# Capacity classes for a cluster without any. No overlay has them.
_CLASSES: Final = "classes"
# The rights of the component `nodes`, which is chosen in addition to an overlay.
_NODES: Final = "nodes"
# The controller's rights of the component `policy-reports`.
_REPORTS: Final = "policy-reports"
# The prefix of the components with the controller's rights to other engines.
_BACKEND: Final = "backend-"
DEFAULT: Final = "default"
FROM_CLUSTER: Final = "--policies-from-cluster"
FOLDER: Final = "/etc/fairlead/policies"
WEBHOOK: Final = key_of(DEPLOYMENT, names.WEBHOOK, names.NAMESPACE)
CONFIG_MAP: Final = key_of("ConfigMap", names.POLICIES_CONFIG_MAP, names.NAMESPACE)
_VOLUME: Final = "policies"
_CONTROLLER: Final = key_of(DEPLOYMENT, names.CONTROLLER, names.NAMESPACE)
_RIGHTS: Final = (f"{names.WEBHOOK}-policies", f"{names.CONTROLLER}-policies")
# Objects that the webhook does not use get no status.
_NO_STATUS: Final = "--no-policy-status"
NODES: Final = "--nodes"
POLICY_REPORTS: Final = "--policy-reports"
# A ConfigMap holds 1 MiB (k8s.io/api/core/v1, MaxSecretSize); some of it is metadata.
MAX_BYTES: Final = 1_000_000


def overlays() -> tuple[str, ...]:
    """The overlays' names: the default first, then in alphabetical order."""
    others = {_DEFINITIONS, _CLASSES, _NODES, _REPORTS}
    found = {each for each in _files() if not each.startswith(_BACKEND)} - others
    return tuple(sorted(found, key=lambda name: (name != DEFAULT, name)))


def backends() -> tuple[str, ...]:
    """The engines for which there is a component with the controller's rights."""
    return tuple(sorted(each.removeprefix(_BACKEND) for each in _files() if _BACKEND in each))


def _files() -> set[str]:
    return {each.name.removesuffix(".yaml") for each in _FOLDER.iterdir()}


def objects_of(overlay: str) -> list[dict[str, Any]]:
    """The objects of one overlay, and the classes. They are shared: copy one before changing it.

    Raises InstallationError if there is no overlay of that name.
    """
    if overlay not in overlays():
        raise InstallationError(f"no overlay {overlay!r}: want one of {', '.join(overlays())}")
    return [*_load_overlay(_DEFINITIONS), *_load_overlay(_CLASSES), *_load_overlay(overlay)]


def rights_to_nodes() -> list[dict[str, Any]]:
    """The objects of the component `nodes`, shared as those of an overlay are."""
    return [*_load_overlay(_NODES)]


def rights_to_reports() -> list[dict[str, Any]]:
    """The objects of the component `policy-reports`, shared as those of an overlay are."""
    return [*_load_overlay(_REPORTS)]


def rights_to_backend(name: str) -> list[dict[str, Any]]:
    """The objects of the component of one engine, shared as those of an overlay are."""
    return [*_load_overlay(f"{_BACKEND}{name}")]


@cache
def every_key() -> frozenset[Key]:
    """Every object of any overlay, and of the components with rights."""
    rights = (f"{_BACKEND}{name}" for name in backends())
    everything = (_DEFINITIONS, _NODES, _REPORTS, *rights, *overlays())
    return frozenset(key for name in everything for key in in_order(_load_overlay(name)))


@cache
def _load_overlay(name: str) -> tuple[dict[str, Any], ...]:
    text = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    # libyaml, if present, is ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(each for each in yaml.load_all(text, Loader=loader) if each)


def from_files(objects: Mapping[Key, Json]) -> dict[Key, Json]:
    """The objects for a webhook that reads policies from the ConfigMap, which is empty at first.

    Then no policy is an object of the cluster: none is validated on write or has a status, and no
    right to read them is needed.
    """
    kept = {
        key: each for key, each in objects.items() if not of_key(key) and key.name not in _RIGHTS
    }
    for key, each in kept.items():
        if key == WEBHOOK:
            kept[key] = _mounting(each)
        elif key == _CONTROLLER:
            kept[key] = with_argument(each, _NO_STATUS)
        elif key.kind.name == VALIDATING:
            entries = [entry for entry in each["webhooks"] if entry["name"] != POLICIES]
            kept[key] = {**each, "webhooks": entries}
    labels = dict(objects[WEBHOOK]["metadata"]["labels"])
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP.name, "namespace": CONFIG_MAP.namespace, "labels": labels},
        "data": {},
    }
    return in_order([*kept.values(), config_map])


def takes_files(deployment: Mapping[str, Any]) -> bool:
    """Whether the webhook of this Deployment reads its policies from a folder."""
    return any(
        argument == "--policies" or argument.startswith("--policies=")
        for container in deployment["spec"]["template"]["spec"]["containers"]
        for argument in container.get("args") or ()
    )


def mounted_config_map(deployment: Mapping[str, Any]) -> str:
    """The ConfigMap that its policies are mounted from; "" if they come from elsewhere."""
    pod = deployment["spec"]["template"]["spec"]
    folders = {
        mount["name"]
        for container in pod["containers"]
        for mount in container.get("volumeMounts") or ()
        if f"--policies={mount['mountPath']}" in (container.get("args") or ())
    }
    maps = [
        (volume.get("configMap") or {}).get("name", "")
        for volume in pod.get("volumes") or ()
        if volume["name"] in folders
    ]
    return maps[0] if len(maps) == 1 else ""


def without_mount(deployment: Mapping[str, Any]) -> Json | None:
    """A merge patch that takes the ConfigMap out of the pods; None if it is not mounted.

    Our apply does not remove what kubectl has applied, so the ConfigMap could not be deleted.
    """
    pod = deployment["spec"]["template"]["spec"]
    volumes = pod.get("volumes") or []
    gone = {
        volume["name"]
        for volume in volumes
        if (volume.get("configMap") or {}).get("name") == CONFIG_MAP.name
    }
    if not gone:
        return None
    containers = [
        {
            **container,
            "volumeMounts": [
                mount for mount in container.get("volumeMounts") or () if mount["name"] not in gone
            ],
        }
        for container in pod["containers"]
    ]
    rest = [volume for volume in volumes if volume["name"] not in gone]
    return {
        "metadata": {"resourceVersion": deployment["metadata"]["resourceVersion"]},
        "spec": {"template": {"spec": {"volumes": rest, "containers": containers}}},
    }


def _mounting(deployment: Json) -> Json:
    changed, pod, container = opened(deployment)
    container["args"] = [
        f"--policies={FOLDER}" if each == FROM_CLUSTER else each for each in container["args"]
    ]
    mount = {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
    container["volumeMounts"].append(mount)
    pod["volumes"].append({"name": _VOLUME, "configMap": {"name": CONFIG_MAP.name}})
    return changed


def with_nodes(objects: Mapping[Key, Json]) -> dict[Key, Json]:
    """The objects for a webhook that watches nodes: its argument, and the right to do so."""
    changed = {WEBHOOK: with_argument(objects[WEBHOOK], NODES)}
    return in_order([*{**objects, **changed}.values(), *rights_to_nodes()])


def with_policy_reports(objects: Mapping[Key, Json]) -> dict[Key, Json]:
    """The objects for a controller that writes policy reports: its argument, and its rights."""
    changed = {_CONTROLLER: with_argument(objects[_CONTROLLER], POLICY_REPORTS)}
    return in_order([*{**objects, **changed}.values(), *rights_to_reports()])


def with_backends(objects: Mapping[Key, Json], chosen: Sequence[str]) -> dict[Key, Json]:
    """The objects, and the controller's rights to these engines."""
    rights = [each for name in chosen for each in rights_to_backend(name)]
    return in_order([*objects.values(), *rights])


def with_argument(deployment: Json, argument: str) -> Json:
    """The Deployment with one more argument."""
    changed, _, container = opened(deployment)
    container["args"].append(argument)
    return changed


def opened(deployment: Json) -> tuple[Json, Json, Json]:
    """A copy to change, the spec of its pods, and their one container."""
    copy = deepcopy(deployment)
    pod = copy["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return copy, pod, container


def has_argument(deployment: Mapping[str, Any], argument: str) -> bool:
    """Whether one of its containers has exactly this argument; users may have added containers."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(argument in (each.get("args") or ()) for each in containers)


def with_policies(config_map: Mapping[str, Any], files: Mapping[str, str] | None) -> Json:
    """The ConfigMap with these files, or its own, and an annotation with their hash.

    The hash shows later whether another client has changed them. Raises InstallationError if they
    are too large for a ConfigMap.
    """
    data = dict(config_map.get("data") or {}) if files is None else dict(sorted(files.items()))
    if (size := sum(len(name) + len(text.encode()) for name, text in data.items())) > MAX_BYTES:
        raise InstallationError(
            f"the policies have {size:,} bytes, and a ConfigMap holds {MAX_BYTES:,}: "
            "leave out what your cluster does not need"
        )
    metadata = dict(config_map["metadata"])
    annotations = {**(metadata.get("annotations") or {}), names.POLICIES_APPLIED: digest(data)}
    return {**config_map, "metadata": {**metadata, "annotations": annotations}, "data": data}


def changed_by_others(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether another client wrote or changed the policies of the live ConfigMap.

    Policies that are as they would be applied do not count.
    """
    annotations = live["metadata"].get("annotations") or {}
    data = live.get("data") or {}
    if live.get("binaryData"):
        return True
    return data != wanted["data"] and annotations.get(names.POLICIES_APPLIED) != digest(data)


def digest(data: Mapping[str, str]) -> str:
    """The hash of a set of files."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
