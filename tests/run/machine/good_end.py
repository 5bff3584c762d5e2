"""A world that turns kind: from whatever state, every run that can end does."""

from __future__ import annotations

from collections.abc import Iterator

from tests.run.machine.books import indexes
from tests.run.machine.cluster import Cluster
from tests.run.machine.controller import Controller
from tests.run.machine.decisions import AFTER
from tests.run.machine.server import Server
from tests.run.machine.specs import finishing_role
from tests.run.machine.things import ENDED, Pod, RunThing, seconds
from webhook.backoff import GONE_AFTER
from webhook.run.gang import LOOK_SECONDS
from webhook.times import span_seconds

# Rounds of: the world goes one step, the controller does all that is due. Each backoff is a round.
ROUNDS = 500
# Within so many seconds the controller looks again whether an author still causes a wait.
AGAIN = 60.0
# Reconciles of one run without a change from outside, until it asks for nothing more.
SETTLED = 40
OVER = ("Succeeded", "Failed")


def turn_kind(server: Server, cluster: Cluster, controller: Controller) -> None:
    """Go on without faults until nothing moves, and look at what is left."""
    for name, run in list(server.runs.items()):
        if run.spec.get("suspend"):
            server.write_spec(name, suspend=False)
    finishing = {run.uid: finishing_role(run.spec) for run in server.runs.values()}
    for name in list(controller.works):
        controller.finish(name)
    for name in server.runs:
        controller.due.setdefault(name, server.now)
    for _ in range(ROUNDS):
        before = server.version
        cluster.all_is_well(finishing)
        settle(server, controller)
        if server.version != before:
            server.now += 1.0
        elif controller.due:
            server.now = max(server.now, min(controller.due.values()))
        else:
            break
    else:
        raise AssertionError(f"it never ends: {controller.due}, {_told(server)}")
    for run in server.runs.values():
        _at_the_end(server, run)
    owners = {run.uid for run in server.runs.values()}
    for kind in ("pods", "services", "configmaps", "secrets", "deployments", "workloads"):
        for thing in server.stored[kind].values():
            assert thing.run_uid in owners, f"{kind}/{thing.name} outlives its Run"


def settle(server: Server, controller: Controller) -> None:
    """Everything that happened is heard of, and everything that is due is done."""
    controller.hear_all()
    for _ in range(SETTLED):
        ready = controller.ready()
        if not ready:
            for name, run in server.runs.items():
                if run.going is None and name not in controller.works:
                    _services_are_open(server, run, controller.due.get(name))
                    _quota_is_back(server, run)
                    _woken_in_time(server, run, controller)
            return
        for name in ready:
            controller.finish(name)
        controller.hear_all()
    raise AssertionError(f"the controller never rests: {controller.due}, {_told(server)}")


def _services_are_open(server: Server, run: RunThing, due: float | None) -> None:
    """Where nothing is left to do, replicas find each other: no Service is closed any more."""
    service = server.stored["services"].get(run.name)
    if server.answers_lost is not None or (due is not None and due <= server.now + 1):
        # Its pods are tried again and again, or once more.
        return
    if service and service.run_uid == run.uid and run.status.get("phase") not in OVER:
        assert not service.closed, f"the Service of {run.name} stays closed"


def _quota_is_back(server: Server, run: RunThing) -> None:
    """Where nothing is left to do, Kueue has what it wants back, once the pods are gone."""
    found = server.stored["workloads"].get(run.name)
    if found is None or found.run_uid != run.uid or found.has("Finished"):
        return
    if found.has("Evicted") and found.has("QuotaReserved"):
        left = [pod for pod in server.pods.values() if pod.run_uid == run.uid and not pod.over]
        assert left, f"{run.name} keeps its quota: {found}"


def _woken_in_time(server: Server, run: RunThing, controller: Controller) -> None:
    """Where nothing is left to do but time matters, the controller looks again in time.

    What has no answer is tried again within a second, and all else with it.
    """
    if run.status.get("phase") in OVER or server.answers_lost is not None:
        return
    due = controller.due.get(run.name)
    times = [
        controller.caches.gone_since(pod.node) + GONE_AFTER
        for pod in server.pods.values()
        if pod.run_uid == run.uid and pod.role and not pod.over
        if pod.node and pod.node not in server.nodes
        # Of one that is counted nothing is due but the end of its replica's pause.
        if pod.uid not in role_counted(run, pod)
    ]
    times = [at for at in times if at > server.now]
    if run.status.get("phase") != "Suspended" and not run.spec.get("suspend"):
        times += _times(server, run)
    assert not times or (due is not None and due <= min(times) + 0.001), f"late: {due}, {times}"


def _times(server: Server, run: RunThing) -> list[float]:
    """When something is due of a run that goes on."""
    times = []
    if "activeDeadlineSeconds" in run.spec and "startTime" in run.status:
        times.append(seconds(run.status["startTime"]) + run.spec["activeDeadlineSeconds"])
    times += [
        server.now + AGAIN if server.excluded else pod.unscheduled + most
        for pod in server.pods.values()
        if pod.run_uid == run.uid and pod.unscheduled is not None and not pod.node
        for _, most in pod.fallback
        if most is not None
        and pod.going is None
        and pod.uid not in role_counted(run, pod)
        and pod.unscheduled + most > server.now + 1
    ]
    times += [at for at in _starts(server, run) if at > server.now + 0.001]
    # Texts of times have microseconds.
    if (run.status.get("gang") or {}).get("state") != "Waiting":
        times += [at for at in _backoffs(server, run) if at > server.now + 0.001]
    return times


def role_counted(run: RunThing, pod: Pod) -> list[str]:
    found: list[str] = run.status.get("replicas", {}).get(pod.role, {}).get("countedUIDs", [])
    return found


def _starts(server: Server, run: RunThing) -> Iterator[float]:
    """When a start gives way, or begins again."""
    gang = run.status.get("gang") or {}
    if gang.get("state") == "Waiting" and "notBefore" in gang:
        yield seconds(gang["notBefore"])
    if gang.get("state") == "Starting":
        within = 1200.0 if server.on_demand else span_seconds(run.spec["gang"]["startWithin"])
        # Nothing tells it when nodes are not made on demand any more.
        look = server.now + LOOK_SECONDS if server.was_on_demand else 0.0
        yield max(look, seconds(gang["since"]) + within)


def _backoffs(server: Server, run: RunThing) -> Iterator[float]:
    """When replicas that went down may start again, of those that wait for nothing else."""
    roles = run.status.get("replicas", {}).values()
    if "elastic" in (run.spec.get("pytorch") or {}) and any(r["succeeded"] for r in roles):
        # Its rendezvous is closed.
        return
    for name, role in run.status.get("replicas", {}).items():
        if (run.spec.get("framework"), name) in AFTER:
            continue
        for entry in role.get("recovering", ()):
            at = seconds(entry["since"]) + entry["waitMilliseconds"] / 1000
            for index in indexes(entry["indexes"]) - indexes(role.get("succeededIndexes", "")):
                pod = server.pods.get(f"{run.name}-{name}-{index}")
                if pod is None or (pod.uid in role.get("countedUIDs", ()) and pod.going is None):
                    yield at


def _at_the_end(server: Server, run: RunThing) -> None:
    phase = run.status.get("phase")
    if run.spec.get("kind") == "notebook" and "maxAgeSeconds" not in run.spec:
        assert phase == "Running", f"{run.name} is {phase}"
        return
    assert phase in OVER, f"{run.name} is {phase} for ever: {run.status}"
    assert "ttlSecondsAfterFinished" not in run.spec, f"{run.name} has outlived its time"
    pods = [pod for pod in server.pods.values() if pod.run_uid == run.uid]
    policy = run.spec["cleanPodPolicy"]
    workload = server.stored["workloads"].get(run.name)
    assert workload is None or workload.has("Finished"), f"{run.name} is over, and holds its quota"
    if policy == "All":
        assert not pods, f"{[pod.name for pod in pods]} are left"
    if policy == "Running":
        left = [pod.name for pod in pods if pod.phase not in ENDED]
        assert not left, f"{left} still run"
    if run.spec.get("kind") == "notebook" and policy != "None":
        assert run.name not in server.stored["deployments"], "the Deployment is left"


def _told(server: Server) -> list[str]:
    return [f"{run.name}: {run.status.get('phase')} {run.status}" for run in server.runs.values()]
