"""The question to an API server about a pod as decided: Pod Security, quotas, other webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.placement.fields import FIELDS
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.stored_pod import is_stored

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.sources.table import SourceTable

_NAME: Final = "fairlead-dry-run"
_DERIVED: Final = [name for field in FIELDS for name in field.derived]


class Answer(NamedTuple):
    """Why the API server refuses a pod, or why its answer is unknown; empty if it takes the pod."""

    refusal: str = ""
    unknown: str = ""


# Ask an API server about a v1.Pod in a namespace; nothing is stored.
Server: TypeAlias = Callable[["JsonObject", str], Answer]


def question(pod: JsonObject, sources: SourceTable) -> JsonObject:
    """Return the v1.Pod to ask about, without the marks of a run.

    A guard of pods without a stamp takes its stamp. Who decides on it writes another one, as a
    webhook does that does not know the question. Owners are left out, for they may not exist yet,
    and so are the name, which may be taken, and labels that only a controller knows; of a stored
    pod also what the API server derived from a class that a policy may have set.
    """
    metadata = pod["metadata"]
    annotations = _without(metadata.get("annotations"), sources.read_annotations)
    kept = {
        "labels": _without(metadata.get("labels"), sources.read_labels),
        "annotations": {**annotations, names.PLACEMENT: names.AS_DECIDED},
    }
    derived = _DERIVED if is_stored(pod) else ()
    spec = {key: value for key, value in pod["spec"].items() if key not in derived}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _NAME, **kept}, "spec": spec}


def _without(members: Mapping[str, Any] | None, marks: Collection[str]) -> dict[str, Any]:
    own = f"{names.GROUP}/"
    return {
        key: value
        for key, value in (members or {}).items()
        if key not in marks and not key.startswith(own) and value != UNKNOWN
    }
