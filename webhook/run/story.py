"""What a run that goes on says of itself: phase, message and conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.crd.conditions import Said
from webhook.run import backoff, conditions, hindrance, incidents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.run.counting import Counted
    from webhook.run.facts import RoleFacts
    from webhook.run.hindrance import Hindrance
    from webhook.run.model import LastFailure
    from webhook.run.model.status import Phase
    from webhook.run.observed import Observed
    from webhook.run.steps import Steps


@dataclass(frozen=True, slots=True)
class Story:
    """Phase, message and conditions; and what hinders the run, if anything does."""

    phase: Phase
    message: str
    said: tuple[Said, ...]
    hindrance: Hindrance | None


def story(
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    steps: Steps,
    observed: Observed,
    last_failure: LastFailure | None,
) -> Story:
    """Tell it of the run as it is now."""
    alive = [pod for one in facts.values() for pod in one.alive.values()]
    desired = sum(one.spec.count for one in facts.values())
    finished = sum(len(one.succeeded) for one in facts.values())
    found = [each for one in facts.values() for each in one.lost.values()]
    away = {each.pod.uid for each in found}
    running = sum(pod.phase == "Running" and pod.uid not in away for pod in alive)
    ready = sum(pod.ready and pod.uid not in away for pod in alive)
    needed = desired - finished

    lost = hindrance.lost(found, desired)
    refused = hindrance.refused(observed.refusals)
    unscheduled = hindrance.unscheduled(alive, desired)
    waiting = hindrance.waiting(alive, desired)
    going = hindrance.going(facts)
    phase = _phase(facts, counted, needed)
    keeps = lost or refused or unscheduled or waiting or going
    if keeps:
        message = keeps.message
    elif phase == "Running":
        message = f"{running} of {desired} replicas run"
        message += f", {finished} have finished" if finished else ""
    elif phase == "Restarting" and last_failure:
        why = f"{last_failure.replica} went down ({last_failure.reason})"
        message = f"{running} of {desired} replicas run; {why}"
    else:
        message = f"{running} of {desired} replicas run"
    if uncharged := incidents.undecided(counted.incidents):
        message += f"; not charged yet, for a disruption may be the cause: failures {uncharged}"
    created = _created(refused or going, steps, len(alive), needed)
    said = [created]
    if alive:
        said.append(_scheduled(unscheduled, all(pod.node for pod in alive)))
    if needed and ready == needed:
        said.append(Said(conditions.READY, "True", "AllReady", f"{ready} replicas are ready"))
    else:
        stuck = lost or waiting
        reason = stuck.reason if stuck else "NotReady"
        text = stuck.message if stuck else f"{ready} of {needed} replicas are ready"
        said.append(Said(conditions.READY, "False", reason, text))
    return Story(phase, message, tuple(said), keeps)


def _phase(facts: Mapping[str, RoleFacts], counted: Counted, needed: int) -> Phase:
    runs = begun = 0
    for role, one in facts.items():
        down = set(backoff.by_index(counted.roles[role].recovering))
        for index in one.unfinished:
            pod = one.alive.get(index)
            if pod is not None and pod.phase == "Running" and index not in one.lost:
                runs += 1
                begun += 1
            elif index in down or index in one.lost:
                return "Restarting"
            elif pod is not None and pod.node:
                begun += 1
        begun += len(one.succeeded)
    if needed and runs == needed:
        return "Running"
    return "Starting" if begun else "Pending"


def _created(keeps: Hindrance | None, steps: Steps, alive: int, needed: int) -> Said:
    if keeps is None and alive == needed:
        return Said(conditions.CREATED, "True", "AllCreated", f"{alive} pods are there")
    so_far = f"{alive} of {needed} pods are there"
    if keeps:
        return Said(conditions.CREATED, "False", keeps.reason, f"{so_far}; {keeps.message}")
    if steps.held:
        role, first = next(iter(steps.held.items()))
        text = f"{so_far}; {role} waits until every {' and '.join(first)} runs"
        return Said(conditions.CREATED, "False", "WaitingForRoles", text)
    if steps.waiting:
        text = f"{so_far}; {steps.waiting} wait before they start again"
        return Said(conditions.CREATED, "False", "BackingOff", text)
    return Said(conditions.CREATED, "False", "Creating", so_far)


def _scheduled(keeps: Hindrance | None, all_placed: bool) -> Said:
    if keeps:
        return Said(conditions.SCHEDULED, "False", keeps.reason, keeps.message)
    if all_placed:
        return Said(conditions.SCHEDULED, "True", "AllScheduled", "every pod has a node")
    return Said(conditions.SCHEDULED, "False", "Scheduling", "some pods have no node yet")
