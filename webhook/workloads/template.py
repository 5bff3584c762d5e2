"""One pod template of an object, and the pods that its controller makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from webhook.policy.findings import path_text
from webhook.workloads.stored import as_admitted, as_stored, is_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.workloads.object import Object


class Made(NamedTuple):
    """What a controller puts into the metadata of one replica; it replaces what is there.

    `alone`: nothing else of the template's metadata reaches the pod.
    """

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: JsonObject | None = None
    alone: bool = False


# From a replica's index, from 0, to what its controller adds.
Maker: TypeAlias = Callable[[int], Made]


def as_it_is(_index: int) -> Made:
    """The maker of a pod that comes exactly as its template says."""
    return Made()


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Pods that are alike, but for their index.

    path:  where in the object the template stands; empty if the object is the pod
    part:  which of the object's pods they are (worker, head); empty if there is only one kind
    count: how many there are to be; None if that depends on the cluster
    made:  what the controller adds to each
    """

    source: Object
    path: Path
    part: str = ""
    count: int | None = 1
    made: Maker = field(default=as_it_is, compare=False)

    @property
    def is_pod(self) -> bool:
        """Whether the object is itself the pod."""
        return not self.path

    @property
    def template(self) -> JsonObject:
        """The template as it was written."""
        found: JsonObject = at(self.source.value, self.path)
        return found

    @property
    def labels_path(self) -> str:
        """Where its labels stand: spec.template.metadata.labels."""
        return path_text((*self.path, "metadata", "labels"))

    def pod(self, index: int) -> JsonObject:
        """The v1.Pod that the API server shows to the webhook for one replica.

        Fields of the wrong shape stay as they are, for the engine to name. A pod that the API
        server has stored already comes as admission left it: a scheduler said on which node it is.
        """
        if self.is_pod:
            value = self.source.value
            return as_admitted(value) if is_stored(value) else value
        made = self.made(index)
        metadata = None if made.alone else self.template.get("metadata")
        if metadata is None or isinstance(metadata, dict):
            metadata = dict(metadata or {})
            for key, added in (("labels", made.labels), ("annotations", made.annotations)):
                own = metadata.get(key)
                if added and (own is None or isinstance(own, dict)):
                    metadata[key] = {**(own or {}), **added}
            if made.owner:
                metadata["ownerReferences"] = [made.owner]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": self.template.get("spec"),
        }

    def mutated(self, index: int, pod: JsonObject) -> JsonObject:
        """The template, or the pod, that would give `pod` for this replica without any webhook."""
        if self.is_pod:
            value = self.source.value
            return as_stored(pod, value) if is_stored(value) else pod
        made, own = self.made(index), dict(self.template.get("metadata") or {})
        metadata = dict(own)
        for key, added in (("labels", made.labels), ("annotations", made.annotations)):
            now = pod["metadata"].get(key) or {}
            written = (own.get(key) or {}).items()
            members = {k: v if k in added else now.get(k, v) for k, v in written}
            members |= {k: v for k, v in now.items() if k not in added}
            if members:
                metadata[key] = members
        # A new key comes first, where people write it.
        front = {"metadata": metadata} if metadata and "metadata" not in self.template else {}
        result = {**front, **self.template, "spec": pod["spec"]}
        return result | {"metadata": metadata} if metadata else result

    def describe(self, indexes: Sequence[int] | None = None, more: int = 0) -> str:
        """Which pods these are: `worker × 3`, or of some replicas `worker 0, 2-3 of 4`.

        Without indexes all of them; `more` is how many more there are after the last of these.
        Empty for a single pod of an object that makes no other.
        """
        return described(self.part, self.count, indexes, more)


def described(
    part: str, count: int | None, indexes: Sequence[int] | None = None, more: int = 0
) -> str:
    """Which of `count` pods these are: see PodTemplate.describe."""
    if count is None:
        return f"{part}, one a node" if part else "one pod a node"
    if indexes is not None and len(indexes) + more < count:
        text = f"{ranges(indexes, more)} of {count}"
        return f"{part} {text}" if part else f"pods {text}"
    if count == 1:
        return part
    return f"{part} × {count}" if part else f"{count} pods"


def ranges(indexes: Sequence[int], more: int = 0) -> str:
    """Rising numbers, and so many more after the last; those in a row as one: `0, 2-5, 7`."""
    rows: list[list[int]] = []
    for index in indexes:
        if rows and index == rows[-1][1] + 1:
            rows[-1][1] = index
        else:
            rows.append([index, index])
    if rows:
        rows[-1][1] += more
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in rows)


def at(value: Any, path: Path) -> Any:
    """What stands at a path of plain values; None if there is nothing."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def count_at(value: Any, path: Path, default: int = 1) -> int:
    """The number at a path, such as spec.replicas; the default if there is none."""
    found = at(value, path)
    return found if isinstance(found, int) and found >= 0 else default
