"""What must hold of a decision, by what it was made of."""

from __future__ import annotations

from datetime import datetime

from tests.run.machine.books import indexes
from tests.run.machine.things import ENDED
from webhook.run import actions as act
from webhook.run.model import RoleStatus, Run
from webhook.run.observed import Needs, Observed

OVER = ("Succeeded", "Failed")
WINDOW = 90.0
# Of the frameworks that are tried: who has to run first.
AFTER: dict[tuple[str | None, str], tuple[str, ...]] = {
    ("mpi", "launcher"): ("worker",),
    ("dask", "driver"): ("scheduler",),
}


def check(run: Run, needs: Needs, observed: Observed, outcome: act.Outcome, now: datetime) -> None:
    """Raise AssertionError where a decision breaks a law."""
    assert not outcome.look_up, f"{sorted(outcome.look_up)} were looked up, and are asked for again"
    assert outcome.after is None or outcome.after >= 0
    if outcome.status == run.status:
        assert not outcome.announcements, f"nothing changed, and {outcome.announcements} is told"
    if run.metadata.deletion_timestamp:
        assert not outcome.actions, "something is done for a run that is being deleted"
    _order(needs, observed, outcome)
    _charges(run, observed, outcome, now)
    _elastic(run, observed, outcome)
    _illness(run, observed, outcome, now)
    _waits(run, observed, outcome)
    _deadline(run, outcome, now)
    if run.status.phase not in OVER and not run.metadata.deletion_timestamp:
        _looked_up(run, observed)
    pods = [each for each in outcome.actions if isinstance(each, act.CreatePod)]
    assert len(set(pods)) == len(pods), "a pod is created twice"
    for pod in pods:
        _creation(run, observed, pod, now)
        anew = outcome.status.replicas[pod.role].attempt
        assert pod.attempt == anew, f"{pod.role}-{pod.index} is created, and its role begins anew"


def _elastic(run: Run, observed: Observed, outcome: act.Outcome) -> None:
    """An elastic run does not end well while one works that worked when the first finished."""
    if not run.spec.elastic_from or run.status.ended or outcome.status.phase != "Succeeded":
        return
    if "master" in run.spec.roles and outcome.status.replicas["master"].succeeded_indexes:
        return
    pods = observed.pods.values()
    ends = [pod.exit.finished_at for pod in pods if pod.phase == "Succeeded" and pod.exit]
    for pod in pods:
        role = outcome.status.replicas[pod.role]
        counts = pod.attempt == role.attempt and pod.uid not in role.counted_uids
        works = counts and pod.phase == "Running" and not pod.deleted_at
        early = not ends or pod.running_since < min(ends)
        done = pod.index in indexes(role.succeeded_indexes)
        sick = (node := observed.node_health(pod)) and (node.sick or node.off)
        assert done or sick or not (works and early), f"{pod} still works"


def _charges(run: Run, observed: Observed, outcome: act.Outcome, now: datetime) -> None:
    """A failure is charged after its window, or where nothing may be interrupted.

    And never while the controller sees a disruption. Once charged, it stays so.
    """
    known = {(each.began, each.message): each for each in run.status.incidents}
    for each in outcome.status.incidents:
        before = known.get((each.began, each.message))
        if before is not None and before.cause != "Unknown":
            # Of two controllers each may count an end, and so make an entry that is alike.
            kept = each.cause in (before.cause, "Unknown")
            assert kept, f"the cause of {before} becomes {each}"
            continue
        if each.cause != "Failure":
            continue
        late = (now - datetime.fromisoformat(each.began)).total_seconds() >= WINDOW
        pods = [pod for pod in observed.pods.values() if pod.node]
        healths = [(pod, observed.node_health(pod)) for pod in pods]
        calm = not any(node is None or node.interruptible for _, node in healths)
        assert late or calm, f"{each} is charged before its window is over"
        for pod, node in healths:
            lost = node is not None and node.trouble and pod.phase not in ENDED
            assert not lost, f"{each} is charged, and {pod.name} is on {node}"


def _illness(run: Run, observed: Observed, outcome: act.Outcome, now: datetime) -> None:
    """Pods leave and avoid nodes that are ill for long enough, and no others."""
    last = outcome.status.last_failure
    new = last and last != run.status.last_failure and last.reason == "NodeUnhealthy"
    left = {last.node} if last and new else set()
    for each in outcome.actions:
        left |= set(each.avoid) if isinstance(each, act.CreatePod) else set()
    for name in left:
        node = (observed.nodes or {})[name]
        assert node.ill, f"{name} is well"
        lasts = (now - datetime.fromisoformat(node.ill_since)).total_seconds()
        assert lasts >= node.ill_after, f"{name} is ill for {lasts} s"


def _deadline(run: Run, outcome: act.Outcome, now: datetime) -> None:
    """Time goes on for a run that waits to start, and ends it."""
    start, most = run.status.start_time, run.spec.active_deadline_seconds
    stops = run.spec.suspend or run.metadata.deletion_timestamp or run.status.phase in OVER
    if run.spec.gang and start and most and not stops:
        lasts = (now - datetime.fromisoformat(start)).total_seconds()
        assert lasts < most or outcome.status.ended, f"it goes on after {lasts} s"


def _waits(run: Run, observed: Observed, outcome: act.Outcome) -> None:
    """A class is given up for a wait only if no author causes it."""
    counting = {
        (pod.role, capacity)
        for pod in observed.pods.values()
        for capacity, most in pod.fallback
        if most is not None and pod.unscheduled and (pod.name, capacity) not in observed.uncounted
    }
    for role, after in outcome.status.replicas.items():
        known = (run.status.replicas.get(role) or RoleStatus()).history
        before = {event for each in known for event in each.events}
        for event in {event for each in after.history for event in each.events} - before:
            roles = run.spec.roles if run.spec.restart_scope == "Run" else (role,)
            waited = event.waited_seconds is None or any(
                (each, event.capacity_class) in counting for each in roles
            )
            assert waited, f"{role}: {event} is no reason: {observed.uncounted}"


def _looked_up(run: Run, observed: Observed) -> None:
    """What was there when last seen, and is not in the cache, was asked for."""
    for name, role in run.status.replicas.items():
        expected = indexes(role.active_indexes) | indexes(role.creating_indexes)
        for index in expected - indexes(role.succeeded_indexes):
            pod = run.pod_name(name, index)
            known = pod in observed.pods or pod in observed.absent | observed.uncreated
            assert known, f"{pod} is missing, and was not looked up"


def _order(needs: Needs, observed: Observed, outcome: act.Outcome) -> None:
    """Keys in the status, then the ConfigMap, then the Service, then pods."""
    service, files = observed.service, observed.config_map
    keys = bool(outcome.status.ssh_secret)
    for action in outcome.actions:
        match action:
            case act.CreateKeys():
                assert not keys, "there are keys"
            case act.CreateConfigMap():
                files = True
            case act.CreateService():
                service = True
            case act.CreatePod():
                assert service, "a pod comes before the Service"
                assert files or not needs.config_map, "a pod comes before the ConfigMap"
                assert keys or not needs.keys, "a pod comes before the status names its keys"
            case act.CreateDeployment():
                assert service, "the Deployment comes before its Service"


def _creation(run: Run, observed: Observed, pod: act.CreatePod, now: datetime) -> None:
    what = f"the creation of {pod.role}-{pod.index}"
    role = run.status.replicas.get(pod.role) or RoleStatus()
    assert not run.spec.serving, f"{what}: the run has a Deployment"
    assert run.status.phase not in OVER, f"{what}: the run is over"
    assert not run.spec.suspend, f"{what}: the run is suspended"
    assert 0 <= pod.index < run.spec.roles[pod.role].count, f"{what}: there is no such replica"
    assert pod.attempt == role.attempt, f"{what}: attempt {pod.attempt} is not {role.attempt}"
    assert pod.index not in indexes(role.succeeded_indexes), f"{what}: it has finished"
    done = any(indexes(each.succeeded_indexes) for each in run.status.replicas.values())
    assert not (done and run.spec.elastic_from), f"{what}: its rendezvous is closed"
    name = run.pod_name(pod.role, pod.index)
    assert name not in observed.pods, f"{what}: its pod is there"
    assert pod.index not in indexes(role.active_indexes), f"{what}: that it went is not written"
    for entry in role.recovering:
        if pod.index in indexes(entry.indexes):
            wait = (entry.wait_milliseconds or 0) / 1000
            since = (now - datetime.fromisoformat(entry.since)).total_seconds()
            assert since >= wait, f"{what}: {since} s after it went down, and not {wait}"
    for first in AFTER.get((run.spec.framework, pod.role), ()):
        if first in run.spec.roles:
            _all_run(run, first, observed, what)


def _all_run(run: Run, first: str, observed: Observed, what: str) -> None:
    role = run.status.replicas.get(first) or RoleStatus()
    for index in range(run.spec.roles[first].count):
        pod = observed.pods.get(run.pod_name(first, index))
        runs = pod is not None and pod.phase == "Running" and pod.attempt == role.attempt
        ended = pod is not None and pod.phase == "Succeeded"
        done = index in indexes(role.succeeded_indexes)
        assert runs or ended or done, f"{what}: {first}-{index} does not run"
