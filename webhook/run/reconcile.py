"""The controller's heart: from a run, what it owns and the time to actions and status.

It acts on what the API server has given back as the run's status, and writes what is new into the
next status. So whatever was cut off between two actions is taken up by the next call, and what is
counted is remembered before anything is done about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.backoff import RESTART_DELAYS
from webhook.crd.conditions import Said
from webhook.run import conditions, serving
from webhook.run.actions import Outcome
from webhook.run.announce import announcements
from webhook.run.counting import closed, count, suspended
from webhook.run.facts import look
from webhook.run.finish import at_rest, ended, ended_status, soonest
from webhook.run.model import LastFailure, RoleStatus
from webhook.run.steps import onward, opened, superseded
from webhook.run.story import story
from webhook.run.verdict import Verdict, told, verdict
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.backoff import Delays
    from webhook.run.actions import Action
    from webhook.run.counting import Counted
    from webhook.run.facts import Down, RoleFacts
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import Needs, Observed, OwnedPod


def reconcile(
    run: Run,
    needs: Needs,
    observed: Observed,
    now: datetime,
    restart_delays: Delays = RESTART_DELAYS,
) -> Outcome:
    """What to do about a run now. Pure; raises nothing that a Run of the API server can cause.

    Where `look_up` is not empty the outcome has nothing else: the pods it names are to be looked
    up, and the function called again.
    """
    if run.metadata.deletion_timestamp:
        # Owner references do the rest.
        return Outcome(run.status)
    if run.status.phase in ("Succeeded", "Failed"):
        return ended(run, observed, now)
    if run.spec.serving:
        return serving.reconcile(run, needs, observed, now)
    facts = _facts(run, observed)
    if missing := _to_look_up(run, facts):
        return Outcome(run.status, look_up=missing)
    counted = count(run.spec, facts, now)
    end = verdict(run, facts, counted, now)
    if end:
        return _over(run, facts, counted, end, now)
    if run.spec.suspend:
        return _resting(run, facts, counted, observed, now)
    return _going_on(run, facts, counted, needs, observed, now, restart_delays)


def invalid(
    before: RunStatus, generation: int, problems: tuple[str, ...], now: datetime
) -> RunStatus:
    """The status of a Run that no pods can be made of. Its spec cannot change: it is over."""
    text = "; ".join(problems)
    end = Verdict("Failed", "InvalidRun", text if len(text) <= 4000 else f"{text[:4000]}…")
    return ended_status(before, generation, end, now)


def _facts(run: Run, observed: Observed) -> dict[str, RoleFacts]:
    by_role: dict[str, list[OwnedPod]] = {role: [] for role in run.spec.roles}
    for pod in observed.pods.values():
        if pod.role in by_role:
            by_role[pod.role].append(pod)
    return {
        role: look(
            role,
            spec,
            run.status.replicas.get(role) or RoleStatus(),
            by_role[role],
            run.name,
            observed.absent,
        )
        for role, spec in run.spec.roles.items()
    }


def _to_look_up(run: Run, facts: Mapping[str, RoleFacts]) -> frozenset[str]:
    return frozenset(
        run.pod_name(role, index) for role, one in facts.items() for index in one.missing
    )


def _over(
    run: Run, facts: Mapping[str, RoleFacts], counted: Counted, end: Verdict, now: datetime
) -> Outcome:
    roles = {role: closed(one, counted.roles[role]) for role, one in facts.items()}
    status = ended_status(_totals(run, roles, counted.down, now), run.metadata.generation, end, now)
    return Outcome(status, announcements=announcements(run, status), after=0.0)


def _resting(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    observed: Observed,
    now: datetime,
) -> Outcome:
    """A suspended run: once the status says so its pods are deleted, and their ends not counted."""
    if run.status.phase != "Suspended":
        roles = {role: suspended(counted.roles[role]) for role in facts}
    else:
        roles = dict(counted.roles)
    status = at_rest(_totals(run, roles, counted.down, now), run.metadata.generation, now)
    actions: tuple[Action, ...] = (*superseded(facts), *opened(observed))
    return Outcome(status, actions, announcements=announcements(run, status, counted.down))


def _going_on(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
    restart_delays: Delays,
) -> Outcome:
    steps = onward(run.spec, facts, counted, needs, observed, now, restart_delays)
    status = _totals(run, counted.roles, counted.down, now)
    told_now = story(facts, counted, steps, observed, status.last_failure)
    said = list(told_now.said)
    if run.status.phase == "Suspended":
        said.append(Said(conditions.SUSPENDED, "False", "Resumed", "the run goes on"))
    status = status.model_copy(
        update={
            "phase": told_now.phase,
            "message": told_now.message,
            "start_time": run.status.start_time or to_second(now),
            "conditions": conditions.updated(
                run.status.conditions, said, run.metadata.generation, now
            ),
        }
    )
    return Outcome(
        status,
        tuple(steps.actions),
        announcements=announcements(run, status, counted.down, told_now.hindrance),
        after=soonest(run, steps.after, counted, now),
    )


def _totals(
    run: Run, roles: Mapping[str, RoleStatus], down: tuple[Down, ...], now: datetime
) -> RunStatus:
    """The run's status with these roles, and what follows from them."""
    desired = sum(role.desired for role in roles.values())
    ready = sum(role.ready for role in roles.values())
    return run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": dict(roles),
            "replicas_ready": f"{ready}/{desired}",
            "restarts": sum(role.restarts for role in roles.values()),
            "disruptions": sum(role.disruptions for role in roles.values()),
            "last_failure": _last_failure(down[0], now) if down else run.status.last_failure,
        }
    )


def _last_failure(down: Down, now: datetime) -> LastFailure:
    failure = down.failure
    exit_ = down.pod.exit if down.pod else None
    return LastFailure(
        replica=down.name,
        node=down.pod.node if down.pod else "",
        exit_code=failure.exit_code,
        reason=failure.reason,
        message=failure.message or told(down),
        disruption=failure.disruption,
        time=(exit_.finished_at if exit_ and exit_.finished_at else to_second(now)),
    )
