"""What becomes of a run that loses a node, in every way that shows, for each restart scope.

Each run has a worker on a stable node and one on a node that is lost. The first one's program fails
as soon as that happens, as programs do whose peer is gone; backoffLimit is 0. All runs lose their
nodes at the same time, and each test looks at what became of one of them.

Other runs keep their first worker, and their node is restarted, or only seems to be lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.live_runs import ALONE, TEMPLATE, LiveRun, create_run
from tests.cluster.manifests import policy_text
from tests.cluster.spaces import Json, Space
from tests.control_planes import StartControlPlane
from tests.wording import mentions
from webhook import names
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.fairlead import start_controller, start_webhook
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import Pool

SCOPES = ("Replica", "Role", "Run")
STORIES = ("deleted", "silent", "givenup", "shutdown", "outofservice", "back")
# Of these nothing fails but what is on the node.
CALM = ("containerd", "crio", "fast", "unready", "registered", "ill")
# kwok plays the kubelet of nodes with this label: without it nobody does.
ALIVE = "example.com/alive"
# A node whose Lease is not renewed is not ready after 15 s, where 50 are the default. Nothing is
# evicted from it before the module is over.
FLAGS: Mapping[str, tuple[str, ...]] = {
    "kwok": (
        *("--manage-all-nodes=false", f"--manage-nodes-with-label-selector={ALIVE}=yes"),
        "--node-lease-duration-seconds=12",
    ),
    "kube-controller-manager": ("--node-monitor-grace-period=15s", "--node-monitor-period=1s"),
}
# A webhook is there for what the controller says in annotations.
NO_POLICY = policy_text(
    "of-nothing", "match: {namespaces: [nowhere]}", "overrides: {nodeSelector: {a: b}}"
)
# PodGC waits for 40 s after a Node is gone, and looks every 20.
PATIENT = 180.0


@dataclass(frozen=True)
class Loss:
    """One run, and the pods that it had when it lost the node of worker-1."""

    live: LiveRun
    before: Mapping[str, Json]

    @property
    def node(self) -> str:
        name: str = self.before["worker-1"]["spec"]["nodeName"]
        return name

    @property
    def incident(self) -> Json:
        """The only incident of the run; empty before there is one."""
        found: list[Json] = self.live.status.get("incidents", [])
        assert len(found) <= 1, found
        return found[0] if found else {}

    def counts(self) -> tuple[int, int]:
        worker = self.live.role("worker")
        return worker["failed"], worker["disruptions"]

    def until_replaced(self, budget: float) -> None:
        """Wait until both workers run again, the second in another pod; nothing is charged."""
        self.live.until_replaced("worker-1", self.before["worker-1"], budget=budget)
        self.live.until_whole(2)
        assert self.counts() == (0, 1)
        assert self.incident["cause"] == "Disruption"
        self.live.until("what was lost is known", lambda: "secondsLost" in self.incident)


def pools() -> list[Pool]:
    """A stable pool, and for each run one of its own: a node to lose, and one to go on."""
    alive = {ALIVE: "yes"}
    lost = [
        Pool(name=f"{story}-{scope.lower()}", count=2, labels={**alive, "run": f"{story}-{scope}"})
        for story in STORIES
        for scope in SCOPES
    ]
    calm = [
        Pool(name=f"{story}-replica", count=2, labels={**alive, "run": f"{story}-Replica"})
        for story in CALM
    ]
    return [Pool(name="stable", count=1, labels={**alive, "run": "stable"}), *lost, *calm]


def classes() -> list[Json]:
    """Nodes that are given up once they are silent for a minute; others that have a price."""
    specs: Json = {
        f"given-up-{scope.lower()}": {
            "nodes": [{"labels": {"run": f"givenup-{scope}"}}],
            "lostAfter": "1m",
        }
        for scope in SCOPES
    }
    rule = {"condition": "GpuHealthy", "status": "False", "lasts": "2s"}
    specs["ill"] = {"nodes": [{"labels": {"run": "ill-Replica"}}], "unhealthy": [rule]}
    specs["stable"] = {"nodes": [{"labels": {"run": "stable"}}], "relativePrice": 0.25}
    common = {"apiVersion": names.API_VERSION, "kind": names.CLASS_KIND}
    return [{**common, "metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]


@pytest.fixture(scope="module")
def space(
    start_module_plane: StartControlPlane,
    kubectl_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Space:
    """A namespace of a control plane whose nodes can be made silent, with a controller."""
    settings = Settings(pools=pools(), extra_arguments=FLAGS, definitions=definitions())
    plane = start_module_plane(settings)
    plane.create_namespace("lab")
    for each in classes():
        plane.api.create(f"/apis/{names.API_VERSION}/{names.CAPACITY_CLASSES}", each)
    options = (*ALONE, "--no-policy-status", "--restart-backoff-first", "0.5")
    start_controller(plane, options=options)
    policies = tmp_path_factory.mktemp("policies")
    (policies / "none.yaml").write_text(NO_POLICY)
    start_webhook(plane, policies)
    return Space(plane, Kubectl(kubectl_path, plane.kubeconfig).within("lab"), "lab")


@pytest.fixture(scope="module")
def losses(space: Space) -> Mapping[tuple[str, str], Loss]:
    """Every run, just after it lost its node, and after what it is told of that by others."""
    live_runs = {
        (story, scope): begun(space, story, scope) for story in STORIES for scope in SCOPES
    }
    found = {
        key: Loss(each, each.until_running("worker-0", "worker-1"))
        for key, each in live_runs.items()
    }
    for (story, _), loss in found.items():
        if story == "deleted":
            space.delete("nodes", loss.node)
        else:
            space.patch("nodes", loss.node, {"metadata": {"labels": {ALIVE: None}}})
    for loss in found.values():
        loss.live.ends("worker-0", 1)
    for scope in SCOPES:
        # Now, before PodGC comes.
        until_told(found["deleted", scope], "NodeGone")
    for (story, _), loss in found.items():
        if story == "deleted":
            continue
        loss.live.until("the node is not ready", partial(not_ready, loss))
        if story == "shutdown":
            tainted(loss, names.TAINT_SHUTDOWN, "NoSchedule")
        elif story == "outofservice":
            tainted(loss, names.TAINT_OUT_OF_SERVICE, "NoExecute")
        elif story == "back":
            loss.live.until("it is one disruption", partial(is_one_disruption, loss))
            space.patch("nodes", loss.node, {"metadata": {"labels": {ALIVE: "yes"}}})
            loss.live.until("the node is ready", partial(is_ready, loss))
    return found


@pytest.fixture(scope="module")
def calm(space: Space) -> Mapping[str, Loss]:
    """The other runs; nothing has happened to them."""
    live_runs = {story: begun(space, story, "Replica") for story in CALM}
    return {
        story: Loss(live, live.until_running("worker-0", "worker-1"))
        for story, live in live_runs.items()
    }


def begun(space: Space, story: str, scope: str) -> LiveRun:
    """One run: each worker has nodes of its own."""
    where = {0: "stable", 1: f"{story}-{scope}"}
    worker = {
        "count": 2,
        "byIndex": [
            {"index": index, "environment": {"nodeSelector": {"run": label}}}
            for index, label in where.items()
        ],
    }
    name = f"{story}-{scope.lower()}"
    spec = {"restartScope": scope, "backoffLimit": 0, "template": TEMPLATE}
    return create_run(space, name, framework="jax", replicas={"worker": worker}, **spec)


def not_ready(loss: Loss) -> bool:
    """Whether the node controller has noticed that the node is silent."""
    node = loss.live.space.get("nodes", loss.node)
    ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
    return bool(ready["status"] == "Unknown")


def is_ready(loss: Loss) -> bool:
    """Whether the node's kubelet says that it is ready."""
    conditions = loss.live.space.get("nodes", loss.node)["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_one_disruption(loss: Loss) -> bool:
    """Whether a disruption is charged, and no failure."""
    return loss.counts() == (0, 1)


def says_ready(loss: Loss) -> bool:
    """The kubelet of the second worker's node says that its pod is ready; whether that stands.

    The node controller says that it is not, once or late, and kwok leaves that so where a kubelet
    says it again. A pod that has just taken its place has no conditions yet.
    """
    pod = loss.live.pods().get("worker-1")
    conditions = pod["status"].get("conditions", ()) if pod else ()
    told = [{**each, "status": "True"} if each["type"] == "Ready" else each for each in conditions]
    if pod and "deletionTimestamp" not in pod["metadata"] and told != list(conditions):
        loss.live.patch_status("worker-1", {"conditions": told})
    return loss.live.status.get("replicasReady") == "2/2"


def tainted(loss: Loss, key: str, effect: str) -> None:
    """Give the node a taint beside those that it has."""
    node = loss.live.space.get("nodes", loss.node)
    taints = [*node["spec"].get("taints", ()), {"key": key, "effect": effect}]
    loss.live.space.patch("nodes", loss.node, {"spec": {"taints": taints}})


def until_told(loss: Loss, reason: str) -> None:
    """Wait until the run says that its node is lost, and check how."""
    live = loss.live
    live.until("it is not ready", lambda: live.condition("Ready").get("reason") == reason)
    mentions(live.condition("Ready")["message"], loss.node, f"{live.name}-worker-1", "since")
    # The peers of a pod on a silent node fail, and the program there may run on.
    assert live.status["phase"] in ("Restarting", *["Running"] * (reason == "NodeNotReady"))
    live.until("an Event says so", lambda: reason in {each["reason"] for each in live.events()})


def is_lost(loss: Loss, reason: str) -> None:
    """The runtime says of worker-1's container that it ended with 255, and keeps its start."""
    before = loss.before["worker-1"]["status"]["containerStatuses"][0]
    started = before["state"]["running"]["startedAt"]
    now = stamp(datetime.now(UTC))
    ended = {"exitCode": 255, "reason": reason, "startedAt": started, "finishedAt": now}
    container = {**before, "ready": False, "started": False, "state": {"terminated": ended}}
    status = {"phase": "Failed", "containerStatuses": [container]}
    loss.live.patch_status("worker-1", status)


def says_not_ready(loss: Loss) -> None:
    """A live kubelet says that its node is not ready, and renews its Lease."""
    space = loss.live.space
    now = datetime.now(UTC)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{loss.node}"
    space.plane.api.patch(lease, {"spec": {"renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})
    told = [
        {**each, "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": stamp(now)}
        if each["type"] == "Ready" and each["status"] != "False"
        else each
        for each in space.get("nodes", loss.node)["status"]["conditions"]
    ]
    space.patch("nodes", f"{loss.node}/status", {"status": {"conditions": told}})


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


Losses = Mapping[tuple[str, str], Loss]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_deleted_node_is_reported_at_once_and_its_pod_is_replaced(
    losses: Losses, scope: str
) -> None:
    """By the controller, and not by PodGC; the failure of its peer is charged to the disruption."""
    loss = losses["deleted", scope]
    loss.until_replaced(PATIENT)
    assert (loss.incident["node"], loss.incident["reason"]) == (loss.node, "NodeGone")
    assert loss.incident["collateral"] == 1


@pytest.mark.parametrize("scope", SCOPES)
def test_a_silent_node_is_waited_for_and_the_cure_is_reported(losses: Losses, scope: str) -> None:
    """Its program may go on, so nothing replaces it before somebody says that it does not."""
    loss = losses["silent", scope]
    until_told(loss, "NodeNotReady")
    mentions(loss.live.condition("Ready")["message"], names.TAINT_OUT_OF_SERVICE, "delete node")
    loss.live.until("it is one disruption", partial(is_one_disruption, loss))
    # That nothing happens can only be seen by waiting: longer than a look, or a backoff, takes.
    time.sleep(3)
    there = loss.live.pods()["worker-1"]
    assert there["metadata"]["uid"] == loss.before["worker-1"]["metadata"]["uid"]
    assert (loss.incident["reason"], loss.incident["collateral"]) == ("NodeNotReady", 1)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_silent_node_of_a_class_that_says_so_is_given_up(losses: Losses, scope: str) -> None:
    """After a minute, as its class says; the status says until when the run waits."""
    loss = losses["givenup", scope]
    loss.until_replaced(PATIENT)
    assert (loss.incident["node"], loss.incident["reason"]) == (loss.node, "NodeNotReady")
    told = [each["message"] for each in loss.live.events() if each["reason"] == "NodeNotReady"]
    mentions(told[0], loss.node, "if it is not back by", "replaced")


@pytest.mark.parametrize("scope", SCOPES)
def test_the_pod_of_a_machine_that_is_off_is_replaced_at_once(losses: Losses, scope: str) -> None:
    """The cloud's node controller says so, by a taint, once the node is not ready."""
    loss = losses["shutdown", scope]
    loss.until_replaced(60)
    assert loss.incident["collateral"] == 1


@pytest.mark.parametrize("scope", SCOPES)
def test_the_pod_of_a_node_out_of_service_is_replaced(losses: Losses, scope: str) -> None:
    """What an admin was told to do helps: PodGC force-deletes the pod."""
    loss = losses["outofservice", scope]
    loss.until_replaced(PATIENT)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_node_that_comes_back_is_one_disruption_for_its_peers(losses: Losses, scope: str) -> None:
    """With scope Replica its own pod has lost nothing, and goes on."""
    loss = losses["back", scope]
    loss.live.until("its pods are ready", partial(says_ready, loss))
    loss.live.until_whole(2)
    same = loss.live.pods()["worker-1"]["metadata"]["uid"]
    assert (same == loss.before["worker-1"]["metadata"]["uid"]) is (scope == "Replica")
    assert loss.counts() == (0, 1)


@pytest.mark.parametrize(
    ("story", "reason"), [("containerd", "Unknown"), ("crio", "Error"), ("fast", "Unknown")]
)
def test_a_restarted_machine_is_one_disruption(
    calm: Mapping[str, Loss], story: str, reason: str
) -> None:
    """By the runtime's reason; where that says no more than Error, because the node was away."""
    loss = calm[story]
    space = loss.live.space
    if story != "fast":
        space.patch("nodes", loss.node, {"metadata": {"labels": {ALIVE: None}}})
        loss.live.until("the node is not ready", partial(not_ready, loss))
        space.patch("nodes", loss.node, {"metadata": {"labels": {ALIVE: "yes"}}})
        loss.live.until("the node is ready", partial(is_ready, loss))
    is_lost(loss, reason)
    loss.until_replaced(60)
    assert loss.incident["node"] == loss.node


def test_a_live_kubelet_that_is_not_ready_keeps_its_pod(calm: Mapping[str, Loss]) -> None:
    """Whatever a taint says: it may be of a moment when the machine was off."""
    loss = calm["unready"]
    loss.live.space.patch("nodes", loss.node, {"metadata": {"labels": {ALIVE: None}}})
    says_not_ready(loss)
    tainted(loss, names.TAINT_SHUTDOWN, "NoSchedule")
    until_told(loss, "NodeNotReady")
    for _ in range(5):
        # That nothing happens can only be seen by waiting.
        time.sleep(1)
        says_not_ready(loss)
        there = loss.live.pods()["worker-1"]
        assert there["metadata"]["uid"] == loss.before["worker-1"]["metadata"]["uid"]
        assert "deletionTimestamp" not in there["metadata"]
    assert loss.counts() == (0, 0)


def test_a_node_that_is_registered_again_under_its_pod_is_not_gone(
    calm: Mapping[str, Loss],
) -> None:
    """As a kubelet does that is restarted after somebody deleted its Node."""
    loss = calm["registered"]
    space, live = loss.live.space, loss.live
    begun_at = datetime.fromisoformat(loss.before["worker-1"]["status"]["startTime"])
    # Clocks may differ by a minute: a pod that is younger is of this node in any case.
    time.sleep(max(0.0, 65 - (datetime.now(UTC) - begun_at).total_seconds()))
    old = space.get("nodes", loss.node)
    space.delete("nodes", loss.node)
    until_told(loss, "NodeGone")
    metadata = {key: old["metadata"].get(key, {}) for key in ("labels", "annotations")}
    kind = {"apiVersion": "v1", "kind": "Node"}
    space.plane.api.create(
        "/api/v1/nodes", {**kind, "metadata": {"name": loss.node, **metadata}, "spec": {}}
    )
    live.until("the node is ready", partial(is_ready, loss))
    live.until_whole(2)
    assert live.pods()["worker-1"]["metadata"]["uid"] == loss.before["worker-1"]["metadata"]["uid"]
    assert loss.counts() == (0, 0)


def test_a_pod_on_an_ill_node_starts_again_elsewhere(calm: Mapping[str, Loss]) -> None:
    """As one disruption; its next pod does not run there, and a well node is used again."""
    loss = calm["ill"]
    space, live = loss.live.space, loss.live
    sick(loss, "False")
    loss.until_replaced(60)
    assert loss.incident["reason"] == "NodeUnhealthy"
    mentions(loss.incident["message"], "GpuHealthy=False", loss.node)
    pod = live.pods()["worker-1"]
    assert pod["metadata"]["annotations"][names.AVOID_NODES] == loss.node
    assert pod["spec"]["nodeName"] != loss.node

    # Only the ill node is left: the next pod waits until it is well.
    space.kubectl("cordon", pod["spec"]["nodeName"])
    space.delete("pods", pod["metadata"]["name"])
    live.until("it waits", lambda: live.condition("Scheduled").get("status") == "False")
    sick(loss, "True")
    live.until_replaced("worker-1", live.pods()["worker-1"], budget=PATIENT)
    assert live.pods()["worker-1"]["spec"]["nodeName"] == loss.node
    space.kubectl("uncordon", pod["spec"]["nodeName"])


def sick(loss: Loss, healthy: str) -> None:
    """The agent of the loss's node says whether its GPUs are."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": "GpuHealthy", "status": healthy, "reason": "Test", "lastTransitionTime": now}
    status = json.dumps({"status": {"conditions": [told]}})
    loss.live.space.kubectl("patch", "node", loss.node, "--subresource=status", "-p", status)


def test_what_runs_used_is_shown_with_an_estimate(space: Space) -> None:
    """Of pods that live and of those that ended, by class."""
    worker = {"count": 2, "environment": {"nodeSelector": {"run": "stable"}}}
    live = create_run(space, "spender", replicas={"worker": worker})
    stuck = create_run(space, "stuck", environment={"nodeSelector": {"run": "nowhere"}})
    pod = live.until_running("worker-0", "worker-1")["worker-1"]
    live.until("some seconds went by", lambda: used(space, "spender")["useful"] >= 8)
    live.ends("worker-1", 1)
    live.until_replaced("worker-1", pod)
    stuck.until("it has waited", lambda: used(space, "stuck")["usage"])

    found = used(space, "spender")
    (row,) = found["usage"]
    assert (row["class"], row["resource"], found["unseen"]) == ("stable", "replicas", 0)
    assert row["repeatedSeconds"] >= 2
    assert found["useful"] == row["seconds"] - row["repeatedSeconds"] > 0
    assert found["cost"] == row["seconds"] / 4
    assert live.status["repeated"] == f"{row['repeatedSeconds']}s"
    (row,) = used(space, "stuck")["usage"]
    assert (row["class"], row["seconds"]) == ("", 0)
    assert row["waitingSeconds"] > 0
    everything = space.ask("run", "cost")
    mentions(everything.output, "spender", "stable", "estimate", "stuck")


def test_the_time_on_a_lost_node_ends_with_its_last_sign(
    losses: Mapping[tuple[str, str], Loss],
) -> None:
    """Whatever time it took until its pod was given up."""
    loss = losses["givenup", "Replica"]
    loss.until_replaced(PATIENT)
    rows = {each["class"]: each for each in loss.live.status["usage"]}
    lost = rows["given-up-replica"]
    bound = next(
        each["lastTransitionTime"]
        for each in loss.before["worker-1"]["status"]["conditions"]
        if each["type"] == "PodScheduled"
    )
    conditions = loss.live.space.get("nodes", loss.node)["status"]["conditions"]
    silent = next(each["lastTransitionTime"] for each in conditions if each["type"] == "Ready")
    span = datetime.fromisoformat(silent) - datetime.fromisoformat(bound)
    assert lost["seconds"] == lost["repeatedSeconds"] == span.total_seconds() > 0


def used(space: Space, run: str) -> Json:
    """What it says of a run."""
    (found,) = json.loads(space.ask("run", "cost", run, "-o", "json").stdout)["runs"]
    return dict(found)
