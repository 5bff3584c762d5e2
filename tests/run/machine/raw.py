"""The model's objects as the API server would send them, and as the controller keeps them."""

from __future__ import annotations

import json
from functools import lru_cache

from tests.run.machine.things import (
    GRACE,
    Json,
    Node,
    Pod,
    RunThing,
    Thing,
    WorkloadThing,
    stamp,
)
from webhook import names
from webhook.run import observation
from webhook.run.idle import is_idle, reduce_run
from webhook.run.model import Run
from webhook.run.observed import NodeHealth, OwnedDeployment, OwnedPod
from webhook.run.queue_state import StoredWorkload
from webhook.run.queue_workload import read_workload

ILL_AFTER = 60.0
CLASSES = {"node-a": "spot", "node-b": "steady"}

_runs: dict[int, tuple[RunThing, Run]] = {}


def run(thing: RunThing) -> Run:
    known = _runs.get(id(thing))
    if known is None or known[0] is not thing:
        if len(_runs) > 500:
            _runs.clear()
        known = _runs[id(thing)] = (thing, Run.model_validate(_run(thing)))
    return known[1]


def reduced_run(thing: RunThing) -> Run | None:
    """The Run as the controller keeps it while it is idle; None if it is not."""
    whole = _run(thing)
    if not is_idle(whole, queued="queue" in thing.spec):
        return None
    return Run.model_validate(reduce_run(whole))


@lru_cache(maxsize=4096)
def pod(thing: Pod) -> OwnedPod:
    """A pod of a Run."""
    kept = observation.pod(_pod(thing))
    assert kept is not None
    return kept


@lru_cache(maxsize=1024)
def deployment(thing: Thing) -> OwnedDeployment:
    """A Deployment of a Run."""
    available = {"availableReplicas": thing.available, "readyReplicas": thing.available}
    metadata = _metadata(thing.name, thing.uid, thing.name, thing.run_uid)
    kept = observation.deployment(
        {
            "metadata": {**metadata, "generation": thing.generation},
            "spec": {"replicas": thing.replicas},
            "status": {"observedGeneration": thing.observed, **available},
        }
    )
    assert kept is not None
    return kept


def workload(thing: WorkloadThing, run_name: str) -> StoredWorkload:
    """A Workload of a Run."""
    metadata = _metadata(thing.name, thing.uid, run_name, thing.run_uid)
    conditions = [
        {
            "type": kind,
            "status": "True" if true else "False",
            "reason": reason,
            "lastTransitionTime": stamp(thing.since[kind]),
        }
        for kind, (true, reason) in thing.conditions.items()
    ]
    kept = read_workload(
        {
            "metadata": {**metadata, "namespace": "lab", "resourceVersion": str(thing.version)},
            "spec": {"queueName": thing.queue},
            "status": {"conditions": conditions},
        }
    )
    assert kept is not None
    return kept


def node(name: str, thing: Node | float) -> NodeHealth:
    """A node, or since when it is gone."""
    if isinstance(thing, float):
        return NodeHealth(name, since=stamp(thing), capacity_class=CLASSES[name])
    return NodeHealth(
        name,
        thing.uid,
        stamp(thing.created),
        thing.ready,
        "" if thing.since is None else stamp(thing.since),
        thing.shut_down,
        thing.interruptible,
        CLASSES[name],
        ill="" if thing.ill is None else "GpuHealthy=False",
        ill_since="" if thing.ill is None else stamp(thing.ill),
        ill_after=ILL_AFTER,
    )


def _metadata(name: str, uid: str, run_name: str, run_uid: str) -> Json:
    reference = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Run",
        "name": run_name,
        "uid": run_uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {"name": name, "uid": uid, "ownerReferences": [reference]}


def _run(thing: RunThing) -> Json:
    metadata = {
        "name": thing.name,
        "namespace": "lab",
        "uid": thing.uid,
        "resourceVersion": str(thing.version),
        "generation": thing.generation,
        "creationTimestamp": stamp(thing.created),
    }
    if thing.going is not None:
        metadata["deletionTimestamp"] = stamp(thing.going)
    if thing.start_now is not None:
        metadata["annotations"] = {names.START_NOW: stamp(thing.start_now)}
    if queue := thing.spec.get("queue"):
        metadata["labels"] = {names.KUEUE_QUEUE: queue}
    spec = {key: value for key, value in thing.spec.items() if key != "queue"}
    body = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "Run", "metadata": metadata}
    return {**body, "spec": spec, "status": thing.status}


def _pod(thing: Pod) -> Json:
    metadata = {
        **_metadata(thing.name, thing.uid, thing.run, thing.run_uid),
        "creationTimestamp": stamp(thing.created),
        "labels": {
            "fairlead.dev/run": thing.run,
            "fairlead.dev/role": thing.role,
            "fairlead.dev/replica-index": str(thing.index),
        },
        "annotations": {
            "fairlead.dev/attempt": str(thing.attempt),
            "fairlead.dev/placement": json.dumps({"fallback": dict(thing.fallback)}),
            "fairlead.dev/avoid-nodes": ",".join(thing.avoid),
        },
    }
    if thing.going is not None:
        # The API server writes the end of the grace period.
        metadata["deletionTimestamp"] = stamp(thing.going + GRACE)
        metadata["deletionGracePeriodSeconds"] = GRACE
    limits = {"cpu": "2", "example.com/gpu": str(thing.index % 3)}
    main = {"name": "main", "resources": {"limits": limits}}
    spec = {"containers": [main], "nodeName": thing.node}
    return {"metadata": metadata, "spec": spec, "status": _status(thing)}


def _status(thing: Pod) -> Json:
    ready = {"type": "Ready", "status": "True" if thing.ready else "False"}
    conditions: list[Json] = [ready]
    if thing.target is not None:
        reason, since = thing.target
        conditions.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": reason,
                "message": "told by the world",
                "lastTransitionTime": stamp(since),
            }
        )
    scheduled: Json = {"type": "PodScheduled"}
    if thing.bound is not None:
        since_then = stamp(thing.bound)
        conditions.append({**scheduled, "status": "True", "lastTransitionTime": since_then})
    elif thing.unscheduled is not None:
        no = {"status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
        since_then = stamp(thing.unscheduled)
        conditions.append({**scheduled, **no, "lastTransitionTime": since_then})
    status: Json = {"phase": thing.phase, "conditions": conditions}
    if thing.reason:
        status["reason"] = thing.reason
    if thing.started is not None:
        state: Json = {"running": {"startedAt": stamp(thing.started)}}
        if thing.code is not None and thing.ended is not None:
            ended = {"exitCode": thing.code, "reason": thing.word, "finishedAt": stamp(thing.ended)}
            state = {"terminated": {**ended, "startedAt": stamp(thing.started)}}
        status["containerStatuses"] = [{"name": "main", "state": state}]
    return status
