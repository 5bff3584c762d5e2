"""What the controller needs every right for that it has: Runs and policies of each shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tests.cluster.live_runs import TEMPLATE, LiveRun, create_run
from tests.cluster.manifests import pod, workload
from tests.cluster.spaces import Json, Space
from tests.objects import an_object
from webhook import names

_JUDGES = ("validatingwebhookconfiguration", names.WEBHOOK_CONFIGURATION)


def training(space: Space) -> None:
    """A PyTorch run waits for a name, ends, has its other pods deleted, and goes in its time."""
    space.create(pod("torch-worker-1", labels={}))
    roles = {"master": {}, "worker": {"count": 2}}
    run = create_run(space, "torch", framework="pytorch", replicas=roles, ttlSecondsAfterFinished=2)
    run.until("a name is taken", lambda: "Pod torch-worker-1" in hindered(run))
    space.delete("pods", "torch-worker-1", now=True)
    run.until_running("master-0", "worker-0", "worker-1")
    run.ends("master-0", 0)
    run.until_gone()


def message_passing(space: Space) -> None:
    """An MPI run waits for two names that are taken, and has its keys, hostfile and Service."""
    space.create(an_object("v1", "ConfigMap", "gang-rendezvous"))
    space.create(
        an_object("v1", "Service", "gang", {"clusterIP": "None", "selector": {"app": "gang"}})
    )
    roles = {"launcher": {}, "worker": {"count": 2}}
    run = create_run(space, "gang", framework="mpi", replicas=roles, ttlSecondsAfterFinished=0)
    run.until("a name is taken", lambda: "ConfigMap gang-rendezvous" in hindered(run))
    space.delete("configmaps", "gang-rendezvous")
    run.until("another is too", lambda: "Service gang" in hindered(run))
    space.delete("services", "gang")
    run.until_running("launcher-0", "worker-0", "worker-1")
    (secret,) = space.items("secrets")
    assert secret["type"] == "kubernetes.io/ssh-auth"
    run.ends("launcher-0", 0)
    run.until_gone()


def notebooks(space: Space) -> None:
    """One waits for its name, rests twice and says so; another grows old."""
    spec: Json = {"kind": "notebook", "ports": [{"port": 8888}]}
    space.create(workload("Deployment", "lab"))
    lab = create_run(space, "lab", **spec)
    lab.until("the name is said to be taken", lambda: "Deployment lab" in hindered(lab))
    space.delete("deployments", "lab")
    for suspend in (False, True, False, True):
        lab.set(suspend=suspend)
        lab.until_phase("Suspended" if suspend else "Running")
    lab.until("it has said so twice", lambda: 2 in [each["count"] for each in lab.events()])
    old = create_run(space, "old", **spec, maxAgeSeconds=1, ttlSecondsAfterFinished=2)
    old.until_gone()


def large(space: Space) -> None:
    """A run whose Service is closed while pods are made; they are refused, so it is opened."""
    template = {"spec": {**TEMPLATE["spec"], "activeDeadlineSeconds": -1}}
    run = create_run(
        space, "large", framework="jax", template=template, replicas={"worker": {"count": 999}}
    )
    run.until("no pod can be made", lambda: "activeDeadlineSeconds" in hindered(run))

    def opened() -> bool:
        selector = space.get("services", "large")["spec"]["selector"]
        return names.CLOSED not in selector

    run.until("its Service is open", opened)


def astray(space: Space) -> None:
    """A run whose pod is bound to a node that there never was is told so after a live read."""
    run = create_run(space, "astray", environment={"nodeName": "nowhere"})
    run.until("its node is gone", lambda: run.condition("Ready").get("reason") == "NodeGone")


def waiting(space: Space) -> None:
    """A run for which there is no node looks for what an autoscaler says."""
    run = create_run(space, "waiting", environment={"nodeSelector": {"no": "such-node"}})
    run.until("it waits", lambda: "0/" in run.status.get("message", ""))


def statuses(space: Space) -> None:
    """A class, a policy, an exception and a source are told that they are accepted.

    Nobody judges them first: where this is played no replica is behind the Service.
    """
    entries = space.kubectl.json("get", *_JUDGES)["webhooks"]
    ignored = [
        {"op": "replace", "path": f"/webhooks/{number}/failurePolicy", "value": "Ignore"}
        for number in range(len(entries))
    ]
    space.kubectl("patch", *_JUDGES, "--type=json", "-p", json.dumps(ignored))
    specs: Mapping[str, Json] = {
        names.CLASS_KIND: {"nodes": [{"labels": {"lifecycle": "spot"}}]},
        names.POLICY_KIND: {"defaults": {"nodeSelector": {"pool": "a"}}},
        names.EXCEPTION_KIND: {
            "policies": [space.name],
            "match": {"namespaces": [space.name]},
            "until": "2099-01-01T00:00:00Z",
            "reason": "To see that it has a status.",
        },
        names.SOURCE_KIND: {
            "system": "A system",
            "identity": {"precedence": 1, "marks": [{"label": f"example.com/{space.name}"}]},
        },
    }
    for kind, spec in specs.items():
        head = an_object(names.API_VERSION, kind, space.name)
        space.create({**head, "spec": spec})
        told = f"{kind.lower()}/{space.name}"
        space.kubectl("wait", "--for=condition=Accepted", told, "--timeout=120s")


def hindered(run: LiveRun) -> str:
    """Why what the run needs cannot be created."""
    message: str = run.condition("Created").get("message", "")
    return message


EVERY_RIGHT: Mapping[str, Callable[[Space], None]] = {
    "training": training,
    "message-passing": message_passing,
    "notebooks": notebooks,
    "large": large,
    "astray": astray,
    "waiting": waiting,
    "statuses": statuses,
}
