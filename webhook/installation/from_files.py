"""The manifests as they are where policies are files: manifests/components/policies-from-files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.installation.arguments import opened, with_argument
from webhook.installation.kinds import DEPLOYMENT, VALIDATING, in_order, key_of
from webhook.installation.policies import of_key
from webhook.validating import POLICIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.kinds import Key

    Json = dict[str, Any]

FROM_CLUSTER: Final = "--policies-from-cluster"
FOLDER: Final = "/etc/fairlead/policies"
WEBHOOK: Final = key_of(DEPLOYMENT, names.WEBHOOK, names.NAMESPACE)
CONFIG_MAP: Final = key_of("ConfigMap", names.POLICIES_CONFIG_MAP, names.NAMESPACE)
_VOLUME: Final = "policies"
_CONTROLLER: Final = key_of(DEPLOYMENT, names.CONTROLLER, names.NAMESPACE)
_RIGHTS: Final = (f"{names.WEBHOOK}-policies", f"{names.CONTROLLER}-policies")
# What is no policy of the webhook's has no status either.
_NO_STATUS: Final = "--no-policy-status"


def from_files(objects: Mapping[Key, Json]) -> dict[Key, Json]:
    """The objects for a webhook that has its policies from the ConfigMap, which comes empty.

    No policy is an object then, none is judged when it is written, none has a status, and no right
    to see them is needed.
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
    """Whether the webhook of this Deployment has its policies from a folder."""
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

    What kubectl has applied stays with an apply of ours: nobody may delete the ConfigMap then.
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
