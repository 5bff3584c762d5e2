"""The pods of a workload that no rollout replaces, and what they are made of when they are gone.

Sources: newVersionedStatefulSetPod of k8s.io/kubernetes/pkg/controller/statefulset; k8s.io/api/apps
v1, updateStrategy and paused; ObjectRestarterFunc of k8s.io/kubectl, which refuses what is paused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.workloads.template import at, count_at

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.workloads.object import Object

_ORDINALS: Final = ("spec", "ordinals", "start")
_PARTITION: Final = ("spec", "updateStrategy", "rollingUpdate", "partition")


class Kept(NamedTuple):
    """Pods of a workload that a rollout keeps.

    why:      what of the workload keeps them
    below:    those with a lower number in their name; None: all
    source:   what they are made of again, if not the present template; else empty
    revision: the ControllerRevision of which they are made again; else empty
    resumed:  whether the workload is paused, so that a rollout is only put off
    """

    why: str
    below: int | None = None
    source: str = ""
    revision: str = ""
    resumed: bool = False

    def keeps(self, pod: str) -> bool:
        """Return whether it keeps the pod of this name."""
        if self.below is None:
            return True
        number = pod.rpartition("-")[2]
        return number.isdecimal() and int(number) < self.below


def kept_of(workload: JsonObject) -> Kept | None:
    """Return the pods that a rollout of the workload keeps; None if it replaces all."""
    kind, strategy = workload.get("kind"), at(workload, ("spec", "updateStrategy", "type"))
    if not str(workload.get("apiVersion")).startswith("apps/"):
        return None
    if kind == "Deployment":
        if at(workload, ("spec", "paused")) is not True:
            return None
        return Kept("it is paused", source="its ReplicaSets", resumed=True)
    if kind in ("StatefulSet", "DaemonSet") and strategy == "OnDelete":
        return Kept("its updateStrategy is OnDelete")
    partition = count_at(workload, _PARTITION, 0)
    if kind != "StatefulSet" or not partition:
        return None
    below = count_at(workload, _ORDINALS, 0) + partition
    before, after = (
        at(workload, ("status", f"{state}Revision")) for state in ("current", "update")
    )
    revision = str(before) if before and before != after else ""
    source = f"its revision {revision}" if revision else ""
    return Kept(f"its partition keeps the pods below {below}", below, source, revision)


def at_revision(workload: Object, revision: JsonObject) -> Object | None:
    """Return the workload with the template of a ControllerRevision; None if it is not its own."""
    owners = at(revision, ("metadata", "ownerReferences"))
    uid = workload.metadata.get("uid")
    is_owner = isinstance(owners, list) and any(at(owner, ("uid",)) == uid for owner in owners)
    raw_template = at(revision, ("data", "spec", "template"))
    if not is_owner or not isinstance(raw_template, dict):
        return None
    template = {key: value for key, value in raw_template.items() if key != "$patch"}
    spec = {**workload.value["spec"], "template": template}
    return replace(workload, value={**workload.value, "spec": spec})
