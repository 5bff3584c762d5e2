"""What the API server finds wrong with a pod as decided, and not with the pod as it came."""

from __future__ import annotations

import copy
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import jsonpatch

from webhook.placement.shapes import objects_in
from webhook.placement.trace import EFFECTIVE
from webhook.policy.findings import path_text
from webhook.workloads.object import from_answer
from webhook.workloads.template import PodTemplate
from webhook.workloads.workload_faults import template_faults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from webhook.decision.decision import Decision
    from webhook.placement.shapes import JsonObject
    from webhook.placement.trace import Entry

# An operation whose place is missing.
INAPPLICABLE: Final = (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException)
# Fields of which no fault depends on what policies set. Equal pods differ in them, and checking
# them takes most of the time.
_OF_CONTAINERS: Final = frozenset({"args", "command", "env", "envFrom", "volumeMounts"})
_OF_PODS: Final = frozenset({"hostname", "volumes"})
_LISTS: Final = ("initContainers", "containers")
# Pods with different faults or patches that are remembered, each with some hundred bytes.
_CACHED_PODS: Final = 16_384

# Path and message.
_Fault: TypeAlias = tuple[str, str]
T = TypeVar("T")


class PodFaults:
    """The faults of pods as decided, remembered for equal pods: they are the same in any world."""

    def __init__(self) -> None:
        self._own: dict[bytes, frozenset[_Fault]] = {}
        self._new: dict[bytes, Sequence[str]] = {}
        self._last: tuple[JsonObject, JsonObject, str] | None = None

    def of_decision(self, pod: JsonObject, decision: Decision) -> Sequence[str]:
        """Return why the API server refuses a v1.Pod as decided, and which policies cause it.

        Faults that the pod has without policies are left out: they are its author's.
        """
        if not decision.patch:
            return ()
        metadata = pod["metadata"]
        if self._last is None or self._last[0] is not pod:
            # One pod is often judged several times: under each policy.
            bare = _bare(pod)
            self._last = pod, bare, repr((bare["spec"], metadata.get("annotations")))
        _, bare, text = self._last
        # Equal pods of runs with other names differ in labels, of which the patch has the index.
        key = _digest(f"{text} {decision.patch} {decision.policies}")
        messages = self._new.get(key)
        if messages is None:
            old_faults = self._faults_of(bare, _digest(f"{text} {metadata.get('labels')}"))
            messages = _kept(self._new, key, [*_new_faults(bare, decision, old_faults)])
        return messages

    def _faults_of(self, pod: JsonObject, key: bytes) -> frozenset[_Fault]:
        faults = self._own.get(key)
        return _kept(self._own, key, frozenset(_faults_of(pod))) if faults is None else faults


def _kept(cache: dict[bytes, T], key: bytes, value: T) -> T:
    if len(cache) >= _CACHED_PODS:
        cache.clear()
    cache[key] = value
    return value


def apply(pod: JsonObject, patch: Sequence[Any]) -> JsonObject:
    """Return the v1.Pod with the patch applied; what that does not touch is shared."""
    result = {**pod}
    for part in ("metadata", "spec"):
        touched = {steps[1] for steps in map(_steps, patch) if steps[0] == part and steps[1:]}
        result[part] = {
            key: copy.deepcopy(value) if key in touched else value
            for key, value in pod[part].items()
        }
    # Later operations may change what earlier ones add.
    changed: JsonObject = jsonpatch.apply_patch(result, copy.deepcopy([*patch]), in_place=True)
    return changed


def _steps(operation: Any) -> Sequence[str]:
    steps: Sequence[str] = jsonpatch.JsonPointer(operation["path"]).parts
    return steps


def _bare(pod: JsonObject) -> JsonObject:
    """Return the pod without the fields of which no fault depends on what policies set."""
    spec = {key: value for key, value in pod["spec"].items() if key not in _OF_PODS}
    for name in _LISTS:
        if isinstance(spec.get(name), list):
            spec[name] = [
                {key: value for key, value in container.items() if key not in _OF_CONTAINERS}
                for container in objects_in(spec[name])
            ]
    return {**pod, "spec": spec}


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).digest()


def _new_faults(
    pod: JsonObject, decision: Decision, old_faults: Collection[_Fault]
) -> Iterator[str]:
    for path, message in _faults_of(apply(pod, decision.patch)):
        if (path, message) not in old_faults:
            by = _causes(pod, decision, (path, message))
            yield f"{path}: {message}{by}"


def _causes(pod: JsonObject, decision: Decision, fault: _Fault) -> str:
    """Return which policies' fields cause the fault: without them it would not be there."""
    causes: dict[str, None] = {}
    patch = decision.patch
    for at, operation in enumerate(patch):
        try:
            without = apply(pod, [*patch[:at], *patch[at + 1 :]])
        except INAPPLICABLE:
            continue  # a later operation needs this one, as annotations need their map
        if fault not in _faults_of(without):
            steps = _steps(operation)
            for entry in effective(decision):
                root, _, key = entry.field.removesuffix("]").partition("[")
                if root in steps and (not key or steps[-1] in (root, key)):
                    causes[f"policy {entry.policy} sets {entry.field}"] = None
    return f"; {', '.join(causes)}" if causes else ""


def effective(decision: Decision) -> Iterator[Entry]:
    """Yield what policies change in the pod."""
    return (e for e in decision.trace if e.policy and e.outcome in EFFECTIVE)


def _faults_of(pod: JsonObject) -> list[_Fault]:
    """Return each error that the pod schema finds."""
    template = PodTemplate(from_answer("v1", "Pod", pod), ())
    return [
        (path_text(fault.path), fault.message)
        for fault in template_faults(template)
        if fault.severity == "error"
    ]
