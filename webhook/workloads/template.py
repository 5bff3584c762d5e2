"""A pod template of an object, and the pods made from it."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.placement.owner_selector import OwnerSelector, conditions_of
from webhook.policy.findings import path_text
from webhook.shortening import cut
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.stored_pod import as_admitted, as_stored, is_stored

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.workloads.object import Object


class ReplicaAdditions(NamedTuple):
    """What a controller sets on one replica, replacing the template's values.

    A value that is UNKNOWN replaces none: a template that a cluster has stored may have it.

    alone:   the pod gets none of the template's other metadata
    volumes: volumes of claims; they replace the template's volumes of the same names
    pod:     the pod as a whole, if the controller also sets other fields
    """

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: JsonObject | None = None
    alone: bool = False
    volumes: Sequence[JsonObject] = ()
    pod: JsonObject | None = None


# Number of replicas of a template that are evaluated in any case.
MAX_REPLICAS: Final = 1000
# Pods from this index on count as the last one before them. An Indexed Job may have as many pods.
_FURTHEST: Final = 100_000
_SHOWN_MAX_CHARACTERS: Final = 60
_NUMBER: Final = "write a whole number that is 0 or more"
_NUMBER_AT_END: Final = re.compile(r"[0-9]{1,18}$")
# From a replica's index (from 0) to what its controller adds.
Maker: TypeAlias = Callable[[int], ReplicaAdditions]
# Writes a changed template into a copy of the object, as far as the object has fields for it.
Writer: TypeAlias = "Callable[[JsonObject, JsonObject], None]"


def as_it_is(_index: int) -> ReplicaAdditions:
    """Return no additions: the pod equals its template."""
    return ReplicaAdditions()


@dataclass(frozen=True, slots=True)
class BuiltTemplate:
    """A template that a controller makes of several fields of an object.

    value:     the template
    labels_at: the path of its author's labels in the object
    start:     the path of the pod template that it starts from, if there is one
    write:     see Writer
    path_of:   the path in the object for a field of the pod's spec; None without one
    """

    value: JsonObject
    labels_at: Path
    start: Path | None = None
    write: Writer = field(default=lambda _value, _template: None, compare=False)
    path_of: Callable[[str], Path | None] = field(default=lambda _name: None, compare=False)


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Pods that differ only by index.

    path:  the path of the template in the object; empty if the object is the pod
    part:  the part of the object (worker, head); empty if all pods are of one kind
    count: the number of pods; None if it depends on the cluster
    made:  what the controller adds to each
    built: the template, if it is not at the path as a whole
    led:   one of the object's templates has a role that leads
    unmarked: what to do if the pods are to belong to a run, which no mark shows
    miscounted: paths in the object, and messages, of values that are no number of pods
    numbers: the number of each replica of its part, by index; None if they are the indexes
    selector: that by which the owner of the pods counts them; None if none does, or it is unknown
    """

    source: Object
    path: Path
    part: str = ""
    count: int | None = 1
    made: Maker = field(default=as_it_is, compare=False)
    built: BuiltTemplate | None = None
    led: bool = False
    unmarked: str = ""
    miscounted: Sequence[tuple[Path, str]] = ()
    numbers: Sequence[int] | None = None
    selector: OwnerSelector | None = field(default=None, compare=False)

    @property
    def is_pod(self) -> bool:
        return not self.path and self.built is None

    @property
    def template(self) -> JsonObject:
        """The template as written, or as the controller makes it."""
        if self.built is not None:
            return self.built.value
        template: JsonObject = at(self.source.value, self.path)
        return template

    @property
    def inner_selector(self) -> OwnerSelector | None:
        """The selector beside the template, if the object itself does not count pods by it.

        An object that its controller makes may do so: the Job of a JobSet, the ReplicaSet of an
        Argo Rollout. None if no further label may break it.
        """
        beside = at(self.source.value, self.path[:-1]) if self.path and not self.selector else None
        conditions = conditions_of({"spec": beside})
        return OwnerSelector(self.source.title, conditions) if conditions else None

    @property
    def labels_path(self) -> str:
        """The path of its labels: spec.template.metadata.labels."""
        return path_text(self.built.labels_at if self.built else (*self.path, "metadata", "labels"))

    def pod(self, index: int) -> JsonObject:
        """Return the v1.Pod that the webhook receives for one replica.

        Fields with invalid types stay unchanged, for the engine to report. A pod that is already
        stored is returned as it was after admission, without the node that a scheduler has set.
        """
        if self.is_pod:
            value = self.source.value
            return as_admitted(value) if is_stored(value) else value
        made = self.made(index)
        if made.pod is not None:
            return made.pod
        metadata = None if made.alone else self.template.get("metadata")
        if metadata is None or isinstance(metadata, dict):
            metadata = dict(metadata or {})
            for key, added in (("labels", made.labels), ("annotations", made.annotations)):
                written_entries = metadata.get(key)
                if added and (written_entries is None or isinstance(written_entries, dict)):
                    metadata[key] = {**_unknown(added), **(written_entries or {}), **_known(added)}
            if made.owner:
                metadata["ownerReferences"] = [made.owner]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": _with_volumes(self.template.get("spec"), made.volumes),
        }

    def sample(self, turns: Callable[[], Iterable[int]] = tuple) -> Iterator[tuple[int, int]]:
        """Yield the index of each pod to evaluate, and how many later pods are treated like it.

        `turns` returns the indexes at which the answer may change; it is called once if there are
        more than MAX_REPLICAS pods, after nearly so many.
        """
        count = 1 if self.count is None else max(self.count, 1)
        last = min(count, MAX_REPLICAS) - 1
        yield from ((index, 0) for index in range(last))
        most = min(count, _FURTHEST)
        further = {at for at in turns() if last < at < most} if count > MAX_REPLICAS else set()
        for index, end in pairwise([last, *sorted(further), count]):
            yield index, end - index - 1

    def indexes_with(self, labels: Iterable[tuple[str, str | None]]) -> Iterator[int]:
        """Yield the first index of the pods with each of these labels, and the first after them.

        Only for labels whose number grows with the index, as that of the pod or of its group.
        """
        indexes = range(self.count or 0)
        for key, value in labels:
            number = _number_at_end(value)

            def of_pod(index: int, key: str = key) -> int:
                return _number_at_end(at(self.pod(index), ("metadata", "labels", key)))

            if number >= 0:
                yield bisect_left(indexes, number, key=of_pod)
                yield bisect_right(indexes, number, key=of_pod)

    def numbers_of(self, indexes: Sequence[int]) -> Sequence[int]:
        return indexes if self.numbers is None else [self.numbers[index] for index in indexes]

    def mutated(self, index: int, pod: JsonObject) -> JsonObject:
        """Return the template, or pod, that results in `pod` for this replica without a webhook."""
        if self.is_pod:
            value = self.source.value
            return as_stored(pod, value) if is_stored(value) else pod
        made, template_metadata = self.made(index), dict(self.template.get("metadata") or {})
        metadata = dict(template_metadata)
        for key, added in (("labels", made.labels), ("annotations", made.annotations)):
            now = pod["metadata"].get(key) or {}
            written = (template_metadata.get(key) or {}).items()
            members = {k: v if k in added else now.get(k, v) for k, v in written}
            members |= {k: v for k, v in now.items() if k not in added}
            if members:
                metadata[key] = members
        # A new key comes first, where authors usually write it.
        front = {"metadata": metadata} if metadata and "metadata" not in self.template else {}
        spec = pod["spec"]
        if made.volumes:
            # No policy changes volumes, and the controller adds its own again.
            written = self.template["spec"]
            spec = {
                key: written[key] if key == "volumes" else value
                for key, value in spec.items()
                if key != "volumes" or key in written
            }
        result = {**front, **self.template, "spec": spec}
        return result | {"metadata": metadata} if metadata else result

    def path_in_object(self, path: Path) -> Path:
        """Return the path in the object for a path in its pod: spec.nodeSelector."""
        if self.built is None:
            return (*self.path, *path)
        if path[:1] == ("spec",) and len(path) > 1:
            source_path = self.built.path_of(str(path[1]))
            return self.path if source_path is None else (*source_path, *path[2:])
        at_labels = path[:2] == ("metadata", "labels")
        return (*self.built.labels_at, *path[2:]) if at_labels else self.path

    def put(self, value: JsonObject, template: JsonObject) -> JsonObject:
        """Write a changed template into a copy of the object, and return the copy."""
        if self.built is not None:
            self.built.write(value, template)
        elif self.path:
            at(value, self.path[:-1])[self.path[-1]] = template
        else:
            return template
        return value

    def describe(self, indexes: Sequence[int] | None = None, more: int = 0) -> str:
        """Describe these pods: `worker × 3`, or for some replicas `worker 0, 2-3 of 4`.

        Without indexes, all pods; `more` is the number of further ones after the last index. Empty
        for the only pod of an object.
        """
        if self.numbers is None:
            return described(self.part, self.count, indexes, more)
        if self.count == 1:
            return f"{self.part} {self.numbers[0]}"
        if indexes is None or len(indexes) + more == self.count:
            return described(self.part, self.count)
        last = indexes[-1] + 1
        chosen = self.numbers_of([*indexes, *range(last, last + more)])
        return described(self.part, self.count, chosen)


def _number_at_end(text: Any) -> int:
    """Return the number at the end of a label's value; -1 without one."""
    digits = _NUMBER_AT_END.search(text) if isinstance(text, str) else None
    return int(digits[0]) if digits else -1


def find_unknown_labels(pod: JsonObject) -> frozenset[str]:
    labels = at(pod, ("metadata", "labels"))
    return frozenset(_unknown(labels)) if isinstance(labels, dict) else frozenset()


def _unknown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value == UNKNOWN}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != UNKNOWN}


def _with_volumes(spec: Any, added: Sequence[JsonObject]) -> Any:
    """Return a pod's spec with volumes; one of an invalid type stays unchanged."""
    written_volumes = spec.get("volumes") if isinstance(spec, dict) else None
    if (
        not added
        or not isinstance(spec, dict)
        or not (written_volumes is None or isinstance(written_volumes, list))
    ):
        return spec
    names = {volume["name"] for volume in added}
    kept = [volume for volume in written_volumes or () if at(volume, ("name",)) not in names]
    return {**spec, "volumes": [*kept, *added]}


def described(
    part: str, count: int | None, indexes: Sequence[int] | None = None, more: int = 0
) -> str:
    """Describe these of `count` pods: see PodTemplate.describe."""
    if count is None:
        return f"{part}, one a node" if part else "one pod per node"
    if indexes is not None and len(indexes) + more < count:
        text = f"{ranges(indexes, more)} of {count}"
        return f"{part} {text}" if part else f"pods {text}"
    if count == 1:
        return part
    return f"{part} × {count}" if part else f"{count} pods"


def ranges(indexes: Sequence[int], more: int = 0) -> str:
    """Format increasing numbers, and `more` after the last; runs as ranges: `0, 2-5, 7`."""
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
    """Return the value at a path of plain values; None if it is absent."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def count_at(value: Any, path: Path, default: int = 1) -> int:
    """Return the number at a path, such as spec.replicas; the default if there is none."""
    count = number_of_pods(at(value, path))
    return default if count is None else count


def number_of_pods(value: Any) -> int | None:
    """Return a whole number that is not negative; None for any other value.

    2.0 is 2, because kubectl sends it so.
    """
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and not isinstance(value, bool) and value >= 0 else None


def count_problem(value: Any) -> str:
    """Return what is wrong with a number of pods; empty for a valid number and for no value."""
    if value is None or number_of_pods(value) is not None:
        return ""
    cure = f"{_NUMBER}, without quotes" if isinstance(value, str) else _NUMBER
    return (
        f"is {cut(json.dumps(value, default=str), _SHOWN_MAX_CHARACTERS)}, not a number of pods; "
        f"{cure}"
    )
