"""The controller is no ladder: with its rights nobody gets what he could not make himself.

That Pod Security admission still applies is in test_controller_refusals.py, who may write a Run
at all in test_guard_authors.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.live_runs import CONTAINER, create_run
from tests.cluster.manifests import pod
from tests.cluster.spaces import Json, NewNamespace, Space
from tests.objects import an_object, controlled_by
from tests.wording import mentions
from webhook import names

pytest_plugins = ["tests.cluster.run_fixtures", "tests.cluster.webhook_fixtures"]

EVERYTHING = "pods,services,configmaps,secrets,deployments,events,leases"


def made_for(space: Space, run: str) -> list[Json]:
    """All objects of the whole cluster that say that they are this run's."""
    uid = space.get("runs", run)["metadata"]["uid"]
    listed: list[Json] = space.kubectl.json(
        "get", EVERYTHING, "--all-namespaces", "-l", f"{names.RUN_UID}={uid}"
    )["items"]
    return listed


def test_all_that_is_made_for_a_run_is_in_its_namespace(run_space: Space) -> None:
    """And is owned by it, so that it goes with it: pods, Service, keys and hostfile."""
    roles: Json = {"launcher": {}, "worker": {"count": 2}}
    live = create_run(run_space, "mpi", framework="mpi", replicas=roles)
    live.until_running("launcher-0", "worker-0", "worker-1")
    found = made_for(run_space, "mpi")
    assert {each["kind"] for each in found} == {"Pod", "Service", "ConfigMap", "Secret"}
    assert {each["metadata"]["namespace"] for each in found} == {run_space.name}
    for each in found:
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == (names.RUN_KIND, "mpi")


@pytest.mark.parametrize(
    "metadata",
    [
        {"namespace": "kube-system"},
        {"name": "etcd-0"},
        {
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "y"}
            ]
        },
    ],
)
def test_a_template_names_neither_namespace_nor_name_nor_owner(
    run_space: Space, metadata: Json
) -> None:
    """Such a Run is over before a pod is made, and says what has to be removed."""
    (field,) = metadata
    template: Json = {"metadata": metadata, "spec": {"containers": [CONTAINER]}}
    live = create_run(run_space, "climber", template=template)
    live.until_phase("Failed")
    message = live.condition("Failed")["message"]
    mentions(message, f"template.metadata.{field}: ", "not reach the pods")
    assert made_for(run_space, "climber") == []


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("serviceAccountName", "no-such", 'serviceaccount "no-such" not found'),
        ("serviceAccountName", "kube-system/default", "may not contain '/'"),
        ("volumes", [{"name": "v", "secret": {"secretName": "kube-system/x"}}], ""),
    ],
)
def test_accounts_and_secrets_are_those_of_the_namespace(
    run_space: Space, field: str, value: Any, words: str
) -> None:
    """A pod can name no others, nor can a Run: as for any pod its author would create."""
    template: Json = {"spec": {"containers": [CONTAINER], field: value}}
    live = create_run(run_space, "elsewhere", template=template)
    if words:
        live.until("it is refused", lambda: words in live.condition("Created").get("message", ""))
        assert live.pods() == {}
    else:
        # Kubernetes takes the name as it is, and no node will ever find such a Secret.
        live.until("the pod is there", lambda: len(live.pods()) == 1)
        (seen,) = live.pods().values()
        assert seen["metadata"]["namespace"] == run_space.name


def test_keys_that_were_made_beforehand_are_not_the_run_s(run_space: Space) -> None:
    """Who knows the uid of a suspended run knows the name that earlier versions trusted."""
    roles: Json = {"launcher": {}, "worker": {"count": 2}}
    live = create_run(run_space, "mpi", framework="mpi", replicas=roles, suspend=True)
    live.until_phase("Suspended")
    uid = run_space.get("runs", "mpi")["metadata"]["uid"]
    forged = f"mpi-ssh-{uid[:8]}"
    known = {"ssh-privatekey": "Zm9yZ2Vk", "ssh-publickey": "Zm9yZ2Vk"}
    run_space.create(
        {
            **an_object("v1", "Secret", forged),
            "type": "kubernetes.io/ssh-auth",
            "data": known,
        }
    )
    assert "sshSecret" not in live.status
    run_space.kubectl("patch", "run", "mpi", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    pods = live.until_running("launcher-0", "worker-0", "worker-1")
    mounted = {
        volume["secret"]["secretName"]
        for pod in pods.values()
        for volume in pod["spec"]["volumes"]
        if "secret" in volume
    }
    assert mounted == {live.status["sshSecret"]}
    assert forged not in mounted
    made = [each for each in made_for(run_space, "mpi") if each["kind"] == "Secret"]
    assert {each["metadata"]["name"] for each in made} == mounted


def test_a_forged_replica_in_another_namespace_counts_for_nothing(
    run_space: Space, new_namespace: NewNamespace
) -> None:
    """An owner reference means an owner of the same namespace: the run makes its own pods."""
    other = new_namespace({})
    live = create_run(
        run_space, "real", framework="jax", suspend=True, replicas={"worker": {"count": 1}}
    )
    live.until_phase("Suspended")
    run = live.run()
    marks = {names.RUN_UID: run["metadata"]["uid"], names.MANAGED_BY: names.MANAGER}
    forged = pod("real-worker-0", labels={names.RUN: "real", **marks}, schedulerName="nobody")
    forged["metadata"]["ownerReferences"] = controlled_by(run)
    other.create(forged)
    live.set(suspend=False)
    (seen,) = live.until_running("worker-0").values()
    assert seen["metadata"]["namespace"] == run_space.name
    live.until("one is active", lambda: live.role("worker").get("active") == 1)


def test_a_template_cannot_pass_for_another_run(run_space: Space) -> None:
    """The labels that the controller selects by are written last, over those of the template."""
    labels = {names.RUN: "other", names.RUN_UID: "0", names.MANAGED_BY: "else"}
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    live = create_run(run_space, "plain", template=template)
    (seen,) = live.until_running("master-0").values()
    own = seen["metadata"]["labels"]
    assert own[names.RUN] == "plain"
    assert own[names.RUN_UID] == live.run()["metadata"]["uid"]
    assert own[names.MANAGED_BY] == names.MANAGER
