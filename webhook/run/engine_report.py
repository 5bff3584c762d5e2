"""Why an engine makes no pods of its object, and what others changed in that object."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.crd.conditions import ConditionUpdate
from webhook.errors import InvalidRun
from webhook.run.actions import Announcement, DeleteEngineObject, SuspendEngineObject
from webhook.run.backends.engine_object import render_delegated
from webhook.run.observation import OTHER_WARNING
from webhook.run.observed import Refusal
from webhook.run.progress import CREATED, Hindrance
from webhook.run.queue import ADMITTED, NOT_QUEUED
from webhook.shortening import cut
from webhook.times import elapsed, parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from webhook.run.actions import Action, Outcome
    from webhook.run.backends.engines import Engine
    from webhook.run.facts import RoleFacts
    from webhook.run.model import Run
    from webhook.run.observed import EngineObject, EngineObserved

# Seconds after which an object without conditions and pods is reported.
SILENCE: Final = 60.0
# Seconds that an engine has to create pods before Events are read for the reason.
FIRST_LOOK: Final = 2.0
EDITED: Final = "Edited"
BACKEND_SUSPENDED: Final = "BackendSuspended"
# Seconds by which an Event may be older than the moment at which its pod was missed.
_SLACK: Final = 5.0
# Characters of an Event, so that the cure after it is not cut off.
_EVENT_MAX_CHARACTERS: Final = 320
_LONGEST_VALUE: Final = 60
_MOST_PATHS: Final = 3
_CURES: Final = {
    "QuotaExceeded": "free or raise the quota",
    "PodSecurity": "change the namespace's pod security level, or create the Run again with "
    "another template",
    "Rejected": "change the policy that the message names, or create the Run again with other "
    "fields",
    "Invalid": "create the Run again with other fields",
    "NameTaken": "delete what has the name, or create the Run again under another name",
}


def seconds_of_silence(run: Run, observed: EngineObserved, now: datetime) -> float | None:
    """Return for how long the engine has made no pods; None if there are some, or may be none."""
    engine_object = observed.object
    if (
        engine_object is None
        or engine_object.suspended
        or observed.pods
        or not engine_object.created
    ):
        return None
    if any(condition.reason == BACKEND_SUSPENDED for condition in run.status.conditions):
        return 0.0
    return max(0.0, elapsed(_missing_since(run, engine_object, now), now))


def seconds_until_events(observed: EngineObserved, missing: int, now: datetime) -> float | None:
    """Return the seconds until the object's Events are to be read; None if its pods are there.

    Each pause is as long as the object has existed, up to a minute: engines back off likewise.
    """
    engine_object = observed.object
    if (
        not missing
        or engine_object is None
        or engine_object.deleted
        or engine_object.suspended
        or not engine_object.created
    ):
        return None
    age = elapsed(engine_object.created, now)
    if age < FIRST_LOOK:
        return FIRST_LOOK - age
    return 0.0 if observed.events is None else pause_of_events(age)


def pause_of_events(age: float) -> float:
    """Return the seconds from a read of an object's Events, at this age, to the next."""
    return min(SILENCE, max(FIRST_LOOK, age))


def engine_hindrance(
    run: Run, engine: Engine, observed: EngineObserved, now: datetime
) -> Hindrance | None:
    """Return why the engine's object makes no pods, as far as it can be known."""
    engine_object = observed.object
    if engine_object is None:
        if not observed.left:
            return None
        what = f"{observed.left} of the deleted {engine.kind} {run.name} is gone"
        return Hindrance("Terminating", f"waiting until {what}: then the object is created again")
    name = f"{engine.kind} {engine_object.name}"
    if engine_object.deleted:
        return Hindrance("Terminating", f"waiting until {name} is gone")
    if engine_object.suspended and run.status.phase != "Suspended":
        queue = engine_object.queue
        who = f"queue {queue} has not admitted it" if queue else "another client has suspended it"
        return Hindrance(BACKEND_SUSPENDED, f"{name} is suspended: {who}")
    silence = seconds_of_silence(run, observed, now)
    if silence is not None and silence > SILENCE:
        reports = [
            f"{kind} ({text or reason})"
            for kind, (reason, text) in engine_object.conditions.items()
        ]
        status = (
            f"its status: {cut('; '.join(reports), _EVENT_MAX_CHARACTERS)}"
            if reports
            else "no status"
        )
        return Hindrance(
            "BackendSilent",
            f"{name} has no pods after {SILENCE:.0f} s, and no Event says why; {status}: check "
            f"that {engine.operator} runs and watches this namespace, and read its log and the "
            f"Events of the object (kubectl describe {engine.kind.lower()} {engine_object.name} -n "
            f"{run.namespace})",
        )
    return None


def pod_name_taken(run: Run, engine: Engine, role: str) -> Hindrance:
    """Return why a pod is not there that the engine reports to have created."""
    kind = engine.kind.lower()
    return Hindrance(
        "NameTaken",
        f"{engine.operator} has created no pod of role {role}, because another pod has its name: "
        f"delete that pod, then {kind} {run.name} (kubectl delete {kind} {run.name} "
        f"-n {run.namespace}), which is created again",
    )


def describe_failed_write(run: Run, engine: Engine, action: Action, refused: Refusal | None) -> str:
    """Return which write to the engine's object failed, and why; empty without a refusal."""
    if refused is None:
        return ""
    match action:
        case SuspendEngineObject(_, suspend):
            what = "suspended" if suspend else "resumed"
        case DeleteEngineObject():
            what = "deleted"
        case _:
            what = "created"
    words = cut(refused.message, _EVENT_MAX_CHARACTERS)
    return f"{engine.kind} {run.name} is not {what}: {words}; it is tried again"


def report_failed_write(run: Run, decided: Outcome, failed: str) -> Outcome:
    """Return the outcome after a write to the engine failed.

    The stored status stays true, as what was decided is not done: it only says what failed. The
    same is decided again.
    """
    if not failed:
        return replace(decided, status=run.status, announcements=())
    status = run.status.model_copy(update={"message": failed})
    announcement = Announcement("Warning", "BackendWriteFailed", failed)
    return replace(decided, status=status, announcements=(announcement,))


def failed_for_good(engine: Engine, facts: Mapping[str, RoleFacts]) -> Hindrance | None:
    """Return which replica has failed and is not replaced as long as its pod is there."""
    if (pod := engine.failed_for_good(facts)) is None:
        return None
    return Hindrance(
        "ReplicaFailed",
        f"{pod.role}-{pod.index} has failed, and {engine.operator} does not replace it while its "
        f"pod is there: delete pod {pod.name}, or create the Run again with restartPolicy "
        "OnFailure",
    )


def rejected_pods(
    run: Run, engine: Engine, observed: EngineObserved, missing: int, now: datetime
) -> tuple[Refusal, ...]:
    """Return why the engine cannot create the missing pods, from the latest Event about it.

    An Event from before all pods were there is about other pods than the missing ones. A warning
    about something else is the reason only while there are no pods at all.
    """
    if not (missing and observed.object and observed.events):
        return ()
    since = _missing_since(run, observed.object, now)
    timely = [
        event
        for event in observed.events
        if event.seen and elapsed(since, parse_time(event.seen)) >= -_SLACK
    ]
    specific_events = [event for event in timely if event.reason != OTHER_WARNING]
    if not (specific_events or (timely and not observed.pods)):
        return ()
    event = (specific_events or timely)[-1]
    cure = _CURES.get(event.reason, "change what the message names")
    pods = "1 pod is" if missing == 1 else f"{missing} pods are"
    words = cut(event.message, _EVENT_MAX_CHARACTERS)
    again = "" if event.reason == "Invalid" else f"; {engine.operator} then tries again"
    message = f"{pods} not created: {words}; {cure}{again}"
    return (Refusal(f"{engine.kind} {observed.object.name}", event.reason, message),)


def _missing_since(run: Run, engine_object: EngineObject, now: datetime) -> str:
    created = next(
        (condition for condition in run.status.conditions if condition.type == CREATED), None
    )
    since = max(run.status.start_time or "", engine_object.created)
    if created is None:
        return since
    return to_second(now) if created.status == "True" else max(since, created.last_transition_time)


def unqueued_condition(
    run: Run, engine: Engine, observed: EngineObserved
) -> ConditionUpdate | None:
    """Return whether Kueue queues the object of a run with a queue; None if it holds it, or the run
    has none.

    Kueue suspends the object in the request that creates it, and labels the pod templates when it
    lets it go (pkg/controller/jobframework). Without an integration for the kind it does neither.
    """
    engine_object, queue = observed.object, (run.metadata.labels or {}).get(names.KUEUE_QUEUE)
    if not queue or engine_object is None or engine_object.deleted or engine_object.suspended:
        return None
    if names.KUEUE_PODSET.encode() in engine_object.templates:
        return ConditionUpdate(ADMITTED, "True", "Admitted", f"admitted by queue {queue}")
    group = engine.api_version.partition("/")[0]
    return ConditionUpdate(
        ADMITTED,
        "False",
        NOT_QUEUED,
        f"{engine.kind} {engine_object.name} runs without the quota of queue {queue}: Kueue does "
        f"not queue it; add {group}/{engine.kind.lower()} to integrations.frameworks of Kueue if "
        "it has such an integration, and create the run again, or remove its label "
        f"{names.KUEUE_QUEUE}",
    )


def describe_edits(run: Run, engine: Engine, engine_object: EngineObject) -> str:
    """Return what others changed in the object's counts and pod templates; empty for nothing.

    What they added is no change: operators and queues add defaults, labels and tolerations.
    """
    if not engine_object.templates:
        return ""
    try:
        wanted: Any = render_delegated(run, engine)
    except InvalidRun:
        # An earlier version rendered it. What it wanted is not known.
        return ""
    path = ("spec", *filter(None, engine.templates.split(".")))
    for step in path:
        wanted = wanted.get(step) or {}
    differences = list(_differences(wanted, json.loads(engine_object.templates), ".".join(path)))
    more = len(differences) - _MOST_PATHS
    rest = f"; and {more} more" if more > 0 else ""
    return "; ".join(differences[:_MOST_PATHS]) + rest


def _differences(wanted: Any, actual: Any, path: str) -> Iterator[str]:
    """Yield the paths whose value is not the wanted one, with both values."""
    match wanted, actual:
        case dict(), dict():
            for key, value in wanted.items():
                yield from _differences(value, actual.get(key), f"{path}.{key}")
        case list(), list() if len(actual) >= len(wanted):
            for index, value in enumerate(wanted):
                yield from _differences(value, actual[index], f"{path}[{index}]")
        case _ if (wanted or None) != (actual or None):
            yield f"{path}: {_text(actual)}, the Run wants {_text(wanted)}"


def _text(value: Any) -> str:
    return "nothing" if value is None else cut(json.dumps(value), _LONGEST_VALUE)


def edited_condition(run: Run, engine: Engine, observed: EngineObserved) -> ConditionUpdate | None:
    """Return whether others changed the object; None if nobody ever did.

    The engine and its other clients own the object once it is created: an autoscaler changes
    counts, and a queue changes templates. Fairlead neither reverts nor adopts an edit.
    """
    if observed.object and observed.edits:
        return ConditionUpdate(
            EDITED,
            "True",
            "ObjectEdited",
            f"{engine.kind} {observed.object.name} was changed, and is not as the Run wants it: "
            f"{observed.edits}; Fairlead leaves it so; to undo it, delete the object (kubectl "
            f"delete {engine.kind.lower()} {observed.object.name} -n {run.namespace}): it is "
            "created again, with new pods",
        )
    if any(
        condition.type == EDITED and condition.status == "True"
        for condition in run.status.conditions
    ):
        words = "what the Run sets is as it wants it; what others added is not compared"
        return ConditionUpdate(EDITED, "False", "AsTheRun", words)
    return None
