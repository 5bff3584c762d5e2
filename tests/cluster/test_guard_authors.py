"""Who may have the controller make pods: the guard of Runs beside the real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.cluster.guards import guarded, type_warnings
from tests.cluster.live_runs import create_run, run_manifest
from tests.cluster.spaces import Space
from tests.objects import Json, an_object
from tests.wording import mentions
from webhook import names
from webhook.controller.owned_objects import created_for_runs
from webhook.guards import run_author_guard
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

# May write Runs and nothing else; may create pods, too.
RUNS_ONLY = "runs-only"
MAKER = "maker"
REFUSED = "may not create pods"


def as_user(
    user: str, space: Space, *command: str, stdin: str | None = None
) -> CompletedProcess[str]:
    """kubectl as somebody else."""
    return space.kubectl.run(*command, "--as", user, stdin=stdin)


@pytest.fixture
def space(run_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Space:
    """A namespace where one may write Runs only, and another may create pods, too."""
    space = Space(run_api, cluster_kubectl.within(namespace), namespace)
    verbs = "--verb=create,update,patch,delete,get"
    space.kubectl("create", "role", RUNS_ONLY, verbs, f"--resource=runs.{names.GROUP}")
    space.kubectl("create", "role", MAKER, "--verb=create", "--resource=pods,services")
    for user in (RUNS_ONLY, MAKER):
        space.kubectl(
            "create", "rolebinding", f"{user}-runs", f"--role={RUNS_ONLY}", f"--user={user}"
        )
    space.kubectl("create", "rolebinding", MAKER, f"--role={MAKER}", f"--user={MAKER}")
    return space


@pytest.fixture
def guard(space: Space) -> Iterator[None]:
    """The guard is in force."""
    manifest = json.dumps(run_manifest("probe"))

    def in_effect() -> bool:
        done = as_user(RUNS_ONLY, space, "create", "--dry-run=server", "-f", "-", stdin=manifest)
        return REFUSED in done.stderr

    with guarded(space.plane, run_author_guard(created_for_runs()), in_effect):
        yield


@pytest.mark.usefixtures("guard")
def test_an_author_must_be_allowed_to_create_the_pods(space: Space) -> None:
    """At creation and when the spec changes; the message says what is missing, and the cure."""
    assert type_warnings(space.plane, names.RUN_AUTHORS_GUARD) == []
    manifest = json.dumps(run_manifest("mine", suspend=True))
    refused = as_user(RUNS_ONLY, space, "create", "-f", "-", stdin=manifest)
    assert refused.returncode == 1
    mentions(refused.stderr, f"{RUNS_ONLY} {REFUSED} ", f"namespace {space.name}")
    mentions(refused.stderr, "ask its admins", "right to create pods")
    made = as_user(MAKER, space, "create", "-f", "-", stdin=manifest)
    assert (made.returncode, made.stderr) == (0, "")
    resume = ("patch", "run", "mine", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    assert REFUSED in as_user(RUNS_ONLY, space, *resume).stderr
    assert as_user(MAKER, space, *resume).returncode == 0


@pytest.mark.usefixtures("guard")
@pytest.mark.parametrize(
    ("spec", "resources"),
    [
        ({"framework": "jax", "replicas": {"worker": {}}}, ["pods", "services"]),
        (
            {"framework": "mpi", "replicas": {"launcher": {}, "worker": {}}},
            ["pods", "services", "configmaps", "secrets"],
        ),
        ({"kind": "notebook", "ports": [{"port": 8888}]}, ["deployments.apps", "services"]),
    ],
    ids=["jax", "mpi", "notebook"],
)
def test_an_author_must_be_allowed_to_create_all_that_the_run_becomes(
    space: Space, spec: Json, resources: list[str]
) -> None:
    """Each right is asked for, and no other: with the last one the Run is created."""
    manifest = json.dumps(run_manifest("mine", **spec))
    for resource in resources:
        refused = as_user(RUNS_ONLY, space, "create", "-f", "-", stdin=manifest)
        mentions(refused.stderr, "may not create " + resource.replace(".", " of "))
        space.kubectl("create", "role", resource, "--verb=create", f"--resource={resource}")
        binding = ("create", "rolebinding", resource, f"--role={resource}")
        space.kubectl(*binding, f"--user={RUNS_ONLY}")
    made = as_user(RUNS_ONLY, space, "create", "-f", "-", stdin=manifest)
    assert (made.returncode, made.stderr) == (0, "")


@pytest.mark.usefixtures("guard")
def test_an_author_of_a_delegated_run_must_be_allowed_to_create_its_object(space: Space) -> None:
    """The right to create pods is not enough, nor is that for the kind of another framework."""
    spec = {"backend": "kubeflow", "framework": "pytorch", "replicas": {"worker": {}}}
    manifest = json.dumps(run_manifest("mine", **spec))
    create = ("create", "--dry-run=server", "-f", "-")
    mentions(
        as_user(MAKER, space, *create, stdin=manifest).stderr,
        f"{MAKER} may not create pytorchjobs of kubeflow.org",
        f"namespace {space.name}",
        "backend kubeflow",
    )
    # The API server does not serve the kind, so kubectl refuses to make a role for it.
    rule = {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["create"]}
    role = an_object("rbac.authorization.k8s.io/v1", "Role", "engine", rules=[rule])
    space.create(role)
    space.kubectl("create", "rolebinding", "engine", "--role=engine", f"--user={RUNS_ONLY}")
    made = as_user(RUNS_ONLY, space, *create, stdin=manifest)
    assert (made.returncode, made.stderr) == (0, "")
    other = json.dumps(run_manifest("mine", **{**spec, "framework": "jax"}))
    mentions(as_user(RUNS_ONLY, space, *create, stdin=other).stderr, "may not create jaxjobs")


@pytest.mark.usefixtures("guard")
def test_a_pair_of_backend_and_framework_without_a_kind_is_denied(space: Space) -> None:
    """Even to an administrator: the controller would create nothing."""
    spec = {"backend": "kubeflow", "framework": "ray", "replicas": {"head": {}}}
    manifest = json.dumps(run_manifest("mine", **spec))
    create = ("create", "--dry-run=server", "-f", "-")
    refused = as_user(MAKER, space, *create, stdin=manifest)
    mentions(refused.stderr, "spec.backend", "kubeflow does not run framework ray", "native")


@pytest.mark.usefixtures("guard")
def test_writes_that_create_no_pods_are_allowed(space: Space) -> None:
    """Metadata, a deletion; the garbage collector, which may create no pod, takes its finalizer."""
    space.create(run_manifest("mine"))
    label = as_user(RUNS_ONLY, space, "label", "run", "mine", "team=a")
    assert (label.returncode, label.stderr) == (0, "")
    space.create(
        an_object(
            "v1",
            "ConfigMap",
            {
                "name": "owned",
                "ownerReferences": [
                    {
                        "apiVersion": names.API_VERSION,
                        "kind": names.RUN_KIND,
                        "name": "mine",
                        "uid": space.get("runs", "mine")["metadata"]["uid"],
                        "blockOwnerDeletion": True,
                    }
                ],
            },
        )
    )
    cascade = ("--cascade=foreground", "--wait=false")
    assert as_user(RUNS_ONLY, space, "delete", "run", "mine", *cascade).returncode == 0
    space.kubectl("wait", "--for=delete", "run/mine", "--timeout=120s")


@pytest.mark.usefixtures("guard", "controller")
def test_the_controller_is_not_hindered(space: Space) -> None:
    """It writes the status, which is a resource of its own, and makes the pods."""
    live = create_run(space, "runs", framework="jax", replicas={"worker": {"count": 2}})
    live.until_running("worker-0", "worker-1")
    live.until_phase("Running")
