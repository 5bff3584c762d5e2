"""The policies of a webhook that reads them from files: its arguments, and its ConfigMap."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook import names
from webhook.errors import InstallationError
from webhook.installation.manifests import CONFIG_MAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Json = dict[str, Any]

# Where policies come from: they ship with Fairlead, or the user who installs gave them.
Origin = Literal["shipped", "given"]
SHIPPED: Final = "shipped"
GIVEN: Final = "given"

FROM_CLUSTER: Final = "--policies-from-cluster"
_FOLDER: Final = "--policies"
# A ConfigMap holds 1 MiB (k8s.io/api/core/v1, MaxSecretSize); some of it is metadata.
MAX_BYTES: Final = 1_000_000


def has_argument(deployment: Mapping[str, Any], argument: str) -> bool:
    """Return whether one of its containers has exactly this argument; users may have added
    containers."""
    return argument in _arguments(deployment)


def takes_files(deployment: Mapping[str, Any]) -> bool:
    """Return whether the webhook of this Deployment reads its policies from a folder."""
    return any(argument.partition("=")[0] == _FOLDER for argument in _arguments(deployment))


def mounted_config_map(deployment: Mapping[str, Any]) -> str:
    """Return the ConfigMap that its policies are mounted from; "" if they come from elsewhere."""
    pod = deployment["spec"]["template"]["spec"]
    folders = {
        mount["name"]
        for container in pod["containers"]
        for mount in container.get("volumeMounts") or ()
        if f"{_FOLDER}={mount['mountPath']}" in (container.get("args") or ())
    }
    maps = [
        (volume.get("configMap") or {}).get("name", "")
        for volume in pod.get("volumes") or ()
        if volume["name"] in folders
    ]
    return maps[0] if len(maps) == 1 else ""


def without_mount(deployment: Mapping[str, Any]) -> Json | None:
    """Return a strategic merge patch that takes our ConfigMap out of the pods; None if it is not
    mounted.

    An apply does not remove what kubectl has applied, so the ConfigMap could not be deleted.
    """
    pod = deployment["spec"]["template"]["spec"]
    gone = {
        volume["name"]
        for volume in pod.get("volumes") or ()
        if (volume.get("configMap") or {}).get("name") == CONFIG_MAP.name
    }
    if not gone:
        return None
    containers = [
        {
            "name": container["name"],
            "volumeMounts": [
                {"mountPath": mount["mountPath"], "$patch": "delete"}
                for mount in container.get("volumeMounts") or ()
                if mount["name"] in gone
            ],
        }
        for container in pod["containers"]
    ]
    volumes = [{"name": name, "$patch": "delete"} for name in gone]
    return {"spec": {"template": {"spec": {"volumes": volumes, "containers": containers}}}}


def with_policies(config_map: Mapping[str, Any], files: Mapping[str, str], origin: Origin) -> Json:
    """Return the ConfigMap with these files, and an annotation with their hash.

    The hash shows later whether they are still those that ship. Raises InstallationError if they
    are too large for a ConfigMap.
    """
    data = dict(sorted(files.items()))
    if (size := sum(len(name) + len(text.encode()) for name, text in data.items())) > MAX_BYTES:
        raise InstallationError(
            f"the policies have {size:,} bytes, and a ConfigMap holds {MAX_BYTES:,}: "
            "leave out what your cluster does not need"
        )
    return {**noted(config_map, digest([origin, data])), "data": data}


def has_own_policies(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether the live ConfigMap has policies that were given, or that others wrote.

    Policies that are as they would be applied do not count.
    """
    data = live.get("data") or {}
    if live.get("binaryData"):
        return True
    return data != wanted["data"] and note_of(live) != digest([SHIPPED, data])


def digest(value: object) -> str:
    """Return the hash of JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def noted(document: Mapping[str, Any], note: str) -> Json:
    """Return the object with the note of an installation: the hash of the policies that it
    wrote."""
    metadata = document["metadata"]
    annotations = {**(metadata.get("annotations") or {}), names.POLICIES_APPLIED: note}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def note_of(document: Mapping[str, Any]) -> str | None:
    """Return the note that an installation wrote; None if it did not write the object."""
    note: str | None = (document["metadata"].get("annotations") or {}).get(names.POLICIES_APPLIED)
    return note


def _arguments(deployment: Mapping[str, Any]) -> Iterator[str]:
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        yield from container.get("args") or ()
