"""What a run reports: its phase, message, conditions and Events, and what keeps it from running."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.crd import conditions as crd_conditions
from webhook.crd.conditions import ConditionUpdate
from webhook.run import incidents
from webhook.run.facts import is_finishing
from webhook.run.history import first_to_give_up
from webhook.run.incidents import describe_trouble
from webhook.run.model.status import READY, UNDERSTOOD
from webhook.run.pod_notes import describe_gates
from webhook.run.restarts import entries_by_index
from webhook.run.room import BY_REQUESTS
from webhook.shortening import cut
from webhook.times import elapsed, format_span, parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from webhook.crd.conditions import Condition
    from webhook.run.facts import PodOnLostNode, RoleFacts
    from webhook.run.model import Run, RunSpec, RunStatus
    from webhook.run.model.status import Phase
    from webhook.run.observed import NodeHealth, NodeTrouble, Observed, OwnedPod, Refusal
    from webhook.run.restarts import Counted
    from webhook.run.steps import Steps
    from webhook.run.verdict import Verdict

CREATED: Final = "Created"
SCHEDULED: Final = "Scheduled"
SUSPENDED: Final = "Suspended"
DISRUPTING: Final = "Disrupting"
# The run starts all at once, and may not begin yet.
WAITS_TO_START: Final = "WaitsToStart"
# Nodes that would be given up are not, as so many of their class are silent.
TOO_MANY_SILENT: Final = "TooManySilent"
# Conditions that should be True; all others should not.
SHOULD_BE_TRUE: Final = (CREATED, SCHEDULED, READY, UNDERSTOOD)
# Conditions about pods to come. A suspended or ended run does not have them.
_UNDER_WAY: Final = (CREATED, SCHEDULED, DISRUPTING)
# The number of different reasons in a message.
_SHOWN: Final = 3
_MESSAGE_MAX_CHARACTERS: Final = 500
# Waiting reasons that are normal.
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing", ""})

# The advice for pods on a failed node; conditions that need an administrator come first.
_CURES: Final[Mapping[NodeTrouble, str]] = {
    "NodeNotReady": "its containers may still run, so the run waits until the node is back "
    f"or the pods are gone; if the machine is off: kubectl taint node {{node}} "
    f"{names.TAINT_OUT_OF_SERVICE}=nodeshutdown:NoExecute, or kubectl delete node {{node}}",
    "NodeGone": "unless it comes back, the run replaces its pods in some seconds",
    "NodeShutdown": "its pods are deleted now, and the run replaces them",
}


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The current state of the run. hindrance: what prevents it from running, or None.

    whole: all replicas run that are needed.
    """

    phase: Phase
    message: str
    conditions: tuple[ConditionUpdate, ...]
    hindrance: Hindrance | None
    whole: bool


def describe_progress(
    spec: RunSpec,
    facts: Mapping[str, RoleFacts],
    counted: Counted,
    steps: Steps,
    observed: Observed,
    before: RunStatus,
) -> RunProgress:
    """Return phase, message and conditions of the run; `before` has its latest failure."""
    replicas = _count_replicas(spec, facts)
    hindrances = _find_hindrances(facts, replicas, observed)
    phase = _phase(facts, counted, replicas)
    message = _message(phase, replicas, hindrances, before)
    if uncharged := incidents.count_undecided(counted.incidents):
        message += f"; not charged yet, because a disruption may be the cause: failures {uncharged}"
    updates = [_created(hindrances, steps, len(replicas.pods), replicas.needed)]
    if replicas.pods:
        placed = all(pod.node for pod in replicas.pods)
        updates.append(_scheduled(hindrances.unscheduled, placed))
    updates.append(_ready(replicas, hindrances))
    if leaving := _on_leaving_nodes(replicas.pods, observed):
        updates.append(ConditionUpdate(DISRUPTING, "True", "NodeLeaving", leaving))
        message += f"; {leaving}"
    elif any(condition.type == DISRUPTING for condition in before.conditions):
        updates.append(ConditionUpdate(DISRUPTING, "False", "NodesStay", "no node is leaving"))
    message += _ignored_illness(observed)
    return RunProgress(
        phase, message, tuple(updates), hindrances.first, replicas.running == replicas.needed
    )


class _Replicas(NamedTuple):
    """The live pods of a run, and how many replicas are in each state.

    Pods on lost nodes are live, but neither running nor ready.

    needed: those that have not finished; once one of an elastic run has, those that work on.
    least: an elastic run goes on with so many and its leader, and with any once one has finished;
    None: with all. leads: the leader runs.
    """

    pods: Sequence[OwnedPod]
    desired: int
    finished: int
    running: int
    ready: int
    needed: int
    least: int | None
    leads: bool

    @property
    def is_finishing(self) -> bool:
        """Whether a replica of an elastic run has finished: no other is created."""
        return self.least is not None and self.finished > 0

    @property
    def goes_on(self) -> bool:
        """Whether an elastic run works with the replicas that run."""
        if self.least is None or not self.running:
            return False
        return self.is_finishing or (self.leads and self.running >= self.least)


def _count_replicas(spec: RunSpec, facts: Mapping[str, RoleFacts]) -> _Replicas:
    roles = facts.values()
    pods = [pod for role in roles for pod in role.alive.values()]
    unavailable = {lost.pod.uid for role in roles for lost in role.lost.values()}
    desired = sum(role.spec.count for role in roles)
    finished = sum(len(role.succeeded) for role in roles)
    running = [pod for pod in pods if pod.phase == "Running" and pod.uid not in unavailable]
    first = next(iter(facts))
    return _Replicas(
        pods,
        desired=desired,
        finished=finished,
        running=len(running),
        ready=sum(pod.ready and pod.uid not in unavailable for pod in pods),
        needed=len(pods) if is_finishing(spec, facts) else desired - finished,
        least=spec.elastic_from,
        leads=any((pod.role, pod.index) == (first, 0) for pod in running),
    )


class _Hindrances(NamedTuple):
    """What prevents a run from running, in the order in which it is reported."""

    lost: Hindrance | None
    refused: Hindrance | None
    unscheduled: Hindrance | None
    waiting: Hindrance | None
    terminating: Hindrance | None

    @property
    def first(self) -> Hindrance | None:
        return next(filter(None, self), None)


def _find_hindrances(
    facts: Mapping[str, RoleFacts], replicas: _Replicas, observed: Observed
) -> _Hindrances:
    pods, desired = replicas.pods, replicas.desired
    lost_pods = [
        lost
        for role in facts.values()
        for index, lost in role.lost.items()
        # Nothing replaces the others once a replica of an elastic run has finished.
        if index in role.alive or not replicas.is_finishing
    ]
    unscheduled = unschedulable(pods, desired)
    if unscheduled:
        prospects = _room(replicas, observed) + _prospects_of_waiting(facts, observed)
        unscheduled = unscheduled._replace(message=unscheduled.message + prospects)
    return _Hindrances(
        on_lost_nodes(lost_pods, desired),
        refused_creations(observed.refusals),
        unscheduled,
        waiting_containers(pods, desired),
        terminating(facts),
    )


def _room(replicas: _Replicas, observed: Observed) -> str:
    """Return how many replicas can have a node, if not all that are needed can."""
    room = observed.room
    if room is None or room.limit is None or room.most >= replicas.needed:
        return ""
    bound = sum(bool(pod.node) for pod in replicas.pods)
    return (
        f"; {bound} of {replicas.needed} replicas have a node, and {BY_REQUESTS} "
        f"{room.most} can on the nodes that there are: {room.limit.text}"
    )


def _prospects_of_waiting(facts: Mapping[str, RoleFacts], observed: Observed) -> str:
    """Return the end of a message about unscheduled pods: what was reported, and what follows."""
    text = f"; {observed.reported}" if observed.reported else ""
    if end := first_to_give_up(facts, observed):
        text += f"; if that lasts until {to_second(end[0])}, class {end[1]} is given up"
    if observed.uncounted:
        (name, capacity), why = min(observed.uncounted.items())
        others = len({pod for pod, _ in observed.uncounted}) - 1
        pods = f"{name} and {others} more" if others else name
        text += f"; the wait of {pods} is no reason to give up class {capacity}: {why}"
    return text


def _message(phase: Phase, replicas: _Replicas, hindrances: _Hindrances, before: RunStatus) -> str:
    message = f"{replicas.running} of {replicas.desired} replicas run"
    if replicas.goes_on and not replicas.finished and replicas.running < replicas.needed:
        message += f", elastic from {replicas.least}"
    if hindrance := hindrances.first:
        # What some pods wait for says nothing of those that run.
        is_about_some = replicas.goes_on or hindrance in hindrances[2:4]
        if replicas.running and is_about_some:
            return f"{message}; {hindrance.message}"
        return hindrance.message
    if phase == "Running" and replicas.finished:
        return f"{message}, {replicas.finished} have finished"
    if phase == "Restarting" and (failure := before.last_failure):
        return f"{message}; {failure.replica} went down ({failure.reason})"
    return message


def _ready(replicas: _Replicas, hindrances: _Hindrances) -> ConditionUpdate:
    if replicas.needed and replicas.ready == replicas.needed:
        return ConditionUpdate(READY, "True", "AllReady", f"{replicas.ready} replicas are ready")
    if stuck := hindrances.lost or hindrances.waiting:
        return ConditionUpdate(READY, "False", stuck.reason, stuck.message)
    text = f"{replicas.ready} of {replicas.needed} replicas are ready"
    return ConditionUpdate(READY, "False", "NotReady", text)


def _phase(facts: Mapping[str, RoleFacts], counted: Counted, replicas: _Replicas) -> Phase:
    if replicas.goes_on:
        return "Running"
    runs = begun = 0
    for role, role_facts in facts.items():
        down = set(entries_by_index(counted.roles[role].recovering))
        for index in role_facts.unfinished:
            pod, lost = role_facts.alive.get(index), role_facts.lost.get(index)
            # The programs on a node that is not ready may run on, and nothing replaces them yet.
            going = lost is not None and lost.node.trouble != "NodeNotReady"
            if pod is not None and pod.phase == "Running" and not going:
                runs += 1
                begun += 1
            elif index in down or going:
                return "Restarting"
            elif pod is not None and pod.node:
                begun += 1
        begun += len(role_facts.succeeded)
    if replicas.needed and runs == replicas.needed:
        return "Running"
    return "Starting" if begun else "Pending"


def _created(hindrances: _Hindrances, steps: Steps, alive: int, needed: int) -> ConditionUpdate:
    hindrance = hindrances.refused or hindrances.terminating
    if hindrance is None and alive == needed:
        return ConditionUpdate(CREATED, "True", "AllCreated", f"{alive} pods are there")
    so_far = f"{alive} of {needed} pods are there"
    if hindrance:
        return ConditionUpdate(CREATED, "False", hindrance.reason, f"{so_far}; {hindrance.message}")
    if steps.held:
        role, first = next(iter(steps.held.items()))
        text = f"{so_far}; {role} waits until every {' and '.join(first)} runs"
        return ConditionUpdate(CREATED, "False", "WaitingForRoles", text)
    if steps.waiting:
        text = f"{so_far}; {steps.waiting} wait before they start again"
        return ConditionUpdate(CREATED, "False", "BackingOff", text)
    return ConditionUpdate(CREATED, "False", "Creating", so_far)


def _scheduled(hindrance: Hindrance | None, all_placed: bool) -> ConditionUpdate:
    if hindrance:
        return ConditionUpdate(SCHEDULED, "False", hindrance.reason, hindrance.message)
    if all_placed:
        return ConditionUpdate(SCHEDULED, "True", "AllScheduled", "every pod has a node")
    return ConditionUpdate(SCHEDULED, "False", "Scheduling", "some pods have no node yet")


class Hindrance(NamedTuple):
    """What prevents pods from running: a reason for machines, a message for users."""

    reason: str
    message: str


def refused_creations(refusals: Sequence[Refusal]) -> Hindrance | None:
    """Return the creations that the API server rejected, with its message."""
    if not refusals:
        return None
    first = refusals[0]
    more = f"; and {len(refusals) - 1} more" if len(refusals) > 1 else ""
    return Hindrance(
        first.reason, cut(f"{first.name}: {first.message}", _MESSAGE_MAX_CHARACTERS) + more
    )


def unschedulable(pods: Sequence[OwnedPod], desired: int) -> Hindrance | None:
    """Return the pods that the scheduler cannot place: "3 of 11 pods: 0/12 nodes match ..."."""
    # The scheduler's further sentences are about preemption, which is not actionable here.
    words = Counter(pod.unscheduled.partition(". ")[0] for pod in pods if pod.unscheduled)
    if words:
        return Hindrance("Unschedulable", _group_reasons(words, desired))
    if held := [pod for pod in pods if pod.gates]:
        text = _group_reasons(Counter(map(describe_gates, held)), desired)
        if any(names.KUEUE_ADMISSION_GATE in pod.gates for pod in held):
            text += "; `fairlead doctor` says how Kueue leaves the pods of runs alone"
        return Hindrance("SchedulingGated", text)
    return None


def waiting_containers(pods: Iterable[OwnedPod], desired: int) -> Hindrance | None:
    """Return the scheduled pods whose containers cannot start."""
    waits = [pod.waiting for pod in pods if pod.waiting and pod.waiting[0] not in _USUAL]
    if not waits:
        return None
    words = Counter(f"{reason}: {message}" if message else reason for reason, message in waits)
    (reason, _), _ = Counter(waits).most_common(1)[0]
    return Hindrance(reason, _group_reasons(words, desired))


def on_lost_nodes(lost_pods: Iterable[PodOnLostNode], desired: int) -> Hindrance | None:
    """Return the pods on nodes that are not ready, shut down or deleted, with advice."""
    by_trouble: dict[NodeTrouble, list[PodOnLostNode]] = {}
    for lost_pod in lost_pods:
        by_trouble.setdefault(lost_pod.node.trouble, []).append(lost_pod)
    for trouble, cure in _CURES.items():
        if not (group := by_trouble.pop(trouble, [])):
            continue
        pod, node, _ = min(group, key=lambda lost_pod: lost_pod.pod.name)
        others = len(group) - 1 + sum(map(len, by_trouble.values()))
        more = f" (and {others} more)" if others else ""
        share = f"{len(group)} of {desired} pods"
        text = f"{share}: node {node.name} of {pod.name}{more} {describe_trouble(node)}; "
        reason: str = trouble
        if end := _lost_at(node):
            cure = f"if it is not back by {end}, its pods without a volume claim are replaced"
        elif trouble == "NodeNotReady" and node.lost_after and math.isinf(node.lost_after):
            reason = TOO_MANY_SILENT
            held = f"while more than a fifth of class {node.many_of} is silent"
            cure = f"its pods are not replaced {held}; {cure}"
        return Hindrance(reason, text + cure.format(node=node.name))
    return None


def _lost_at(node: NodeHealth) -> str:
    """Return when a silent node is given up, if it is not back by then; empty if it is not."""
    if node.trouble != "NodeNotReady" or node.ready != "Unknown" or not node.since:
        return ""
    if not node.lost_after or math.isinf(node.lost_after):
        return ""
    return to_second(parse_time(node.since) + timedelta(seconds=node.lost_after))


def _on_leaving_nodes(alive: Sequence[OwnedPod], observed: Observed) -> str:
    """Return which pods will be lost with their nodes; empty if none is announced to go."""
    nodes: dict[str, list[str]] = {}
    for pod in alive:
        health = observed.node_health(pod)
        if health and health.leaving and not health.trouble:
            nodes.setdefault(pod.node, []).append(pod.name)
    if not nodes:
        return ""
    (node, (first, *_)), *others = sorted(nodes.items())
    count = sum(map(len, nodes.values()))
    more = f" (and {len(others)} more)" if others else ""
    return (
        f"{count} of {len(alive)} pods will be lost: node {node} of {first}{more} is cordoned, or "
        "announced to be taken away"
    )


def _ignored_illness(observed: Observed) -> str:
    """Return the end of a message about the first node that is ill and keeps its pods."""
    nodes = (observed.nodes or {}).values()
    node = min((node for node in nodes if math.isinf(node.ill_after)), default=None)
    if node is None:
        return ""
    return (
        f"; node {node.name} is unhealthy ({node.ill}), and keeps its pods while more than a "
        f"fifth of class {node.many_of} is unhealthy or silent"
    )


def terminating(facts: Mapping[str, RoleFacts]) -> Hindrance | None:
    """Return the pods that still block a name that is needed again, or what restarts with them."""
    pods = [
        pod
        for role_facts in facts.values()
        for pod in (*role_facts.stale.values(), *role_facts.ended.values())
        if pod.deleted_at
    ]
    if not pods:
        return None
    return Hindrance("Terminating", f"waiting until {_name_first(pods)} gone")


def pods_left(facts: Mapping[str, RoleFacts]) -> str:
    """Return which programs of a suspended run may still run, and why; empty if none."""
    if lost := [lost_pod for role_facts in facts.values() for lost_pod in role_facts.lost.values()]:
        pod, node, _ = min(lost, key=lambda lost_pod: lost_pod.pod.name)
        more = f", and those of {len(lost) - 1} more" if len(lost) > 1 else ""
        why = f"its node {node.name} {describe_trouble(node)}"
        if (end := _lost_at(node)) and not pod.has_claim:
            why += f"; if it is not back by {end}, it is given up, and the program counts as gone"
        return f"the program of {pod.name} may still run{more}: {why}"
    pods = [
        pod for role_facts in facts.values() for pod in role_facts.pods.values() if not pod.ended
    ]
    return f"waiting until {_name_first(pods)} gone" if pods else ""


def _name_first(pods: Sequence[OwnedPod]) -> str:
    """Return the subject and the verb of a sentence about pods."""
    first = min(pods, key=lambda pod: pod.name)
    where = f" on node {first.node}" if first.node else ""
    more = f" and {len(pods) - 1} more are" if len(pods) > 1 else " is"
    return f"{first.name}{where}{more}"


def _group_reasons(words: Counter[str], desired: int) -> str:
    groups = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    text = "; ".join(
        f"{count} of {desired} pods: {cut(why, _MESSAGE_MAX_CHARACTERS)}"
        for why, count in groups[:_SHOWN]
    )
    rest = sum(count for _, count in groups[_SHOWN:])
    return f"{text}; and {rest} more" if rest else text


def active_status(
    run: Run,
    status: RunStatus,
    phase: Phase,
    message: str,
    updates: tuple[ConditionUpdate, ...],
    now: datetime,
) -> RunStatus:
    """Return the status of a run that is neither suspended nor over."""
    if run.status.phase == "Suspended":
        updates = (*updates, ConditionUpdate(SUSPENDED, "False", "Resumed", "the run goes on"))
    return status.model_copy(
        update={
            "phase": phase,
            "message": message,
            "start_time": run.status.start_time or to_second(now),
            "conditions": update_conditions(
                run.status.conditions, updates, run.metadata.generation, now
            ),
        }
    )


def waiting_conditions(message: str) -> tuple[ConditionUpdate, ...]:
    """Return the conditions of a run that waits to start all at once."""
    return tuple(
        ConditionUpdate(kind, "False", WAITS_TO_START, message)
        for kind in (CREATED, SCHEDULED, READY)
    )


def ended_status(status: RunStatus, generation: int, end: Verdict, now: datetime) -> RunStatus:
    """Return the status of a run that has just ended."""
    began = status.start_time or to_second(now)
    updates = (
        ConditionUpdate(end.phase, "True", end.reason, end.message),
        ConditionUpdate(READY, "False", "Ended", "the run is over"),
    )
    return status.model_copy(
        update={
            "phase": end.phase,
            "message": end.message,
            "observed_generation": generation,
            "start_time": began,
            "completion_time": to_second(now),
            "duration": format_span(elapsed(began, now)),
            "conditions": update_conditions(
                without_pod_conditions(status.conditions), updates, generation, now
            ),
        }
    )


def suspended_status(
    status: RunStatus,
    generation: int,
    now: datetime,
    reason: str = "",
    text: str = "",
    left: str = "",
) -> RunStatus:
    """Return the status of a suspended run. Its start time is reset when it is resumed.

    reason, text: what suspends it, if not its owner. left: which programs still run.
    """
    reason = reason or "Suspended"
    text = text or "the run is suspended: set suspend to false to resume it"
    text += f"; {left}" if left else ""
    updates = (
        ConditionUpdate(SUSPENDED, "True", reason, text),
        ConditionUpdate(READY, "False", reason, text),
    )
    return status.model_copy(
        update={
            "phase": "Suspended",
            "message": text,
            "start_time": None,
            "conditions": update_conditions(
                without_pod_conditions(status.conditions), updates, generation, now
            ),
        }
    )


def update_conditions(
    before: Iterable[Condition], updates: Iterable[ConditionUpdate], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Return the updated conditions. A type without an update stays as it is."""
    return crd_conditions.update_conditions(before, updates, generation, to_second(now))


def without_pod_conditions(before: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the conditions that still apply when no pods will be created."""
    return tuple(condition for condition in before if condition.type not in _UNDER_WAY)
