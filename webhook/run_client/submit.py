"""Send a Run to the API server, with the files that its pods mount."""

from __future__ import annotations

import base64
from asyncio import CancelledError
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import ApiPath, CollectionPath
from webhook.errors import ClusterError, PassOver, UnreadableInput
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api_paths import ObjectPath
    from webhook.kube.client import Client

CODE_PATH: Final = "/code"
_MOST_NAMED: Final = 3


def runs_path(namespace: str) -> CollectionPath:
    """Return the Runs of a namespace, or of all namespaces if it is empty. Raises InvalidName."""
    return CollectionPath(names.API_VERSION, names.RUNS, namespace or None)


def run_path(namespace: str, name: str) -> ObjectPath:
    """Return one Run. Raises InvalidName, also without a namespace."""
    return CollectionPath(names.API_VERSION, names.RUNS, namespace).path_of(name)


def code_name(run: str) -> str:
    """Return the name of the ConfigMap with a Run's code."""
    return f"{run}-code"


def with_code(raw: dict[str, Any], code: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the Run with the files mounted at CODE_PATH, where its containers then run.

    Raises UnreadableInput for a Run whose name is not known yet.
    """
    if not code:
        return raw
    if not raw["metadata"].get("name"):
        why = "metadata.name: is empty, and the ConfigMap of the code is called by it"
        raise UnreadableInput([f"{why}; give it a name"])
    pod = raw["spec"]["template"]["spec"]
    items = [{"key": _key(number), "path": path} for number, path in enumerate(code)]
    volume = {
        "name": "code",
        # Scripts among them may be programs.
        "configMap": {
            "name": code_name(raw["metadata"]["name"]),
            "items": items,
            "defaultMode": 0o755,
        },
    }
    mount = {"name": "code", "mountPath": CODE_PATH}
    containers = [
        {
            "workingDir": CODE_PATH,
            **container,
            "volumeMounts": [*(container.get("volumeMounts") or ()), mount],
        }
        for container in pod["containers"]
    ]
    changed = {**pod, "containers": containers, "volumes": [*(pod.get("volumes") or ()), volume]}
    template = {**raw["spec"]["template"], "spec": changed}
    return {**raw, "spec": {**raw["spec"], "template": template}}


async def missing_queues(client: Client) -> str:
    """Return that the cluster's Runs are of an older version, which may know no queues.

    "" if that is not known. Every user may read what the API server publishes of definitions
    (system:discovery); the definitions themselves only admins. Raises ClusterError.
    """
    # They take time to be imported; --help does not need them.
    from webhook.crd.comparison import compare
    from webhook.run.crd import custom_resource_definition

    published: dict[str, Any] = {}
    with PassOver(HTTPStatus.FORBIDDEN):
        path = ApiPath("openapi", "v3", "apis", names.GROUP, names.VERSION)
        published = await client.find(path) or {}
    kind = {"group": names.GROUP, "kind": names.RUN_KIND, "version": names.VERSION}
    for schema in published.get("components", {}).get("schemas", {}).values():
        if kind in schema.get("x-kubernetes-group-version-kind", ()):
            version = {"name": names.VERSION, "served": True, "schema": {"openAPIV3Schema": schema}}
            comparison = compare(custom_resource_definition(), {"spec": {"versions": [version]}})
            if comparison.lacking:
                lacks = first_few([*comparison.lacking], _MOST_NAMED)
                return (
                    f"the Runs of this cluster are older than this command (they lack {lacks}): "
                    "its controller may know no queues, and then starts the run without quota"
                )
    return ""


async def submit(
    client: Client, raw: dict[str, Any], namespace: str, code: Mapping[str, bytes]
) -> dict[str, Any]:
    """Create the Run, and a ConfigMap with its code, and return it. Raises ClusterError.

    With code it is suspended until the ConfigMap, which it owns, is there. If that fails, or is
    interrupted, it is deleted; the error says what is left if it cannot be.
    """
    if not code:
        return await client.create(runs_path(namespace), raw)
    suspended = {**raw, "spec": {**raw["spec"], "suspend": True}}
    stored = await client.create(runs_path(namespace), suspended)
    name = stored["metadata"]["name"]
    try:
        path = CollectionPath("v1", "configmaps", namespace)
        await client.create(path, config_map(stored, code))
        resumed = {"spec": {"suspend": raw["spec"].get("suspend")}}
        return await client.patch(run_path(namespace, name), resumed, "merge")
    except BaseException as error:
        why = "interrupted" if isinstance(error, CancelledError) else str(error)
        try:
            await client.delete(run_path(namespace, name))
        except ClusterError as left:
            cure = f"kubectl delete run {name} -n {namespace}"
            raise ClusterError(
                f"{why}\nrun {name} is left behind, suspended, without its code: {cure}; {left}"
            ) from error
        if isinstance(error, ClusterError):
            raise ClusterError(f"{why}\nrun {name} is deleted again", status=error.status) from None
        raise


def config_map(run: Mapping[str, Any], code: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the ConfigMap with a Run's code; a Run that is stored owns it."""
    metadata = run["metadata"]
    about: dict[str, Any] = {"name": code_name(metadata["name"])}
    if uid := metadata.get("uid"):
        owner = {"name": metadata["name"], "uid": uid}
        kind = {"apiVersion": names.API_VERSION, "kind": names.RUN_KIND}
        about["ownerReferences"] = [{**kind, **owner}]
    elif namespace := metadata.get("namespace"):
        about["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": about,
        "binaryData": {
            _key(number): base64.b64encode(content).decode()
            for number, content in enumerate(code.values())
        },
    }


def _key(number: int) -> str:
    """Return the key of a file; its path may have characters that keys may not have."""
    return f"file-{number}"
