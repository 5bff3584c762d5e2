"""What the demo shows: the pods that people apply, and the policies that meet them."""

from __future__ import annotations

import copy
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from webhook import names
from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject

_DATA: Final = Path(__file__).parent / "data"
POLICIES: Final = _DATA / "policies"
NAMESPACE_FILE: Final = _DATA / "namespace.yaml"
RUN_FILE: Final = _DATA / "run.yaml"
NAMESPACE: Final = "research"

# Kubernetes' own annotation for a human's description of an object.
DESCRIPTION: Final = "kubernetes.io/description"
_PERSON: Final = "you@example.com"
# What the DaemonSet controller lets all of its pods tolerate (AddOrUpdateDaemonPodTolerations in
# k8s.io/kubernetes/pkg/controller/daemon/util).
_DAEMON_TOLERATIONS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


@dataclass(frozen=True)
class Example:
    """One object as it is applied: a v1.Pod, or a DaemonSet that makes pods."""

    manifest: JsonObject

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def title(self) -> str:
        """What is to be seen, in the words of the manifest itself."""
        return str(self.manifest["metadata"]["annotations"][DESCRIPTION])

    @property
    def by_daemon_set(self) -> bool:
        """Whether the pod is a DaemonSet's."""
        return bool(self.manifest["kind"] == "DaemonSet")

    @property
    def user(self) -> str:
        """Who asks the API server for the pod."""
        return names.DAEMON_SET_CONTROLLER if self.by_daemon_set else _PERSON

    def pod(self, node: str = "on-demand-0") -> JsonObject:
        """The pod that is asked for; a DaemonSet's controller makes one for each `node`."""
        return _daemon_pod(self.manifest, node) if self.by_daemon_set else self.manifest


def read_examples() -> list[Example]:
    """The examples, in the order in which they are shown."""
    return [Example(manifest) for manifest in yaml.safe_load_all((_DATA / "pods.yaml").read_text())]


def save(folder: Path) -> None:
    """Write all of the demo into a new folder. Raises UnreadableInput if there is one already."""
    try:
        shutil.copytree(_DATA, folder)
    except FileExistsError:
        raise UnreadableInput([f"{folder}: is there already; name a folder that is not"]) from None
    except OSError as error:
        raise UnreadableInput([f"{folder}: {error.strerror}"]) from error


def _daemon_pod(daemon_set: JsonObject, node: str) -> JsonObject:
    metadata = daemon_set["metadata"]
    template = copy.deepcopy(daemon_set["spec"]["template"])
    on_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    owner = {
        "apiVersion": daemon_set["apiVersion"],
        "kind": daemon_set["kind"],
        "name": metadata["name"],
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, metadata["name"])),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    spec = {
        **template["spec"],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [on_node]}]
                }
            }
        },
        "tolerations": [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
            for name, effect in _DAEMON_TOLERATIONS
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": spec,
    }
