"""Compute the statuses of all objects, and which of them to write."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import orjson

from webhook import names
from webhook.crd.conditions import ConditionUpdate, update_conditions
from webhook.judgement.reporting.conditions import ACCEPTED, SATISFIABLE
from webhook.judgement.reporting.decision_counts import total
from webhook.judgement.reporting.in_force import IN_FORCE
from webhook.judgement.reporting.interception import INTERCEPTED, interception
from webhook.policy.status_model import PolicyStatus
from webhook.shortening import first_few, fit
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.crd.conditions import Condition, Time
    from webhook.judgement.reporting.conditions import Acceptance
    from webhook.judgement.reporting.decision_counts import Ledger
    from webhook.judgement.reporting.in_force import SentPods
    from webhook.policy.status_model import ObjectStatus, ObservedObject, Served, Version

T = TypeVar("T")

# now:    what is true of the object itself has changed
# soon:   what all objects have in common has, or a message that counts nodes
# counts: pods were decided, and nothing else is new
Urgency: TypeAlias = Literal["now", "soon", "counts"]
# Whether every replica of the webhook serves a set with this version of the object.
SERVED: Final = "Served"
# The types of all conditions that a status may have.
CONDITIONS: Final = (ACCEPTED, SATISFIABLE, SERVED, IN_FORCE, INTERCEPTED)
_LONGEST_SUMMARY: Final = 120
_MOST_NAMED: Final = 3


class Knowledge(NamedTuple):
    """The input of statuses.

    satisfied: by place, for the version that was judged
    served:    by the replicas' names, in order; None before they were read
    configuration: the webhook configuration, {} if there is none; None if it is not known
    unheard:   the names of replicas that did not answer the last time
    sent: which pods are sent to the webhook; None if that is not known
    """

    acceptance: Acceptance
    satisfied: Mapping[str, tuple[Version, ConditionUpdate]]
    ledger: Ledger
    served: tuple[Served, ...] | None
    configuration: Mapping[str, Any] | None = None
    unheard: tuple[str, ...] = ()
    sent: SentPods | None = None

    def serves(self) -> ConditionUpdate | None:
        """Return whether all replicas serve the newest set; None if that is not known yet."""
        policies = self.acceptance.policies
        if policies is None or self.served is None:
            return None
        whole = policies.hash
        others = [
            served_set.replica
            for served_set in self.served
            if not whole.startswith(served_set.hash)
        ]
        if not self.served and self.unheard:
            what = f"no replica answers: {first_few(self.unheard, _MOST_NAMED)}"
            return ConditionUpdate(SERVED, "Unknown", "NoAnswer", what)
        if silent := [*others, *(name for name in self.unheard if name not in others)]:
            which = first_few(silent, _MOST_NAMED)
            return ConditionUpdate(SERVED, "False", "NotByAll", f"not known to serve it: {which}")
        if not self.served:
            return ConditionUpdate(SERVED, "False", "NoReplica", "the webhook has no replica")
        return ConditionUpdate(SERVED, "True", "ByAllReplicas")


class Due(NamedTuple):
    """A status that differs from the one that the object has."""

    observed: ObservedObject
    status: ObjectStatus
    urgency: Urgency


def due(objects: Iterable[ObservedObject], knowledge: Knowledge, now: Time) -> Iterator[Due]:
    """Yield every status that differs. An object whose current version was not judged has to
    wait."""
    serves = knowledge.serves()
    for observed_object in objects:
        status = _status(observed_object, knowledge, serves, now)
        urgency = None if status is None else _urgency(observed_object.status, status)
        if status is not None and urgency is not None:
            yield Due(observed_object, status, urgency)


def _status(
    observed: ObservedObject, knowledge: Knowledge, serves: ConditionUpdate | None, now: Time
) -> ObjectStatus | None:
    accepted = knowledge.acceptance.conditions.get(observed.place)
    if accepted is None or accepted[0] != observed.version:
        return None
    conditions = [accepted[1]]
    satisfied = knowledge.satisfied.get(observed.place)
    if satisfied is not None and satisfied[0] == observed.version:
        conditions.append(satisfied[1])
    conditions += _in_force(observed, knowledge, now)
    if observed.resource == names.RUN_SOURCES:
        conditions += _read(
            lambda spec: [*interception(spec, observed.name, knowledge.configuration)],
            observed.text,
            [],
        )
    conditions += _served(observed, knowledge, serves)
    before = observed.status
    fields: dict[str, object] = {
        "observed_generation": observed.generation,
        "conditions": update_conditions(before.conditions, conditions, observed.generation, now),
        "served_hashes": before.served_hashes if knowledge.served is None else knowledge.served,
        "summary": summary(observed.resource, observed.text),
    }
    if isinstance(before, PolicyStatus) and observed.uid in knowledge.ledger.bases:
        since, count = total(knowledge.ledger, observed.uid, observed.name)
        fields |= {
            # The previous leader may have written a higher count.
            "pods_decided": max(count.decided, before.pods_decided),
            "pods_rejected": max(count.rejected, before.pods_rejected),
            "since": since,
            "last_match": max(count.last_match, before.last_match or "") or None,
        }
    return before.model_copy(update=fields)


def _served(
    observed: ObservedObject, knowledge: Knowledge, serves: ConditionUpdate | None
) -> Iterator[ConditionUpdate]:
    """Yield whether all replicas serve a set with the version.

    Sets after it have it too, so that this stays so for as long as a replica answers.
    """
    silent = knowledge.served is not None and not knowledge.served
    if not silent and any(
        (condition.type, condition.status, condition.observed_generation)
        == (SERVED, "True", observed.generation)
        for condition in observed.status.conditions
    ):
        return
    if knowledge.acceptance.in_force.get(observed.place) != observed.version:
        yield ConditionUpdate(SERVED, "False", "NotAccepted")
    elif serves:
        yield serves


def _in_force(
    observed: ObservedObject, knowledge: Knowledge, now: Time
) -> Iterator[ConditionUpdate]:
    """For a policy, whether its pods are sent to the webhook; for an exception, also whether it
    still suspends policies.
    """
    if observed.resource not in (names.PLACEMENT_POLICIES, names.PLACEMENT_EXCEPTIONS):
        return
    accepted = knowledge.acceptance.in_force.get(observed.place) == observed.version
    sent = knowledge.sent.condition(observed.text) if knowledge.sent and accepted else None
    if observed.resource == names.PLACEMENT_POLICIES:
        if knowledge.sent is not None:
            yield sent or ConditionUpdate(IN_FORCE, "False", "NotAccepted")
    elif accepted:
        # Only for this version; a new leader may not have loaded a set that contains it yet.
        end = _read(
            lambda spec: to_second(datetime.fromisoformat(spec["until"])), observed.text, ""
        )
        if not end:
            return
        if now >= end:
            yield ConditionUpdate(
                IN_FORCE, "False", "Ended", f"ended at {end}: it has no effect any more"
            )
        elif sent is None or sent.status == "True":
            yield ConditionUpdate(IN_FORCE, "True", "NotEnded", f"until {end}")
        else:
            yield sent


def _read(read: Callable[[Any], T], text: bytes, otherwise: T) -> T:
    """Return what an object, given as JSON, says in its spec.

    Another version or another client may have written it: then the result is `otherwise`, and
    Accepted reports what is wrong.
    """
    try:
        return read(orjson.loads(text)["spec"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return otherwise


def summary(resource: str, text: bytes) -> str:
    """Return what a line has room for of the lists in a spec; `text` is the object as JSON.

    For a class, the labels that identify its nodes: lifecycle=spot. Empty if there is nothing.
    """
    return fit(_read(_SUMMARIES[resource], text, ""), _LONGEST_SUMMARY)


def _shape(shape: Mapping[str, Any]) -> str:
    labels = [f"{key}={value}" for key, value in (shape.get("labels") or {}).items()]
    expressions = [
        f"{expression['key']} {expression['operator']}"
        + (f" [{', '.join(expression['values'])}]" if expression.get("values") else "")
        for expression in shape.get("matchExpressions") or ()
    ]
    return ", ".join(labels + expressions)


def _source(spec: Mapping[str, Any]) -> str:
    """Return the labels that mark the pods of a system; without any, the kinds that it
    describes."""
    marks = (spec.get("identity") or {}).get("marks") or ()
    labels = [
        f"{mark['label']}={mark['value']}" if "value" in mark else mark["label"] for mark in marks
    ]
    return ", ".join(labels or [kind["kind"] for kind in spec.get("kinds") or ()])


_SUMMARIES: Final[Mapping[str, Callable[[Any], str]]] = {
    names.PLACEMENT_POLICIES: lambda spec: ", ".join(
        (spec.get("rollout") or {}).get("namespaces") or ()
    ),
    names.CAPACITY_CLASSES: lambda spec: " or ".join(map(_shape, spec.get("nodes") or ())),
    names.PLACEMENT_EXCEPTIONS: lambda spec: ", ".join(spec["policies"]),
    names.RUN_SOURCES: _source,
}


def _urgency(before: ObjectStatus, after: ObjectStatus) -> Urgency | None:
    if before == after:
        return None
    if before.observed_generation != after.observed_generation:
        return "now"
    if _truth(before.conditions) != _truth(after.conditions):
        return "now"
    if before.summary != after.summary:
        return "soon"  # a controller of before wrote none
    if (before.conditions, before.served_hashes) != (after.conditions, after.served_hashes):
        return "soon"
    return "counts"


def _truth(conditions: Iterable[Condition]) -> list[tuple[object, ...]]:
    """Return what is written at once if it changes. Of messages: that of Accepted, which has
    errors.
    """
    return [
        (
            condition.type,
            condition.status,
            condition.reason,
            condition.observed_generation,
            condition.message if condition.type == ACCEPTED else "",
        )
        for condition in conditions
    ]
