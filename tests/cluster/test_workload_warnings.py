"""People who write workloads hear what becomes of the pods: at once, and by Events."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.manifests import open_definition, pod, policy_text
from tests.cluster.spaces import Json, Running, Space
from tests.cluster.webhooks import serving, told_of_workloads
from tests.eventually import eventually
from tests.objects import an_object, controlled_by
from tests.wording import mentions
from webhook import names, validating
from webhook.admission.workload_handler import MOST_VALUES
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook

pytest_plugins = ["tests.cluster.run_fixtures"]

POLICIES = policy_text(
    "pool-required",
    "match: {kinds: [job]}",
    "requirements: {nodeSelector: {cloud.google.com/gke-nodepool: on-demand}}",
)
POOL = "cloud.google.com/gke-nodepool"
# What a warning names beside the workload.
REASON = (
    "would be rejected",
    "policy pool-required",
    f"requirements.nodeSelector[{POOL}]",
    "must be 'on-demand'",
    "pod has 'other'",
)
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
# No port of anybody's.
NOBODY = f"https://127.0.0.1:1{validating.WORKLOADS_PATH}"
NAMES = "fairlead-warns-a", "fairlead-warns-b"


@pytest.fixture(scope="module")
def replicas(
    control_plane: ControlPlane, module_space: Space, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Running, Running]]:
    """Two webhooks over the same policies: pods of the space go to the first while it is there.

    The second one is told of workloads.
    """
    folder: Path = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    here = (module_space.name,)
    options = ("--events", "--nodes")
    webhooks = [
        serving(control_plane, folder, name=name, namespaces=here, options=options)
        for name in NAMES
    ]
    with ExitStack() as stack:
        first, second = map(stack.enter_context, webhooks)
        stack.enter_context(told_of_workloads(control_plane, second.webhook, here))
        try:
            yield first, second
        finally:
            for each in (first, second):
                forget(control_plane, each.webhook)


def forget(plane: ControlPlane, webhook: Webhook) -> None:
    """Have no more pods sent to it, though it runs."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    plane.api.call("DELETE", f"{path}/{webhook.name}")


@contextmanager
def served(space: Space, group: str, kind: str, version: str = "v1") -> Iterator[None]:
    """The API server serves a kind of another system meanwhile."""
    definition = open_definition(group, kind, version)
    install_definitions(space.plane.api, [definition])
    try:
        yield
    finally:
        space.delete("customresourcedefinitions", definition["metadata"]["name"])


def template(pool: str = "other", **labels: str) -> Json:
    """A pod template of a run that asks for a pool."""
    spec = pod("p")["spec"] | {"nodeSelector": {POOL: pool}, "restartPolicy": "Never"}
    return {"metadata": {"labels": {names.RUN: "r", **labels}}, "spec": spec}


def job(name: str, pool: str = "other", **spec: Any) -> Json:
    """A Job of one pod that asks for a pool."""
    made = {"template": template(pool), "backoffLimit": 0, **spec}
    return an_object("batch/v1", "Job", name, made)


def applied(module_space: Space, manifest: Json, *options: str) -> list[str]:
    """What kubectl warns of when this is applied; it is always taken."""
    done = module_space.kubectl.run("apply", "-f", "-", *options, stdin=json.dumps(manifest))
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "fairlead" in line]


def told(module_space: Space, manifest: Json) -> list[str]:
    """The warnings, once the API server has heard of the configuration."""
    return eventually(
        "workloads are warned of", lambda: applied(module_space, manifest, "--dry-run=server")
    )


def events(module_space: Space, owner: str) -> list[Json]:
    """Fairlead's Events on the object of this name."""
    query = f"involvedObject.name={owner},source=fairlead-webhook"
    found: list[Json] = module_space.kubectl.json("get", "events", f"--field-selector={query}")[
        "items"
    ]
    return found


def well_within_an_hour() -> None:
    """One Event is written for each hour of the clock: a test may not see two of them."""
    left = 3600 - time.time() % 3600
    if left < 60:
        # Not in hope: the hour of the clock is what the test may not cross.
        time.sleep(left)


def outcomes(replica: Running, outcome: str) -> float:
    """How many Events came to this."""
    return replica.metric("fairlead_events_total", outcome=outcome)


def refused(module_space: Space, owner: Json, *options: str) -> str:
    """Create a pod of the owner as its controller would; what the API server says."""
    manifest = {"apiVersion": "v1", "kind": "Pod", **template()}
    manifest["metadata"] |= {"generateName": "of-", "ownerReferences": controlled_by(owner)}
    done = module_space.kubectl.run("create", "-f", "-", *options, stdin=json.dumps(manifest))
    assert done.returncode == 1
    return done.stderr


def test_a_deployment_is_warned_of_when_its_template_changes(
    module_space: Space, replicas: tuple[Running, Running]
) -> None:
    """Not when it is scaled, and not for the ReplicaSet that it makes."""
    selector = {"matchLabels": {"app": "web"}}
    made = template(app="web")
    made["spec"] |= {"restartPolicy": "Always"}
    web: Json = an_object(
        "apps/v1", "Deployment", "web", {"replicas": 0, "selector": selector, "template": made}
    )
    told(module_space, web)
    before = replicas[1].metric("fairlead_workload_warnings_total")
    assert len(applied(module_space, web)) == 1
    assert module_space.kubectl.run("scale", "deployment", "web", "--replicas=1").stderr == ""
    web["spec"]["replicas"] = 2
    assert applied(module_space, web) == []
    eventually("it has a ReplicaSet", lambda: module_space.items("replicasets"))
    assert replicas[1].metric("fairlead_workload_warnings_total") == before + 1
    made["spec"]["nodeSelector"][POOL] = "another"
    assert len(applied(module_space, web)) == 1
    made["spec"]["nodeSelector"][POOL] = "on-demand"
    assert applied(module_space, web) == []


@pytest.mark.usefixtures("replicas")
def test_a_training_job_is_known_by_what_its_operator_adds(module_space: Space) -> None:
    """Its kind may come later than the configuration that names it."""
    unmarked = template()
    del unmarked["metadata"]["labels"][names.RUN]
    replica_specs = {
        "Master": {"template": unmarked},
        "Worker": {"replicas": 4, "template": unmarked},
    }
    training = an_object(
        "kubeflow.org/v1", "PyTorchJob", "train", {"pytorchReplicaSpecs": replica_specs}
    )
    with served(module_space, "kubeflow.org", "PyTorchJob"):
        said = told(module_space, training)
    (warning,) = said
    assert warning.startswith("Warning: fairlead: 5 pods ")
    mentions(warning, f"PyTorchJob train in {module_space.name}", *REASON)


STEPS = {
    "Workflow": (
        "argoproj.io",
        "v1alpha1",
        {
            "entrypoint": "main",
            "podMetadata": {"labels": {names.RUN: "r"}},
            "templates": [
                {"name": "main", "container": {"image": "i"}, "nodeSelector": {POOL: "other"}}
            ],
        },
    ),
    "TaskRun": (
        "tekton.dev",
        "v1",
        {"taskRef": {"name": "train"}, "podTemplate": {"nodeSelector": {POOL: "other"}}},
    ),
    "PipelineRun": (
        "tekton.dev",
        "v1",
        {
            "taskRunTemplate": {"podTemplate": {"nodeSelector": {POOL: "other"}}},
            "pipelineSpec": {"tasks": [{"name": "train", "taskRef": {"name": "train"}}]},
        },
    ),
}


@pytest.mark.parametrize("kind", STEPS)
def test_an_author_of_steps_is_warned_of_and_its_controller_is_not_asked(
    module_space: Space, replicas: tuple[Running, Running], kind: str
) -> None:
    """Argo's controller writes the status of a Workflow with the whole object."""
    group, version, spec = STEPS[kind]
    made: Json = an_object(
        f"{group}/{version}", kind, {"name": "steps", "labels": {names.RUN: "r"}}, spec
    )
    with served(module_space, group, kind, version):
        (warning,) = told(module_space, made)
        mentions(warning, f"{kind} steps in {module_space.name}", *REASON)
        module_space.create(made)
        before = asked_of_workloads(replicas[1])

        def patch(**change: Any) -> str:
            merge = (f"{kind.lower()}s", "steps", "--type=merge", "-p", json.dumps(change))
            return module_space.kubectl.run("patch", *merge).stderr

        assert patch(status={"phase": "Running"}) == patch(status={"phase": "Succeeded"}) == ""
        assert asked_of_workloads(replicas[1]) == before
        # Pods of Tekton have the labels of their object.
        patch(metadata={"labels": {"phase": "Succeeded"}}, status={"phase": "Failed"})
        assert asked_of_workloads(replicas[1]) == before + 1


def asked_of_workloads(replica: Running) -> float:
    """How many workloads the webhook was asked about."""
    return replica.metric("fairlead_admission_requests_total", result="foreseen")


@pytest.mark.usefixtures("replicas", "run_api")
def test_of_many_objects_in_one_file_each_warning_names_its_own(module_space: Space) -> None:
    """kubectl prints them below each other, and says of none which object it is about."""
    told(module_space, job("before"))
    typo = an_object(
        names.API_VERSION,
        names.RUN_KIND,
        "wrong",
        {"template": {"spec": {**pod("p")["spec"], "nodeSelectors": {POOL: "on-demand"}}}},
    )
    unmarked = {"metadata": {"labels": {"app": "bare"}}, "spec": pod("p")["spec"]}
    bare = an_object(
        "apps/v1",
        "Deployment",
        {"name": "bare", "labels": {names.RUN: "r"}},
        {"selector": {"matchLabels": {"app": "bare"}}, "template": unmarked},
    )
    labels = {names.RUN: "r", f"{names.GROUP}/knd": "job"}
    slips = [
        pod(name, labels=labels, nodeSelector={POOL: "on-demand"}) for name in ("slip-a", "slip-b")
    ]
    nowhere = job("nowhere", template=template("nowhere", **{names.KIND: "build"}))
    large = job("large")
    large["spec"]["template"]["spec"]["containers"][0]["args"] = ["a"] * MOST_VALUES
    items = [job("one"), typo, slips[0], nowhere, large, job("two"), bare, slips[1]]
    lines = applied(
        module_space, {"apiVersion": "v1", "kind": "List", "items": items}, "--dry-run=server"
    )
    titles = ["Deployment bare", "Job large", "Job nowhere", "Job one", "Job two", "Run wrong"]
    titles += ["pod slip-a", "pod slip-b"]
    named = [[title for title in titles if re.search(rf"\b{title}\b", line)] for line in lines]
    assert sorted(title for found in named for title in found) == titles, lines
    assert len(named) == len(titles)


def test_the_owner_of_a_rejected_pod_has_one_event(
    module_space: Space, control_plane: ControlPlane, replicas: tuple[Running, Running]
) -> None:
    """Made when its controller tries first, and by no other try, and by no other replica."""
    first, second = replicas
    well_within_an_hour()
    module_space.create(job("silent"))
    eventually("the Job has an Event", lambda: events(module_space, "silent"))
    described = module_space.kubectl("describe", "job", "silent")
    assert "PlacementRejected" in described
    mentions(described, "pod template of Job silent", "ask your admin")
    owner = module_space.get("jobs", "silent")
    before = outcomes(first, "repeated")
    assert "policy pool-required" in refused(module_space, owner)
    assert outcomes(first, "repeated") > before
    # What was told once is known to whoever comes after, by its name.
    forget(control_plane, first.webhook)
    written = outcomes(second, "written")
    assert "policy pool-required" in refused(module_space, owner)
    eventually("the second knows it", lambda: outcomes(second, "repeated"))
    assert outcomes(second, "written") == written
    assert [each["reason"] for each in events(module_space, "silent")] == ["PlacementRejected"]


def test_a_dry_run_makes_no_event(module_space: Space, replicas: tuple[Running, Running]) -> None:
    """It may have no effect, and is decided on all the same."""
    well_within_an_hour()
    owner = module_space.create(job("dry", suspend=True))
    assert "policy pool-required" in refused(module_space, owner, "--dry-run=server")
    assert "policy pool-required" in refused(module_space, owner)
    eventually("the Job has an Event", lambda: events(module_space, "dry"))
    assert len(events(module_space, "dry")) == 1
    assert outcomes(replicas[1], "failed") == 0


@pytest.mark.usefixtures("replicas")
def test_a_webhook_that_is_down_warns_of_nothing_and_stops_nothing(module_space: Space) -> None:
    """Workloads are created without it."""
    path = f"{CONFIGURATIONS}/{NAMES[1]}-workloads"
    api = module_space.plane.api
    known = api.get(path)["webhooks"]
    (entry,) = known
    api.patch(path, {"webhooks": [{**entry, "clientConfig": {"url": NOBODY}}]})
    try:
        eventually(
            "nobody is asked", lambda: not applied(module_space, job("alone"), "--dry-run=server")
        )
        assert applied(module_space, job("alone", suspend=True)) == []
        assert (
            module_space.kubectl("get", "job", "alone", "-o", "name").strip() == "job.batch/alone"
        )
    finally:
        api.patch(path, {"webhooks": known})
