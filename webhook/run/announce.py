"""What is worth an Event: a run's transitions, and what newly hinders it. Never one per pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.run.actions import Announcement
from webhook.run.verdict import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.run.facts import Down
    from webhook.run.hindrance import Hindrance
    from webhook.run.model import Run, RunStatus


def announcements(
    run: Run, status: RunStatus, down: Sequence[Down] = (), keeps: Hindrance | None = None
) -> tuple[Announcement, ...]:
    """The Events of going from the run's status to this one."""
    return (
        *_begun(run, status),
        *_changed(run, status, down),
        *_hindered(run, status, keeps),
    )


def _begun(run: Run, status: RunStatus) -> Iterator[Announcement]:
    before = run.status
    if before.start_time is None and status.start_time is not None:
        roles = ", ".join(f"{spec.count} {role}" for role, spec in run.spec.roles.items())
        resumed = before.phase == "Suspended"
        yield Announcement("Normal", "Resumed" if resumed else "Begun", f"replicas: {roles}")


def _changed(run: Run, status: RunStatus, down: Sequence[Down]) -> Iterator[Announcement]:
    """The phase's change, or that more replicas went down in the same phase."""
    phase, message = status.phase, status.message
    if down and phase not in ("Failed", "Succeeded"):
        more = f"; and {len(down) - 1} more" if len(down) > 1 else ""
        yield Announcement("Warning", "ReplicaDown", f"{told(down[0])}{more}")
    if phase == run.status.phase or phase == "Pending":
        return
    if phase == "Failed":
        yield Announcement("Warning", phase, message)
    elif not (down and phase == "Restarting"):
        # That a replica went down has said it.
        yield Announcement("Normal", phase, message)


def _hindered(run: Run, status: RunStatus, keeps: Hindrance | None) -> Iterator[Announcement]:
    """Once for each reason, until another takes its place."""
    if keeps is None or keeps.reason == "Terminating":
        return
    known = {condition.reason for condition in run.status.conditions}
    if keeps.reason not in known and status.phase not in ("Failed", "Succeeded"):
        yield Announcement("Warning", keeps.reason, keeps.message)
