"""The controller's heart: from a run, what it owns and the time to actions and status.

It acts on what the API server has given back as the run's status, and writes what is new into the
next status. So whatever was cut off between two actions is taken up by the next call, and what is
counted is remembered before anything is done about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.conditions import Said
from webhook.run import conditions, incidents, serving
from webhook.run.actions import Outcome
from webhook.run.announce import announcements
from webhook.run.counting import RestartTerms, closed, count, suspended
from webhook.run.facts import look
from webhook.run.finish import at_rest, ended, ended_status, soonest
from webhook.run.model import LastFailure, RoleStatus
from webhook.run.steps import onward, opened, superseded
from webhook.run.story import story
from webhook.run.verdict import Verdict, told, verdict
from webhook.times import elapsed, to_microsecond, to_second

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.run.actions import Action
    from webhook.run.counting import Counted
    from webhook.run.facts import Down, RoleFacts
    from webhook.run.model import Run, RunStatus
    from webhook.run.observed import Needs, Observed, OwnedPod

DEFAULT_TERMS: Final = RestartTerms()
# Nodes that are read live for one look at most; those beyond are taken to be as ready as before.
MOST_READ: Final = 50


def reconcile(
    run: Run,
    needs: Needs,
    observed: Observed,
    now: datetime,
    terms: RestartTerms = DEFAULT_TERMS,
) -> Outcome:
    """What to do about a run now. Pure; raises nothing that a Run of the API server can cause.

    Where `look_up` or `look_up_nodes` is not empty the outcome has nothing else: the pods and nodes
    they name are to be looked up, and the function called again.
    """
    if run.metadata.deletion_timestamp:
        # Owner references do the rest.
        return Outcome(run.status)
    if run.status.phase in ("Succeeded", "Failed"):
        return ended(run, observed, now)
    run = _not_ahead(run, now)
    if run.spec.serving:
        return serving.reconcile(run, needs, observed, now)
    facts = _facts(run, observed)
    missing, nodes = _to_look_up(run, facts), _to_read(observed)
    if missing or nodes:
        return Outcome(run.status, look_up=missing, look_up_nodes=nodes)
    counted = count(run, facts, observed, now, terms)
    end = verdict(run, facts, counted, now)
    if end:
        return _over(run, facts, counted, end, now)
    if run.spec.suspend:
        return _resting(run, facts, counted, observed, now, terms)
    return _going_on(run, facts, counted, needs, observed, now, terms)


def invalid(
    before: RunStatus, generation: int, problems: tuple[str, ...], now: datetime
) -> RunStatus:
    """The status of a Run that no pods can be made of. Its spec cannot change: it is over."""
    text = "; ".join(problems)
    end = Verdict("Failed", "InvalidRun", text if len(text) <= 4000 else f"{text[:4000]}…")
    return ended_status(before, generation, end, now)


def _not_ahead(run: Run, now: datetime) -> Run:
    """The run, with nothing in its status that is still to come.

    Else what a controller wrote whose clock was ahead, or was set back since, would hold the run
    for as long: its backoff, its incidents and its deadline would begin only then.
    """
    status = run.status
    latest = to_microsecond(now)

    def capped(moment: str) -> str:
        return latest if elapsed(moment, now) < 0 else moment

    changed: dict[str, object] = {}
    if status.start_time and elapsed(status.start_time, now) < 0:
        changed["start_time"] = to_second(now)
    recovering = {
        role: tuple(
            each.model_copy(update={"since": capped(each.since)}) for each in one.recovering
        )
        for role, one in status.replicas.items()
    }
    if any(entries != status.replicas[role].recovering for role, entries in recovering.items()):
        changed["replicas"] = {
            role: one.model_copy(update={"recovering": recovering[role]})
            for role, one in status.replicas.items()
        }
    found = tuple(
        each.model_copy(
            update={
                "began": capped(each.began),
                "ended": capped(each.ended) if each.ended else each.ended,
            }
        )
        for each in status.incidents
    )
    if found != status.incidents:
        changed["incidents"] = found
    if not changed:
        return run
    return run.model_copy(update={"status": status.model_copy(update=changed)})


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
            observed,
            run.spec.disruption_exit_codes or (),
        )
        for role, spec in run.spec.roles.items()
    }


def _to_look_up(run: Run, facts: Mapping[str, RoleFacts]) -> frozenset[str]:
    return frozenset(
        run.pod_name(role, index) for role, one in facts.items() for index in one.missing
    )


def _to_read(observed: Observed) -> frozenset[str]:
    """Nodes of pods that must be read live: not known at all, or shut down as was heard.

    Nothing is done upon a taint that may be out of date, and a node may be newer than the view.
    """
    if observed.nodes is None:
        return frozenset()
    known = observed.nodes
    bound = {pod.node for pod in observed.pods.values() if pod.node} - observed.nodes_read
    unknown = sorted(name for name in bound if name not in known)
    shut_down = sorted(
        name for name in bound if name in known and known[name].trouble == "NodeShutdown"
    )
    return frozenset([*shut_down, *unknown][: max(0, MOST_READ - len(observed.nodes_read))])


def _over(
    run: Run, facts: Mapping[str, RoleFacts], counted: Counted, end: Verdict, now: datetime
) -> Outcome:
    roles = {role: closed(one, counted.roles[role]) for role, one in facts.items()}
    status = _totals(run, roles, counted, now)
    whole = incidents.whole_again(counted.incidents, now)
    status = status.model_copy(update={"incidents": whole})
    status = ended_status(status, run.metadata.generation, end, now)
    return Outcome(status, announcements=announcements(run, status), after=0.0)


def _resting(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
) -> Outcome:
    """A suspended run: once the status says so its pods are deleted, and their ends not counted."""
    if run.status.phase != "Suspended":
        roles = {role: suspended(counted.roles[role]) for role in facts}
    else:
        roles = dict(counted.roles)
    status = at_rest(_totals(run, roles, counted, now), run.metadata.generation, now)
    actions: tuple[Action, ...] = (*superseded(facts), *opened(observed))
    return Outcome(
        status,
        actions,
        announcements=announcements(run, status, counted.down),
        after=incidents.deadline(counted.incidents, now, terms.incident_window),
    )


def _going_on(
    run: Run,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    needs: Needs,
    observed: Observed,
    now: datetime,
    terms: RestartTerms,
) -> Outcome:
    steps = onward(run.spec, facts, counted, needs, observed, now)
    status = _totals(run, counted.roles, counted, now)
    told_now = story(facts, counted, steps, observed, status.last_failure)
    if told_now.phase == "Running":
        whole = incidents.whole_again(status.incidents, now)
        status = status.model_copy(update={"incidents": whole})
    if (left := incidents.deadline(counted.incidents, now, terms.incident_window)) is not None:
        steps.wait(left)
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
    run: Run, roles: Mapping[str, RoleStatus], counted: Counted, now: datetime
) -> RunStatus:
    """The run's status with these roles, and what follows from them."""
    down = counted.down
    desired = sum(role.desired for role in roles.values())
    ready = sum(role.ready for role in roles.values())
    return run.status.model_copy(
        update={
            "observed_generation": run.metadata.generation,
            "replicas": dict(roles),
            "replicas_ready": f"{ready}/{desired}",
            "restarts": sum(role.restarts for role in roles.values()),
            "disruptions": sum(role.disruptions for role in roles.values()),
            "incidents": counted.incidents,
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
