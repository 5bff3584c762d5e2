"""`python -m tests.bench.lost_nodes`: what a lost node costs a Run, beside other controllers.

First one pod of each arm loses its node, in three ways, all arms at the same moments of one control
plane: seconds from the loss to the replacement's creation. Then a tenth of many nodes are deleted
at once under many gangs, of Runs and then of Indexed Jobs: seconds until all are whole again,
requests for each lost pod, memory. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from tests.bench import gangs, training_operator
from tests.bench.document import circumstances
from tests.bench.pod_watch import PodWatch
from tests.bench.process import resident_mib
from tests.bench.reviews import NAMESPACE
from tests.bench.runs_arena import until
from tests.bench.spread import ratio, spread
from webhook import names
from webhook.progress import Lines
from webhook.sandbox.api import definitions
from webhook.sandbox.binaries import ALL, obtain_binaries
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.simulated_nodes import Pool, node_manifests

_FREE: Final = ("--no-leader-election", "--no-policy-status")
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_MARK: Final = "bench-of"
_DISRUPTED: Final = [{"type": "DisruptionTarget", "status": "True"}]


def object_of(arm: str, name: str, count: int, pool: str) -> dict[str, Any]:
    """The arm's object, whose pods run on the nodes of a pool, and survive what nodes do."""
    made = gangs.run(name, {"worker": count}) if arm == gangs.RUN else gangs.manifest(arm, name, 1)
    spec = made["spec"]
    selector = {"nodeSelector": {_MARK: pool}}
    if arm == gangs.RUN:
        spec["framework"] = "jax"
        spec["template"]["spec"].update(selector)
    elif arm == gangs.JOB:
        spec.update(completions=count, parallelism=count)
        ignore = {"action": "Ignore", "onPodConditions": _DISRUPTED}
        spec["podFailurePolicy"] = {"rules": [ignore]}
        # Or kwok would end it after a second.
        spec["template"]["metadata"]["labels"][names.RUN_UID] = name
        spec["template"]["spec"].update(selector)
    else:
        master = spec["pytorchReplicaSpecs"]["Master"]
        spec["pytorchReplicaSpecs"] = {"Master": {**master, "restartPolicy": "ExitCode"}}
        master["template"]["spec"].update(selector)
    return made


def deleted(plane: ControlPlane, pod: Mapping[str, Any]) -> None:
    """The cloud's controller deletes the Node."""
    plane.api.call("DELETE", f"/api/v1/nodes/{pod['spec']['nodeName']}")


def tainted(plane: ControlPlane, pod: Mapping[str, Any]) -> None:
    """Somebody drains it by a taint with NoExecute."""
    path = f"/api/v1/nodes/{pod['spec']['nodeName']}"
    taint = {"key": "bench", "effect": "NoExecute"}
    plane.api.patch(path, {"spec": {"taints": [taint]}})


def shut_down(plane: ControlPlane, pod: Mapping[str, Any]) -> None:
    """The kubelet ends the pod for a graceful shutdown, as on GKE."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    reason = {"reason": "TerminationByKubelet", "lastTransitionTime": now}
    ended = {"exitCode": 143, "reason": "Error", "startedAt": now, "finishedAt": now}
    container = {
        "name": "pytorch",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    status = {
        "phase": "Failed",
        "reason": "Terminated",
        "conditions": [{**_DISRUPTED[0], **reason}],
        "containerStatuses": [container],
    }
    path = f"{_PODS}/{pod['metadata']['name']}/status"
    plane.api.patch(path, {"status": status})


WAYS: Final[Mapping[str, Callable[[ControlPlane, Mapping[str, Any]], None]]] = {
    "the Node is deleted": deleted,
    "the kubelet shuts down": shut_down,
    "a NoExecute taint": tainted,
}


def replaced(plane: ControlPlane, way: str, at: int) -> dict[str, float]:
    """Seconds from a loss to the creation of the replacement, for each arm."""
    found: dict[str, float] = {}

    def one(arm: str) -> None:
        name = f"{arm}-{list(WAYS).index(way)}-{at}"
        pools = [Pool(name=name, count=2, labels={_MARK: name})]
        for node in node_manifests(pools):
            plane.api.create("/api/v1/nodes", node)
        plane.api.create(gangs.collection(arm), object_of(arm, name, 1, name))
        until("the pod to run", lambda: running(plane, name) == 1)
        (pod,) = pods_of(plane, name)
        with PodWatch(plane, NAMESPACE, f"{gangs.LABEL}={name}") as watch:
            began = time.perf_counter()
            WAYS[way](plane, pod)
            (made,) = watch.created(1)
        found[arm] = made.at - began
        print(f"{way}, {arm}: {found[arm]:.1f} s", file=sys.stderr)
        path = f"{gangs.collection(arm)}/{name}"
        plane.api.call("DELETE", path, {"propagationPolicy": "Background"})

    threads = [threading.Thread(target=one, args=(arm,)) for arm in gangs.ARMS]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found


def pods_of(plane: ControlPlane, label: str) -> list[dict[str, Any]]:
    """The pods with this value of LABEL, in pages: thousands take longer than one answer may."""
    found: list[dict[str, Any]] = []
    more = ""
    while True:
        query = f"labelSelector={gangs.LABEL}%3D{label}&limit=500&continue={more}"
        page = plane.api.get(f"{_PODS}?{query}")
        found += page["items"]
        more = page["metadata"].get("continue", "")
        if not more:
            return found


def seem_whole(plane: ControlPlane, arm: str, size: int) -> bool:
    """Whether all objects of the arm say so: a small answer, so that asking slows no arm down."""
    time.sleep(2)
    found = (each.get("status", {}) for each in plane.api.get(gangs.collection(arm))["items"])
    wanted = f"{size}/{size}"
    # A Job's `ready` stayed behind for minutes with 1,000 of them.
    return all(
        each.get("replicasReady") == wanted if arm == gangs.RUN else each.get("active") == size
        for each in found
    )


def running(plane: ControlPlane, label: str) -> int:
    """How many of them run, and are not being deleted."""
    return sum(
        each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
        for each in pods_of(plane, label)
    )


def one_by_one(plane: ControlPlane, rounds: int) -> Iterator[str]:
    """The table of seconds by kind of loss and arm."""
    arms = " | ".join(gangs.TITLES[arm] for arm in gangs.ARMS)
    yield f"| loss | {arms} | Run / Job | Run / PyTorchJob |"
    yield "|---|---|---|---|---|---|"
    for way in WAYS:
        found = [replaced(plane, way, at) for at in range(rounds)]
        by_arm = {arm: [each[arm] for each in found] for arm in gangs.ARMS}
        cells = [spread(by_arm[arm]).text(1) for arm in gangs.ARMS]
        cells += [
            ratio(by_arm[gangs.RUN], by_arm[other]).text(2)
            for other in (gangs.JOB, gangs.PYTORCH_JOB)
        ]
        yield f"| {way} | {' | '.join(cells)} |"


def many(
    plane: ControlPlane, controller: SandboxController, arm: str, runs: int, size: int, nodes: int
) -> str:
    """A row: a tenth of the nodes are deleted at once."""
    pool = f"many-{arm}"
    for node in node_manifests([Pool(name=pool, count=nodes, labels={_MARK: pool})]):
        plane.api.create("/api/v1/nodes", node)
    for number in range(runs):
        made = object_of(arm, f"{arm}-many-{number}", size, pool)
        template = made["spec"]["template"]
        template["metadata"]["labels"][gangs.LABEL] = pool
        plane.api.create(gangs.collection(arm), made)
    until(
        "all pods to run",
        lambda: seem_whole(plane, arm, size) and running(plane, pool) == runs * size,
        3600,
    )
    time.sleep(30)
    process = plane.pids[controller.name if arm == gangs.RUN else "kube-controller-manager"]
    lost = {f"{pool}-{number}" for number in range(nodes // 10)}
    gone = [each for each in pods_of(plane, pool) if each["spec"].get("nodeName") in lost]
    before, began = requests(controller), time.perf_counter()
    for name in sorted(lost):
        plane.api.call("DELETE", f"/api/v1/nodes/{name}")

    def whole() -> bool:
        if not seem_whole(plane, arm, size):
            return False
        there = [
            each
            for each in pods_of(plane, pool)
            if each["status"].get("phase") == "Running" and each["spec"]["nodeName"] not in lost
        ]
        return len(there) == runs * size

    until("all to be whole", whole, 3600)
    seconds, memory = time.perf_counter() - began, resident_mib(process)
    calls = (requests(controller) - before) / len(gone) if arm == gangs.RUN else None
    print(f"{arm}: {len(gone)} pods lost, whole after {seconds:.0f} s", file=sys.stderr)
    told = "–" if calls is None else f"{calls:.1f}"
    return f"| {gangs.TITLES[arm]} | {len(gone)} | {seconds:.0f} | {told} | {memory:.0f} |"


def requests(controller: SandboxController) -> float:
    """How many requests the controller has made, by its metrics."""
    url = f"http://127.0.0.1:{controller.health_port}/metrics"
    with urllib.request.urlopen(url) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == "fairlead_api_requests_total"
        )


@contextmanager
def arena() -> Iterator[tuple[ControlPlane, SandboxController]]:
    """A control plane with scheduler and kubelets, and both controllers beside its own."""
    progress = Lines(sys.stderr)
    operator = training_operator.obtain(progress)
    binaries = obtain_binaries(ALL, progress)
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(definitions=definitions())
        with ControlPlane(Path(directory) / "state", binaries, settings) as plane:
            plane.create_namespace(NAMESPACE)
            installation = training_operator.install(plane, operator)
            with training_operator.running(plane, installation):
                yield plane, start_controller(plane, options=_FREE)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=500)
    options = parser.parse_args()
    with arena() as (plane, controller):
        print(circumstances(options.rounds), "\n", sep="")
        if options.rounds:
            print("\n".join(one_by_one(plane, options.rounds)), "\n", sep="", flush=True)
        if options.runs:
            print("| | pods lost | whole again after, s | requests a pod | controller, MiB |")
            print("|---|---|---|---|---|")
            for arm in (gangs.RUN, gangs.JOB):
                size = (options.runs, options.replicas, options.nodes)
                print(many(plane, controller, arm, *size), flush=True)


if __name__ == "__main__":
    main()
