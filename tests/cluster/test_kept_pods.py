"""Pods that a rollout keeps: what they are compared with, and what restarts them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.accounts import account, grant
from tests.cluster.manifests import policy_text, template, workload
from tests.cluster.spaces import LOOK, NewNamespace, Running, Space
from tests.cluster.webhooks import serving
from tests.eventually import eventually
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]

Json = dict[str, Any]
WORKER = {names.RUN: "r", names.ROLE: "worker"}
EDITED = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
NOW = policy_text("noted", "defaults: {annotations: {example.com/note: a}}")
# Another set with the same effect on these pods: what their author wrote is looked at then.
WIDER = NOW + policy_text(
    "other", "match: {kinds: [build]}", "defaults: {terminationGracePeriodSeconds: 5}"
)
LATER = NOW.replace(": a}", ": b}")
PARTITION = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
KEPT: dict[str, Json] = {
    "partition": workload(
        "StatefulSet",
        "db",
        template(labels=WORKER),
        serviceName="db",
        replicas=2,
        podManagementPolicy="Parallel",
        updateStrategy=PARTITION,
    ),
    "paused": workload("Deployment", "web", template(labels=WORKER)),
    "OnDelete": workload(
        "StatefulSet",
        "cache",
        template(labels=WORKER),
        serviceName="cache",
        updateStrategy={"type": "OnDelete"},
    ),
}


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """The webhook, whose policies a test changes."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "p.yaml").write_text(NOW)
    with serving(control_plane, folder, options=("--poll-interval", "0.2")) as found:
        yield found


@pytest.fixture(params=KEPT)
def kept(request: pytest.FixtureRequest, running: Running, new_namespace: NewNamespace) -> Space:
    """A namespace with a workload whose template was edited since its pods were made."""
    running.serve(NOW)
    space = new_namespace({"kept": request.param})
    made = KEPT[request.param]
    space.create(made)
    count = made["spec"].get("replicas", 1)
    first = space.wait_for_pods(count)
    resource, name = f"{made['kind'].lower()}s", made["metadata"]["name"]
    pause = {"paused": True} if request.param == "paused" else {}
    path = f"/apis/apps/v1/namespaces/{space.name}/{resource}/{name}"
    space.plane.api.patch(path, {"spec": {**pause, "template": {"spec": EDITED}}})
    if request.param == "partition":
        settled(space, lambda pods: pods.get("db-1", "") not in uids(first).values())
    eventually("it is seen", lambda: observed(space.plane.api.get(path)), period=LOOK)
    return space


def observed(found: Json) -> bool:
    status = found["status"]
    revised = status.get("currentRevision") != status.get("updateRevision") or "partition" not in (
        json.dumps(found["spec"])
    )
    return revised and status["observedGeneration"] == found["metadata"]["generation"]


def uids(pods: list[Json]) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}


def settled(space: Space, holds: Callable[[dict[str, str]], bool]) -> None:
    """Wait until the pods, by name and uid, are so, and all bound."""

    def enough() -> bool:
        pods = space.pods()
        return all("nodeName" in each["spec"] for each in pods) and holds(uids(pods))

    eventually("its pods are settled", enough, explain=space.pods, period=LOOK)


def kind_of(space: Space) -> str:
    (labels,) = [
        each["metadata"]["labels"]
        for each in space.plane.api.get("/api/v1/namespaces")["items"]
        if each["metadata"]["name"] == space.name
    ]
    return str(labels["kept"])


def test_they_are_compared_with_pods_of_what_makes_them_again(kept: Space, tmp_path: Path) -> None:
    """Of an edit that does not reach them yet they have nothing; under OnDelete it would."""
    policies = tmp_path / "p.yaml"
    policies.write_text(WIDER)
    how = kind_of(kept)
    made = KEPT[how]
    title = f"{made['kind']}/{made['metadata']['name']}"
    same = how != "OnDelete"
    count = made["spec"].get("replicas", 1)
    found = kept.ask("pods", "--otherwise", "--policies", policies)
    assert found.exit_code == (0 if same else 1), found.output
    for each in kept.pods():
        one = kept.ask("explain", f"pod/{each['metadata']['name']}", "--policies", policies)
        assert one.exit_code == (0 if same else 1), one.output
    whole = kept.ask("explain", title.lower(), "--policies", policies)
    assert whole.exit_code == (0 if same else 1), whole.output
    mentions(whole.output, f"{count if same else 0} of {count} as new ones would be")
    assert ("not from this template" in whole.output) is same


def restart(space: Space, policies: Path) -> tuple[str, str]:
    """The recipe of the guide; its owners and what stderr says."""
    found = space.ask("pods", "--otherwise", "--policies", policies, "-o", "owners")
    for line in found.stdout.splitlines():
        _, owner = line.split()
        space.kubectl("rollout", "restart", owner)
    return found.stdout, found.stderr


def test_the_recipe_restarts_what_a_restart_replaces_and_names_the_rest(
    kept: Space, running: Running, tmp_path: Path
) -> None:
    """So it ends; the note says what to do with the others, and that ends too."""
    running.serve(LATER)
    policies = tmp_path / "p.yaml"
    policies.write_text(LATER)
    before = uids(kept.pods())
    how = kind_of(kept)
    owners, notes = restart(kept, policies)
    if how == "partition":
        assert owners == f"{kept.name} statefulset.apps/db\n"
        settled(kept, lambda pods: pods.get("db-1", before["db-1"]) != before["db-1"])
        owners, notes = restart(kept, policies)
    assert owners == ""
    cure = {
        "partition": f"kubectl delete pod -n {kept.name} db-0",
        "paused": f"kubectl rollout resume -n {kept.name} deployment.apps/web",
        "OnDelete": f"kubectl delete pod -n {kept.name} cache-0",
    }[how]
    mentions(notes, cure)
    # kubectl would wait until the pod is gone, and one of the same name is there at once.
    wait = ["--wait=false"] if "delete" in cure else []
    kept.kubectl(*cure.split()[1:], *wait)
    settled(
        kept,
        lambda pods: not set(pods.values()) & set(before.values()) and len(pods) == len(before),
    )
    done = kept.ask("pods", "--otherwise", "--policies", policies)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("kept", ["partition"], indirect=True)
def test_a_revision_that_may_not_be_read_is_unknown(kept: Space, tmp_path: Path) -> None:
    """The pod below the partition cannot be judged, and the right that is missing is named."""
    policies = tmp_path / "p.yaml"
    policies.write_text(WIDER)
    may = [
        {"apiGroups": ["", "apps"], "resources": each, "verbs": ["get", "list"]}
        for each in (["pods", "namespaces"], ["statefulsets"])
    ]
    grant(kept.kubectl, "reader", "reader", *may)
    config = account(kept.kubectl, "reader", tmp_path / "kubeconfig")
    found = kept.ask("pods", "--otherwise", "--policies", policies, kubeconfig=config)
    assert found.exit_code == 2, found.output
    mentions(found.output, "ControllerRevision", "1 cannot be")
    one = kept.ask("explain", "pod/db-0", "--policies", policies, kubeconfig=config)
    assert one.exit_code == 1, one.output
    mentions(one.output, "unknown", "kubectl auth can-i get controllerrevisions")
