"""The Events of a run: what has changed from one status to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.run.actions import Announcement
from webhook.run.history import waited_for
from webhook.run.model.intervals import parse_intervals
from webhook.run.progress import DISRUPTING
from webhook.times import elapsed, format_span, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.crd.conditions import ConditionUpdate, Truth
    from webhook.run.facts import DownReplica, RoleFacts
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import OwnedPod
    from webhook.run.progress import Hindrance


def make_announcements(
    run: Run,
    status: RunStatus,
    down: Sequence[DownReplica] = (),
    hindrance: Hindrance | None = None,
) -> tuple[Announcement, ...]:
    """Return the Events for the change from the run's status to `status`."""
    return (
        *_announce_start(run, status),
        *_announce_leaving(run, status),
        *_announce_start_of_all(run, status),
        *_announce_change(run, status, down),
        *_announce_hindrance(run, status, hindrance),
    )


def _announce_start_of_all(run: Run, status: RunStatus) -> Iterator[Announcement]:
    before, after = run.status.gang, status.gang
    if before and after and before.state == "Starting" != after.state:
        if after.state == "Whole":
            seconds = elapsed(before.since, parse_time(after.since))
            text = f"all replicas have a node, after {format_span(seconds)} in try {after.tries}"
            yield Announcement("Normal", "Whole", text)
        else:
            yield Announcement("Warning", "GaveNodesBack", status.message)


def announce_condition(
    run: Run, condition: ConditionUpdate | None, status: Truth
) -> Iterator[Announcement]:
    """Yield one Event for each new message of a condition with this status, not for each
    reconcile."""
    if condition and condition.status == status:
        message_by_type = {condition.type: condition.message for condition in run.status.conditions}
        if message_by_type.get(condition.type) != condition.message:
            yield Announcement("Warning", condition.reason, condition.message)


def announce_given_up(
    moved: Sequence[OwnedPod], facts: Mapping[str, RoleFacts]
) -> Iterator[Announcement]:
    """Yield an Event for the pods that waited for a class for as long as its policy allows, and
    one for new pods without a class whose nodes were lost as often as that."""
    lost: dict[str, str] = {}
    created: list[str] = []
    for role_facts in facts.values():
        active_indexes = parse_intervals(role_facts.before.active_indexes)
        for index, pod in role_facts.alive.items():
            given_up = {} if index in active_indexes else dict(pod.given_up)
            for name in given_up.keys() & waited_for(role_facts.before.history, index):
                del given_up[name]
            if given_up:
                lost |= given_up
                created.append(pod.name)
    if created:
        classes = ", ".join(f"{name} until {until}" for name, until in sorted(lost.items()))
        more = f" and {len(created) - 1} more" if len(created) > 1 else ""
        what = (
            f"{created[0]}{more}: created without requiring class {classes}, as its nodes were lost"
        )
        yield Announcement("Normal", "GaveUpClass", what)
    if moved:
        waits = {
            class_name: most
            for pod in moved
            for class_name, most in pod.fallback
            if most is not None
        }
        classes = ", ".join(
            f"{name} for {format_span(most)}" for name, most in sorted(waits.items())
        )
        pods = moved[0].name + (f" and {len(moved) - 1} more" if len(moved) > 1 else "")
        what = f"{pods} waited for a node of class {classes}: created again without requiring it"
        yield Announcement("Normal", "GaveUpClass", what)


def _announce_start(run: Run, status: RunStatus) -> Iterator[Announcement]:
    before = run.status
    if before.start_time is None and status.start_time is not None:
        roles = ", ".join(f"{spec.count} {role}" for role, spec in run.spec.roles.items())
        resumed = before.phase == "Suspended"
        yield Announcement("Normal", "Resumed" if resumed else "Begun", f"replicas: {roles}")


def _announce_leaving(run: Run, status: RunStatus) -> Iterator[Announcement]:
    """Yield an Event when nodes of the run are announced to be taken away."""
    before, after = (
        {condition.type: condition for condition in run_status.conditions}.get(DISRUPTING)
        for run_status in (run.status, status)
    )
    if after and after.status == "True" and not (before and before.status == "True"):
        yield Announcement("Warning", after.reason, after.message)


def _announce_change(
    run: Run, status: RunStatus, down: Sequence[DownReplica]
) -> Iterator[Announcement]:
    """Yield Events for a change of phase, or for more failed replicas in the same phase."""
    phase, message = status.phase, status.message
    if down and phase not in names.TERMINAL_PHASES:
        more = f"; and {len(down) - 1} more" if len(down) > 1 else ""
        yield Announcement("Warning", "ReplicaDown", f"{down[0].description}{more}")
    if phase == run.status.phase or phase == "Pending":
        return
    if phase == "Failed":
        yield Announcement("Warning", phase, message)
    elif not (down and phase == "Restarting"):
        # The Event ReplicaDown has reported the restart already.
        yield Announcement("Normal", phase, message)


def _announce_hindrance(
    run: Run, status: RunStatus, hindrance: Hindrance | None
) -> Iterator[Announcement]:
    """Yield one Event per hindrance, until another reason replaces it."""
    if hindrance is None or hindrance.reason == "Terminating":
        return
    reasons = {condition.reason for condition in run.status.conditions}
    if hindrance.reason not in reasons and status.phase not in names.TERMINAL_PHASES:
        yield Announcement("Warning", hindrance.reason, hindrance.message)
