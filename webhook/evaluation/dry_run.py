"""The question to an API server about a pod as decided: Pod Security, quotas, other webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.placement.fields import FIELDS
from webhook.placement.shapes import objects_in
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.stored_pod import is_stored

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject

_NAME: Final = "fairlead-dry-run"
_DERIVED: Final = [name for field in FIELDS for name in field.derived]


class Answer(NamedTuple):
    """Why the API server refuses a pod, or why its answer is unknown; empty if it takes the pod."""

    refusal: str = ""
    unknown: str = ""


# Ask an API server about a v1.Pod in a namespace; nothing is stored.
Server: TypeAlias = Callable[["JsonObject", str], Answer]


def question(pod: JsonObject) -> JsonObject:
    """Return the v1.Pod to ask about.

    It keeps the marks of its run, by which admission policies and webhooks select pods; Fairlead's
    own webhook knows the question by the request. A guard of pods without a stamp takes its stamp.
    Who decides on it writes another one, as a webhook does that does not know the question. It has
    its own name and owners, as far as they are known; an owner that is not stored gets a uid.
    Labels that only a controller knows are left out, and annotations that only Fairlead's
    controller may set; of a stored pod also what the API server derived from a class that a
    policy may have set.
    """
    metadata = pod["metadata"]
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if value != UNKNOWN
    }
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key not in names.OF_CONTROLLER
    }
    kept = {
        "name": metadata.get("name") or _NAME,
        "labels": labels,
        "annotations": {**annotations, names.PLACEMENT: names.AS_DECIDED},
    }
    if owners := _owners(metadata):
        kept["ownerReferences"] = owners
    derived = _DERIVED if is_stored(pod) else ()
    spec = {key: value for key, value in pod["spec"].items() if key not in derived}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}


def describe_difference(pod: JsonObject) -> str:
    """Return how the pod asked about differs from the v1.Pod that comes, which rules of others may
    read; empty for one that whoever asks creates."""
    metadata = pod["metadata"]
    name, owners = metadata.get("name"), _owners(metadata)
    if name and not owners:
        return ""
    parts = [*([] if name else ["another name"]), *([] if owners else ["no owner"])]
    return f"it was asked about a pod with {' and '.join([*parts, 'you as its creator'])}"


def _owners(metadata: JsonObject) -> list[JsonObject]:
    """Return its ownerReferences; to block the deletion of an owner takes rights of its own."""
    return [
        {"uid": names.NO_UID} | {key: owner[key] for key in owner if key != "blockOwnerDeletion"}
        for owner in objects_in(metadata.get("ownerReferences"))
    ]
