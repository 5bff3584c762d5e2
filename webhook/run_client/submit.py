"""Send a Run to the API server, with the files that its pods mount."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.api_paths import ObjectPath
    from webhook.kube.client import Client

# Bytes. An object in etcd has at most 1.5 MiB, and base64 takes a third more.
MOST_CODE: Final = 900 * 1024
CODE_PATH: Final = "/code"
_SKIPPED: Final = ("__pycache__", "node_modules")


def runs_path(namespace: str) -> CollectionPath:
    """Return the Runs of a namespace, or of all namespaces if it is empty. Raises InvalidName."""
    return CollectionPath(names.API_VERSION, names.RUNS, namespace or None)


def run_path(namespace: str, name: str) -> ObjectPath:
    """Return one Run. Raises InvalidName, also without a namespace."""
    return CollectionPath(names.API_VERSION, names.RUNS, namespace).path_of(name)


def code_name(run: str) -> str:
    """Return the name of the ConfigMap with a Run's code."""
    return f"{run}-code"


def read_code(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their paths in it, without hidden ones and caches.

    Raises UnreadableInput if they are too large, or one cannot be read.
    """
    found: dict[str, bytes] = {}
    total = 0
    try:
        for where, folders, files in os.walk(folder):
            folders[:] = [
                each for each in sorted(folders) if each[0] != "." and each not in _SKIPPED
            ]
            for name in sorted(files):
                path = Path(where, name)
                if name.startswith(".") or not path.is_file():
                    continue
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise UnreadableInput([f"{path}: it leads out of {folder}; copy the file"])
                total += path.stat().st_size
                if total > MOST_CODE:
                    most = f"over {MOST_CODE // 1024} KiB, which a ConfigMap cannot hold"
                    cure = "build an image with the code, or put it on a volume (--volume)"
                    raise UnreadableInput([f"{folder}: {most}: {cure}"])
                found[str(path.relative_to(folder))] = path.read_bytes()
    except OSError as error:
        raise UnreadableInput([f"{error.filename}: {error.strerror}"]) from None
    if not found:
        raise UnreadableInput([f"{folder}: it has no files"])
    return found


def with_code(raw: dict[str, Any], code: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the Run with the files mounted at CODE_PATH, where its containers then run."""
    if not code:
        return raw
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
            **each,
            "volumeMounts": [*(each.get("volumeMounts") or ()), mount],
        }
        for each in pod["containers"]
    ]
    changed = {**pod, "containers": containers, "volumes": [*(pod.get("volumes") or ()), volume]}
    template = {**raw["spec"]["template"], "spec": changed}
    return {**raw, "spec": {**raw["spec"], "template": template}}


async def submit(
    client: Client, raw: dict[str, Any], namespace: str, code: Mapping[str, bytes]
) -> dict[str, Any]:
    """Create the Run, and a ConfigMap with its code, and return it. Raises ClusterError.

    With code it is suspended until the ConfigMap, which it owns, is there. If that fails, or is
    interrupted, it is deleted.
    """
    if not code:
        return await client.create(runs_path(namespace), raw)
    suspended = {**raw, "spec": {**raw["spec"], "suspend": True}}
    stored = await client.create(runs_path(namespace), suspended)
    name = stored["metadata"]["name"]
    try:
        path = CollectionPath("v1", "configmaps", namespace)
        await client.create(path, _config_map(stored, code))
        resumed = {"spec": {"suspend": raw["spec"].get("suspend")}}
        return await client.patch(run_path(namespace, name), resumed, "merge")
    except BaseException:
        await client.delete(run_path(namespace, name))
        raise


def _config_map(run: Mapping[str, Any], code: Mapping[str, bytes]) -> dict[str, Any]:
    metadata = run["metadata"]
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": code_name(metadata["name"]), "ownerReferences": [owner]},
        "binaryData": {
            _key(number): base64.b64encode(content).decode()
            for number, content in enumerate(code.values())
        },
    }


def _key(number: int) -> str:
    """Return the key of a file; its path may have characters that keys may not have."""
    return f"file-{number}"
