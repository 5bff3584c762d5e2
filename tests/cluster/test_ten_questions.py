"""Questions of those who run a cluster, each answered by one command, in one scene."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cluster.manifests import WORKERS_ON_SPOT, pod, policy_text, template, workload
from tests.cluster.spaces import LOOK, Space, is_stamped, stamp
from tests.cluster.webhooks import erase, serving
from tests.control_planes import clear_namespace
from tests.eventually import eventually
from tests.wording import line_with
from webhook import names
from webhook.cli import fairlead
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.times import to_second

pytest_plugins = ["tests.cluster.policy_fixtures", "tests.cluster.run_fixtures"]

CONFIGURATION = (
    f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"
    f"{names.WEBHOOK_CONFIGURATION}"
)
POLICY_OBJECTS = f"/apis/{names.API_VERSION}/{names.PLACEMENT_POLICIES}"
# Other tests' namespaces, which may still be going away, are none of these policies' business.
POLICIES = (
    (
        WORKERS_ON_SPOT
        + policy_text(
            "fast-queue",
            "priority: 10",
            "match: {roles: [worker, ps]}",
            "overrides: {labels: {queue: fast}, annotations: {example.com/queue: fast}}",
        )
        + policy_text(
            "slow-queue",
            "match: {roles: [worker]}",
            "overrides: {annotations: {example.com/queue: slow}}",
        )
        + policy_text(
            "notebooks-stay",
            "match: {kinds: [notebook]}",
            "overrides: {capacity: [{class: spot, mode: Prevent}]}",
        )
        + policy_text(
            "dask-pool", "match: {frameworks: [dask]}", "overrides: {nodeSelector: {pool: dask}}"
        )
    )
    .replace("match: {", 'match: {namespaces: ["research-*"], ')
    .removesuffix("---")
)
# The branch that is to be merged: parameter servers go to spot nodes as well.
BRANCH = POLICIES.replace(
    "roles: [worker]}\n  overrides: {capacity",
    "roles: [worker, ps]}\n  overrides: {capacity",
)
UNTIL = to_second(datetime.now(UTC) + timedelta(days=30))
EXCEPTION = f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {{name: debugging}}
spec:
  policies: [workers-on-spot]
  match: {{podSelector: {{matchLabels: {{debug: anna}}}}}}
  until: "{UNTIL}"
  reason: Anna looks for a leak.
"""


def of(role: str) -> dict[str, str]:
    """The labels of a pod of a run in that role."""
    return {names.RUN: "train", names.ROLE: role}


@dataclass(frozen=True)
class Scene:
    """A cluster with policies, a webhook that serves them, and some pods."""

    plane: ControlPlane
    kubectl: Kubectl
    namespace: str

    def ask(self, *words: str) -> Result:
        """One command, as it would be typed. What it says is shown beside the test's result."""
        done = CliRunner().invoke(fairlead, [*words, "--kubeconfig", str(self.plane.kubeconfig)])
        print(f"$ fairlead {shlex.join(words)}\n{done.output}(exit code {done.exit_code})")
        return done


def unplaced(plane: ControlPlane, space: Space) -> None:
    """A worker that is created while no pods are sent to the webhook."""
    known = plane.api.get(CONFIGURATION)
    cut = {**known, "webhooks": [{**each, "rules": []} for each in known["webhooks"]]}
    plane.api.call("PUT", CONFIGURATION, cut)
    probe = pod("probe", labels=of("worker"))

    def stamped() -> bool:
        return is_stamped(space.create(probe, dry_run=True))

    eventually("the API server forgets the webhook", lambda: not stamped())
    space.create(pod("unseen", labels=of("worker")))
    now = plane.api.get(CONFIGURATION)
    plane.api.call("PUT", CONFIGURATION, {**now, "webhooks": known["webhooks"]})
    eventually("the API server sends pods again", stamped)


def play(plane: ControlPlane, space: Space) -> None:
    """What has happened before anybody asks."""
    for name, role in (("train-worker-0", "worker"), ("train-ps-0", "ps")):
        space.create(pod(name, labels=of(role)))
    made = workload("Deployment", "web", template(labels=of("worker")), replicas=2)
    space.create(made)
    debugged = pod("debugged", labels={**of("worker"), "debug": "anna"})

    def excepted() -> bool:
        dry = space.create(debugged, dry_run=True)
        return "debugging" in stamp(dry).get("exceptions", {})

    eventually("the webhook knows the exception", excepted)
    space.create(debugged)
    eventually("the Deployment's pods are there", lambda: len(space.pods()) == 5, period=LOOK)
    unplaced(plane, space)


def counted(plane: ControlPlane) -> bool:
    """Whether the controller has seen what the webhook serves and counts."""
    policies = plane.api.get(POLICY_OBJECTS)["items"]
    by_name = {each["metadata"]["name"]: each.get("status") or {} for each in policies}
    return by_name["workers-on-spot"].get("podsDecided", 0) >= 3 and all(
        each.get("servedHashes") for each in by_name.values()
    )


@pytest.fixture(scope="module")
def scene(
    policy_api: ControlPlane, run_api: ControlPlane, cluster_kubectl: Kubectl
) -> Iterator[Scene]:
    """All ten are asked of one cluster, in which nothing changes any more."""
    assert run_api
    plane, kubectl = policy_api, cluster_kubectl
    namespace = f"research-{uuid.uuid4().hex[:6]}"
    plane.create_namespace(namespace)
    with ExitStack() as stack:
        stack.callback(clear_namespace, plane, namespace)
        erase(plane)
        stack.callback(erase, plane)
        kubectl("apply", "--server-side", "-f", "-", stdin=POLICIES)
        running = stack.enter_context(serving(plane, None))
        replica = ("--webhook-replica", running.webhook.health_url.rpartition("/")[2])
        options = ("--no-leader-election", "--policy-status-interval", "1", *replica)
        stack.callback(plane.stop_component, start_controller(plane, options=options).name)
        kubectl("apply", "--server-side", "-f", "-", stdin=EXCEPTION)
        play(plane, Space(plane, kubectl.within(namespace), namespace))
        eventually("the controller writes what the webhook has counted", lambda: counted(plane))
        found = Scene(plane, kubectl, namespace)

        def same() -> bool:
            return found.ask("policy", "replicas").exit_code == 0

        # Some seconds after it is served.
        eventually("the controller has reported the set with the exception", same, period=LOOK)
        yield found


SPOT = "cloud.google.com/gke-spot"


# The question: the command, its exit code if that is known, and what the answer has.
QUESTIONS: dict[str, tuple[str, int | None, tuple[str, ...]]] = {
    "why did this pod get this toleration": (
        f"explain pod train-worker-0 -n NAMESPACE --field tolerations[{SPOT}]",
        0,
        (f"{SPOT}=true:NoSchedule", "stamp  workers-on-spot", "capacity[spot]: Constrain"),
    ),
    "why did this pod not get it": (
        "explain pod train-ps-0 -n NAMESPACE --field tolerations",
        0,
        ("match.roles: role is ps", "wants worker"),
    ),
    "which policies never match": (
        "policy list --never-matched",
        1,
        ("2 of 5 policies", "never matched a known pod", "since 2", "dask-pool", "notebooks-stay"),
    ),
    "which pods came through unplaced": (
        "doctor --check 'unplaced pods' -n NAMESPACE",
        None,
        ("1 pod ", "no stamp: unseen"),
    ),
    "can this policy leave a pod without a node": (
        "check cluster --nodes cluster",
        1,
        ("placementpolicies/dask-pool", "pool=dask leaves none", "1 error"),
    ),
    "which exceptions are in force and until when": (
        "policy exceptions --in-force",
        0,
        ("debugging", UNTIL[:10]),
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_its_answer(scene: Scene, question: str) -> None:
    """By one command."""
    words, code, facts = QUESTIONS[question]
    found = scene.ask(*shlex.split(words.replace("NAMESPACE", scene.namespace)))
    assert code in (None, found.exit_code)
    for fact in facts:
        assert fact in found.stdout


def test_who_set_this_key_and_who_lost_it(scene: Scene) -> None:
    """Both, with the reason."""
    found = scene.ask(
        *("explain", "pod", "train-worker-0", "-n", scene.namespace),
        *("--field", "annotations.example.com/queue"),
    )
    words = [line.split() for line in found.stdout.splitlines()[1:]]
    assert ["set", "fast-queue,"] in [each[:2] for each in words]
    assert ["lost", "slow-queue,"] in [each[:2] for each in words]


def test_which_pods_does_this_policy_touch_now(scene: Scene) -> None:
    """Live pods by their stamps, those it would touch, and workloads."""
    found = scene.ask("policy", "get", "workers-on-spot")
    assert found.exit_code == 0
    lines = {line.split()[0]: line for line in found.stdout.splitlines()[1:] if line}
    assert "train-worker-0" in lines["applied"]
    assert "unseen" in lines["would"]
    assert "debugged: by debugging" in lines["exempt"]
    assert "Deployment/web" in lines["workload"]
    assert "train-ps-0" not in found.stdout


def test_what_changes_if_this_branch_is_merged(scene: Scene, tmp_path: Path) -> None:
    """The pods that would be placed differently, by policy; no merge ends an exception."""
    (tmp_path / "policies.yaml").write_text(BRANCH)
    found = scene.ask("diff", "cluster", str(tmp_path), "-n", scene.namespace)
    assert found.exit_code == 1
    line_with(found.stdout, "6 pods of runs: ", "1 placed differently")
    line_with(found.stderr, "exception", f"counts in {tmp_path} too")
    assert "train-ps-0" in found.stdout
    assert "workers-on-spot" in found.stdout


def test_do_all_replicas_serve_the_same_policies(scene: Scene) -> None:
    """The hash of each, and whether it is that of the cluster's objects."""
    found = scene.ask("policy", "replicas")
    line_with(found.stdout, "one replica", "the same set", "that of the cluster")


def test_what_is_in_force_is_listed_in_its_order(scene: Scene) -> None:
    """The one that wins first; nothing is asked of replicas that cannot be reached."""
    found = scene.ask("policy", "list")
    assert found.exit_code == 0
    names_ = [line.split()[1] for line in found.stdout.splitlines()[3:] if line[:1].isdigit()]
    assert names_[0] == "fast-queue"
    assert sorted(names_) == sorted(
        ["dask-pool", "fast-queue", "notebooks-stay", "slow-queue", "workers-on-spot"]
    )
