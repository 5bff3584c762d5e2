"""Who may have the controller make pods: the guard of Runs beside the real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.cluster.guards import guarded, type_warnings
from tests.cluster.rooms import Room
from tests.cluster.scenes import play, run_manifest
from tests.wording import mentions
from webhook import names
from webhook.guards import run_author_guard
from webhook.run.backends.engines import created_objects
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

# May write Runs and nothing else; may create pods, too.
RUNS_ONLY = "runs-only"
MAKER = "maker"
REFUSED = "may not create pods"


def as_user(
    user: str, room: Room, *command: str, stdin: str | None = None
) -> CompletedProcess[str]:
    """kubectl as somebody else."""
    return room.kubectl.run(*command, "--as", user, stdin=stdin)


@pytest.fixture
def room(run_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Room:
    """A namespace where one may write Runs only, and another may create pods, too."""
    room = Room(run_api, cluster_kubectl.within(namespace), namespace)
    verbs = "--verb=create,update,patch,delete,get"
    room.kubectl("create", "role", RUNS_ONLY, verbs, f"--resource=runs.{names.GROUP}")
    room.kubectl("create", "role", MAKER, "--verb=create", "--resource=pods")
    for user in (RUNS_ONLY, MAKER):
        room.kubectl(
            "create", "rolebinding", f"{user}-runs", f"--role={RUNS_ONLY}", f"--user={user}"
        )
    room.kubectl("create", "rolebinding", MAKER, f"--role={MAKER}", f"--user={MAKER}")
    return room


@pytest.fixture
def guard(room: Room) -> Iterator[None]:
    """The guard is in force."""
    manifest = json.dumps(run_manifest("probe"))

    def in_effect() -> bool:
        done = as_user(RUNS_ONLY, room, "create", "--dry-run=server", "-f", "-", stdin=manifest)
        return REFUSED in done.stderr

    with guarded(room.plane, run_author_guard(created_objects()), in_effect):
        yield


@pytest.mark.usefixtures("guard")
def test_an_author_must_be_allowed_to_create_the_pods(room: Room) -> None:
    """At creation and when the spec changes; the message says what is missing, and the cure."""
    assert type_warnings(room.plane, names.RUN_AUTHORS_GUARD) == []
    manifest = json.dumps(run_manifest("mine", suspend=True))
    refused = as_user(RUNS_ONLY, room, "create", "-f", "-", stdin=manifest)
    assert refused.returncode == 1
    mentions(refused.stderr, f"{RUNS_ONLY} {REFUSED} ", f"namespace {room.name}")
    mentions(refused.stderr, "ask its admins", "right to create pods")
    made = as_user(MAKER, room, "create", "-f", "-", stdin=manifest)
    assert (made.returncode, made.stderr) == (0, "")
    resume = ("patch", "run", "mine", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert REFUSED in as_user(RUNS_ONLY, room, *resume).stderr
    assert as_user(MAKER, room, *resume).returncode == 0


@pytest.mark.usefixtures("guard")
def test_an_author_of_a_delegated_run_must_be_allowed_to_create_its_object(room: Room) -> None:
    """The right to create pods is not enough, nor is that for the kind of another framework."""
    spec = {"backend": "kubeflow", "framework": "pytorch", "replicas": {"worker": {}}}
    manifest = json.dumps(run_manifest("mine", **spec))
    create = ("create", "--dry-run=server", "-f", "-")
    mentions(
        as_user(MAKER, room, *create, stdin=manifest).stderr,
        f"{MAKER} may not create pytorchjobs of kubeflow.org",
        f"namespace {room.name}",
        "backend kubeflow",
    )
    # The API server does not serve the kind, so kubectl refuses to make a role for it.
    rule = {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["create"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "engine"},
        "rules": [rule],
    }
    room.create(role)
    room.kubectl("create", "rolebinding", "engine", "--role=engine", f"--user={RUNS_ONLY}")
    made = as_user(RUNS_ONLY, room, *create, stdin=manifest)
    assert (made.returncode, made.stderr) == (0, "")
    other = json.dumps(run_manifest("mine", **{**spec, "framework": "jax"}))
    mentions(as_user(RUNS_ONLY, room, *create, stdin=other).stderr, "may not create jaxjobs")


@pytest.mark.usefixtures("guard")
def test_a_pair_of_backend_and_framework_without_a_kind_is_denied(room: Room) -> None:
    """Even to an administrator: the controller would create nothing."""
    spec = {"backend": "kubeflow", "framework": "ray", "replicas": {"head": {}}}
    manifest = json.dumps(run_manifest("mine", **spec))
    create = ("create", "--dry-run=server", "-f", "-")
    refused = as_user(MAKER, room, *create, stdin=manifest)
    mentions(refused.stderr, "spec.backend", "kubeflow does not run framework ray", "native")


@pytest.mark.usefixtures("guard")
def test_writes_that_create_no_pods_are_allowed(room: Room) -> None:
    """Metadata, a deletion; the garbage collector, which may create no pod, takes its finalizer."""
    room.create(run_manifest("mine"))
    label = as_user(RUNS_ONLY, room, "label", "run", "mine", "team=a")
    assert (label.returncode, label.stderr) == (0, "")
    room.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "owned",
                "ownerReferences": [
                    {
                        "apiVersion": names.API_VERSION,
                        "kind": names.RUN_KIND,
                        "name": "mine",
                        "uid": room.get("runs", "mine")["metadata"]["uid"],
                        "blockOwnerDeletion": True,
                    }
                ],
            },
        }
    )
    cascade = ("--cascade=foreground", "--wait=false")
    assert as_user(RUNS_ONLY, room, "delete", "run", "mine", *cascade).returncode == 0
    room.kubectl("wait", "--for=delete", "run/mine", "--timeout=120s")


@pytest.mark.usefixtures("guard", "controller")
def test_the_controller_is_not_hindered(room: Room) -> None:
    """It writes the status, which is a resource of its own, and makes the pods."""
    scene = play(room, "runs", framework="jax", replicas={"worker": {"count": 2}})
    scene.until_running("worker-0", "worker-1")
    scene.until_phase("Running")
