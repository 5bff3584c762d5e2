"""What is kept of idle Runs: those that are suspended, wait in a queue, are over or being deleted.

Nothing that is decided about an idle Run needs the templates of its pods, which are nearly all of
its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.foreign_text import annotation, whole_number
from webhook.frameworks.table import FRAMEWORKS
from webhook.run.actions import CREATIONS
from webhook.times import is_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.run.actions import Outcome

_METADATA: Final = frozenset(
    {
        *("name", "namespace", "uid", "generation", "resourceVersion"),
        *("creationTimestamp", "deletionTimestamp"),
    }
)
# The labels that mean something. Of the annotations two do; all others are read by others.
_LABELS: Final = (names.KUEUE_QUEUE, names.KUEUE_PRIORITY_CLASS, names.KUEUE_LONGEST)
# Fields of the spec, and of its roles, that only a plan reads. All others are short.
PLANNED: Final = frozenset({"template", "environment", "resources", "byIndex", *FRAMEWORKS})


def is_idle(raw: Mapping[str, Any], *, queued: bool) -> bool:
    """Return whether a stored Run is idle; `queued`: it has a queue.

    A Run that was resumed is not, though its status still says Suspended.
    """
    spec, status = _mapping(raw.get("spec")), _mapping(raw.get("status"))
    phase = status.get("phase")
    if raw["metadata"].get("deletionTimestamp") or phase in names.TERMINAL_PHASES:
        return True
    return phase == "Suspended" and (spec.get("suspend") is True or queued)


def reduce_run(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored Run without what no decision about an idle Run reads.

    Fields that this version does not know stay, because they hold the run.
    """
    return {
        **{key: raw[key] for key in ("apiVersion", "kind", "status") if key in raw},
        "metadata": reduce_metadata(raw["metadata"]),
        "spec": _reduce_spec(_mapping(raw.get("spec"))),
    }


def reduce_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a stored Run that decisions about it need: a few hundred bytes.

    Whoever may write the Run may write any other, at any time.
    """
    given = _mapping(metadata.get("labels"))
    labels = {key: given[key] for key in _LABELS if key in given}
    first = whole_number(annotation(metadata, names.FIRST_ATTEMPT))
    start = annotation(metadata, names.START_NOW)
    kept = {
        **({names.FIRST_ATTEMPT: str(first)} if first else {}),
        **({names.START_NOW: start} if start and is_time(start) else {}),
    }
    return {
        **{key: value for key, value in metadata.items() if key in _METADATA},
        **({"labels": labels} if labels else {}),
        **({"annotations": kept} if kept else {}),
    }


def _reduce_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in spec.items() if key not in PLANNED}
    if isinstance(replicas := spec.get("replicas"), dict):
        kept["replicas"] = {
            role: {key: value for key, value in replica.items() if key not in PLANNED}
            if isinstance(replica, dict)
            else replica
            for role, replica in replicas.items()
        }
    return {**kept, "template": {}}


def needs_whole(phase: str, outcome: Outcome) -> bool:
    """Return whether an outcome has to be decided again by the whole Run; `phase`: the stored one.

    By the reduced Run no object can be created, and no other phase be decided.
    """
    return creates(outcome) or outcome.status.phase != phase


def creates(outcome: Outcome) -> bool:
    """Return whether an outcome creates an object of the run's plan."""
    return any(isinstance(action, CREATIONS) for action in outcome.actions)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
