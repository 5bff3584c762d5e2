"""The pod of a policy test: short as it is written, whole as the API server would send it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.policy_tests.model import Pod

NAME: Final = "test-pod"

_STEP: Final = re.compile(r"([A-Za-z]+)|\[([^\]]*)\]")


def whole(pod: Pod) -> JsonObject:
    """The v1.Pod: labels and annotations where they belong, and what every pod has."""
    metadata: JsonObject = {"name": NAME, **(pod.metadata or {})}
    for key, short in (("labels", pod.labels), ("annotations", pod.annotations)):
        if short is not None:
            metadata[key] = dict(short)
    spec: JsonObject = {"containers": [{"name": "main", "image": "main"}], **(pod.spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def written_at(field: str, pod: Pod) -> Path:
    """Where in the test's `pod` a field of the whole pod stands: metadata.labels[a] and so on."""
    steps: list[str | int] = []
    for name, key in _STEP.findall(field):
        steps.append(name or (int(key) if key.isdigit() else key))
    short: dict[str, Any] = {"labels": pod.labels, "annotations": pod.annotations}
    if len(steps) > 1 and steps[0] == "metadata" and short.get(str(steps[1])) is not None:
        return tuple(steps[1:])
    return tuple(steps)
