"""How policies place a Run that waits in a queue of Kueue, and what that does to its quota.

Webhook, controller, Kueue, scheduler and nodes are real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.cluster.live_runs import ALONE, SOON, LiveRun
from tests.cluster.spaces import Json, NewNamespace, Running, Space
from tests.objects import an_object
from tests.operators import queues
from tests.operators.queueing import holds, play, said, workload
from tests.operators.queues import POOL
from tests.wording import mentions
from webhook import names
from webhook.installation.manifests import render
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("queues_of_admins", "controller")

CLASSES: Final = f"""
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {{name: gpu}}
spec: {{nodes: [{{labels: {{{POOL}: gpu}}}}]}}
---
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {{name: usual}}
spec: {{nodes: [{{labels: {{{POOL}: on-demand}}}}]}}
"""


def policy(name: str, spec: str) -> str:
    """A policy for the namespaces whose label `test` has its name."""
    match = f"match: {{namespaceSelector: {{matchLabels: {{test: {name}}}}}"
    return f"""---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec: {{{match}}}, {spec}}}
"""


SPLIT: Final = policy(
    "split",
    "overrides: {split: [{class: usual, count: 1}, {class: gpu, count: 1}, {class: usual}]}",
)
LEADERS: Final = f"""---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: leaders}}
spec:
  match: {{namespaceSelector: {{matchLabels: {{test: leaders}}}}, coordinator: true}}
  overrides: {{nodeSelector: {{{POOL}: on-demand}}}}
"""
FALLBACK: Final = policy(
    "fallback",
    "overrides: {capacity: [{class: gpu, mode: Constrain, "
    "fallback: {afterPending: 4s, returnAfter: 1h, then: Prevent}}]}",
)
STRICT: Final = policy("strict", "requirements: {allowedTolerations: {patterns: [{key: other}]}}")
REMOVES: Final = policy(
    "removes", "requirements: {allowedTolerations: {patterns: [{key: other}], remove: true}}"
)
POLICIES: Final = CLASSES + SPLIT + LEADERS + FALLBACK + STRICT + REMOVES
MOVED: Final = policy("moved", f"overrides: {{nodeSelector: {{{POOL}: on-demand}}}}")


@pytest.fixture(scope="module")
def controller(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, running: Running
) -> Iterator[None]:
    """The controller, which knows what the webhook serves."""
    # Tests serve other sets from the file of `serve`.
    (running.policies / "policies.yaml").unlink()
    running.serve(POLICIES)
    for definition in custom_resource_definitions().values():
        install_definitions(control_plane.api, [definition])
    replica = ("--webhook-replica", running.webhook.health_url.rpartition("/")[2])
    options = (*ALONE, *SOON, *replica, "--policy-status-interval", "4")
    started = start_controller(control_plane, name="queueing", options=options)
    cluster_kubectl.create(*render((), ("backend-kueue",)).values())
    yield
    control_plane.stop_component(started.name)


@pytest.fixture
def space_for(new_namespace: NewNamespace) -> Callable[[str], Space]:
    """Makes a namespace of a policy, with its queues."""

    def make(name: str) -> Space:
        made = new_namespace({"test": name})
        made.kubectl.create(*queues.of_namespaces())
        return made

    return make


def workers(space: Space, queue: str, count: int, **spec: Any) -> LiveRun:
    """A run of workers in a queue: JAX has no other role."""
    return play(space, queue, size={"worker": count}, framework="jax", **spec)


def starts_again(run: LiveRun, count: int) -> None:
    """Wait until a run is whole that queues again after a pause."""
    run.until("it is admitted again", lambda: len(run.live()) == count, budget=150.0)
    run.until_whole(count)


def pools(run: LiveRun) -> dict[str, str]:
    """The pool that each pod selects by its flavor."""
    return {name: pod["spec"]["nodeSelector"][POOL] for name, pod in run.pods().items()}


def sets(run: LiveRun) -> Json:
    return {each["name"]: each["count"] for each in workload(run)["spec"]["podSets"]}


def test_each_part_of_a_split_is_charged_to_the_flavor_of_its_class(
    space_for: Callable[[str], Space],
) -> None:
    """Replicas of one class are one pod set, wherever they are in the split."""
    run = workers(space_for("split"), "either", 4)
    run.until_whole(4)
    assert sets(run) == {"worker": 3, "worker-1": 1}
    usual = dict.fromkeys(("worker-0", "worker-2", "worker-3"), "on-demand")
    assert pools(run) == {**usual, "worker-1": "gpu"}
    assigned = workload(run)["status"]["admission"]["podSetAssignments"]
    assert {each["name"]: each["flavors"]["cpu"] for each in assigned} == {
        "worker": "on-demand",
        "worker-1": "gpu",
    }


def test_the_replica_that_leads_is_charged_to_its_own_flavor(
    space_for: Callable[[str], Space],
) -> None:
    """JAX has one role, whose first replica leads."""
    run = workers(space_for("leaders"), "either", 3)
    run.until_whole(3)
    assert pools(run) == {"worker-0": "on-demand", "worker-1": "gpu", "worker-2": "gpu"}
    assert sets(run) == {"worker": 1, "worker-1": 2}


def test_policies_override_the_selector_of_a_run_in_a_queue_too(
    space_for: Callable[[str], Space],
) -> None:
    """Kueue gives it the flavor of the nodes that policies require, not of those that it wanted."""
    run = workers(
        space_for("fallback"), "either", 1, environment={"nodeSelector": {POOL: "on-demand"}}
    )
    run.until_whole(1)
    assert pools(run) == {"worker-0": "gpu"}


def test_a_run_that_waits_follows_the_policies(
    space_for: Callable[[str], Space], running: Running
) -> None:
    """Within a minute after the replicas of the webhook serve another set."""
    space = space_for("moved")
    first = play(space, "one", "first", {"master": 1, "worker": 1}, environment={})
    first.until_whole(2)
    run = workers(space, "one", 1)
    run.until("it waits", lambda: "insufficient" in said(run))
    before = workload(run)
    assert "nodeSelector" not in before["spec"]["podSets"][0]["template"]["spec"]
    running.serve(POLICIES + MOVED)
    try:
        run.until(
            "its Workload asks for what the policy wants",
            lambda: asked(run) == {POOL: "on-demand"},
            budget=90.0,
        )
        assert workload(run)["metadata"]["uid"] != before["metadata"]["uid"]
        uid = workload(run)["metadata"]["uid"]
        first.ends("master-0", 0)
        run.until_whole(1)
        assert pools(run) == {"worker-0": "on-demand"}
        assert workload(run)["metadata"]["uid"] == uid
    finally:
        running.serve(POLICIES)


def test_a_policy_that_comes_while_a_run_runs_puts_no_pod_on_nodes_of_another_flavor(
    space_for: Callable[[str], Space], running: Running
) -> None:
    """Its quota is counted for the flavor; resumed, the run queues by the policies of then."""
    run = workers(space_for("moved"), "either", 2)
    run.until_whole(2)
    assert set(pools(run).values()) == {"gpu"}
    running.serve(POLICIES + MOVED)
    try:
        run.ends("worker-0", 1)
        run.until("it says why", lambda: f"nodeSelector[{POOL}] of worker 0" in said(run))
        mentions(said(run), "'on-demand' in place of 'gpu'", "suspend and resume the run")
        assert pools(run) == {"worker-1": "gpu"}
        assert holds(run, "Admitted")
        run.set(suspend=True)
        run.until("it is out of the queue", lambda: not workload(run))
        run.set(suspend=False)
        run.until_whole(2)
        assert set(pools(run).values()) == {"on-demand"}
        assigned = workload(run)["status"]["admission"]["podSetAssignments"]
        assert assigned[0]["flavors"]["cpu"] == "on-demand"
    finally:
        running.serve(POLICIES)


def asked(run: LiveRun) -> Json:
    """The nodes that the first pod set of its Workload asks for."""
    found = workload(run)
    template: Json = found["spec"]["podSets"][0]["template"]["spec"] if found else {}
    selector: Json = template.get("nodeSelector", {})
    return selector


@pytest.mark.parametrize(
    ("name", "words"),
    [("strict", ["nvidia.com/gpu", "strict"]), ("removes", ["policies remove", "nvidia.com/gpu"])],
)
def test_a_flavor_whose_toleration_policies_refuse_gives_the_quota_back(
    space_for: Callable[[str], Space], running: Running, name: str, words: list[str]
) -> None:
    """No pod is created; the run says why, and starts when the policy allows it."""
    run = workers(space_for(name), "gpu", 2)
    run.until("it gives the quota back", lambda: "gives up the quota" in said(run))
    mentions(said(run), *words)
    run.until("the quota is free", lambda: not holds(run, "QuotaReserved"))
    assert run.pods() == {}
    assert run.status.get("disruptions", 0) == 0
    running.serve(POLICIES.replace("patterns: [{key: other}]", 'patterns: [{key: "*"}]'))
    try:
        starts_again(run, 2)
    finally:
        running.serve(POLICIES)


def test_a_quota_of_pods_that_admits_a_part_of_a_run_does_not_hold_kueues(
    space_for: Callable[[str], Space],
) -> None:
    """After a minute the pods are deleted and the quota is free; it starts when there is room."""
    space = space_for("quota")
    space.create(an_object("v1", "ResourceQuota", "pods", {"hard": {"pods": "2"}}))
    run = workers(space, "gpu", 4)
    run.until("two of four are there", lambda: len(run.live()) == 2)
    assert holds(run, "Admitted")
    run.until("it gives the quota back", lambda: "gives up the quota" in said(run), budget=150.0)
    mentions(said(run), "exceeded quota")
    run.until("its pods are gone", lambda: not run.live())
    run.until("the quota is free", lambda: not holds(run, "QuotaReserved"))
    space.patch("resourcequotas", "pods", {"spec": {"hard": {"pods": "10"}}})
    starts_again(run, 4)
    assert run.status.get("disruptions", 0) == 0


@pytest.fixture
def no_gpu_nodes(cluster_kubectl: Kubectl) -> Iterator[None]:
    """The nodes of the flavor are cordoned."""
    cluster_kubectl("cordon", "-l", f"{POOL}=gpu")
    yield
    cluster_kubectl("uncordon", "-l", f"{POOL}=gpu")


@pytest.mark.usefixtures("no_gpu_nodes")
@pytest.mark.parametrize("scope", ["Replica", "Run"])
def test_a_class_that_is_given_up_leaves_the_admission_of_its_flavor(
    space_for: Callable[[str], Space], scope: str
) -> None:
    """The run queues again, and Kueue chooses another flavor; nothing counts as a failure."""
    run = workers(space_for("fallback"), "either", 2, restartScope=scope)
    run.until("its pods wait for the flavor", lambda: set(pools(run).values()) == {"gpu"})
    before = workload(run)["metadata"]["uid"]
    run.until(
        "it has another flavor", lambda: set(pools(run).values()) == {"on-demand"}, budget=90.0
    )
    run.until_whole(2)
    assert workload(run)["metadata"]["uid"] != before
    assert run.status.get("disruptions", 0) == 0
    assert run.role("worker").get("failed", 0) == 0


def test_a_run_with_more_pod_sets_than_kueue_takes_has_no_quota(
    space_for: Callable[[str], Space], running: Running
) -> None:
    """It says so before any is taken."""
    shares = ", ".join(f"{{class: c{at}, count: 1}}" for at in range(8)) + ", {class: c8}"
    classes = "".join(
        f"---\napiVersion: fairlead.dev/v1alpha1\nkind: CapacityClass\nmetadata: {{name: c{at}}}\n"
        f"spec: {{nodes: [{{labels: {{shelf: '{at}'}}}}]}}\n"
        for at in range(9)
    )
    running.serve(f"{POLICIES}{classes}{policy('many', f'overrides: {{split: [{shares}]}}')}")
    try:
        run = workers(space_for("many"), "gpu", 9)
        run.until("it says so", lambda: "8 sets of pods at most" in said(run))
        mentions(said(run), "worker 0", "split")
        assert workload(run) == {}
        assert names.KUEUE_QUEUE in run.run()["metadata"]["labels"]
    finally:
        running.serve(POLICIES)
