"""What is particular to JobSet, MPIJob and DaskJob as engines of delegated runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.run.runs import a_run, containers, spec_of
from tests.run.test_delegated import Engine
from tests.wording import mentions
from webhook import names
from webhook.errors import InvalidRun
from webhook.run.actions import CreateEngineObject, DeleteEngineObject
from webhook.run.backends.engine_object import delegated_object, render_delegated
from webhook.run.backends.engine_pods import assign_replicas
from webhook.run.backends.engines import ENGINES, MPI_KEY, VARIANTS, created_objects
from webhook.run.model.spec import MAX_INT32
from webhook.run.observed import OwnedPod

MPI = {"framework": "mpi", "replicas": {"launcher": {}, "worker": {"count": 2}}}
DASK = {
    "backend": "dask",
    "framework": "dask",
    "replicas": {"scheduler": {}, "worker": {"count": 2}, "driver": {}},
}
LIMITS = {
    "backoffLimit": 5,
    "activeDeadlineSeconds": 60,
    "ttlSecondsAfterFinished": 9,
    "suspend": True,
    "cleanPodPolicy": "Running",
}


def rendered(**spec: Any) -> dict[str, Any]:
    whole = {"template": spec_of(containers("main")), "backend": "kubeflow", **spec}
    return delegated_object(a_run("mnist", whole))


def dask(**spec: Any) -> Engine:
    """A run on Dask, whose pods run."""
    engine = Engine(**{**DASK, **spec}).look()
    engine.object(conditions={"Running": ("", "")})
    for name, role in (
        ("mnist-scheduler-5f-abcde", "scheduler"),
        ("mnist-default-worker-b-77-abcde", "worker"),
        ("mnist-default-worker-a-66-fghij", "worker"),
        ("mnist-runner", "job-runner"),
    ):
        # A Deployment has one ReplicaSet.
        fields: dict[str, Any] = {"uid": f"uid-{name}", "run_uid": name[:-6], "attempt": 0}
        fields |= {"phase": "Running", "ready": True, "index": 0, "role": role}
        pods = (*engine.observed.pods, OwnedPod(name=name, **fields))
        engine.observed = replace(engine.observed, pods=pods)
    return engine.look()


def test_fairlead_acts_on_the_end_of_a_jobset() -> None:
    """No limit of JobSet or of a Job ends it before; pods and Jobs are found by a label."""
    made = rendered(backend="jobset", framework="pytorch", replicas={"worker": {}}, **LIMITS)
    assert not {"ttlSecondsAfterFinished", "suspend"} & made["spec"].keys()
    (replicated,) = made["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    assert "activeDeadlineSeconds" not in job
    assert job["backoffLimit"] == MAX_INT32
    for part in (replicated["template"], job["template"]):
        assert {names.RUN, names.RUN_UID, names.KIND} <= part["metadata"]["labels"].keys()


@pytest.mark.parametrize(
    ("more", "limit"),
    [({}, None), ({"replicas": {"worker": {"restartPolicy": "Never"}}}, 0)],
)
def test_an_unset_limit_is_left_to_jobset(more: dict[str, Any], limit: int | None) -> None:
    """And a replica that may not restart keeps its own."""
    spec = {"backend": "jobset", "replicas": {"worker": {}}, **more}
    (replicated,) = rendered(**spec)["spec"]["replicatedJobs"]
    assert replicated["template"]["spec"].get("backoffLimit") == limit


def test_jobset_counts_restarts_of_the_whole_run() -> None:
    """Each of its pods may fail in one restart, so a count of pods is none of restarts."""
    scope = {"restartScope": "Run", "backoffLimit": 1}
    spec = {"backend": "jobset", "replicas": {"worker": {"count": 3}}, "framework": None, **scope}
    assert rendered(**spec)["spec"]["failurePolicy"] == {"maxRestarts": 1}
    engine = Engine(**spec).look()
    for index in range(3):
        engine.fails(f"worker-{index}")
    engine.look()
    assert engine.phase != "Failed"
    assert engine.role().failed == 3
    engine.reports("Failed", "ReachedMaxRestarts", "jobset failed due to reaching max restarts")
    assert engine.phase == "Failed"


def test_pods_whose_job_jobset_deletes_are_no_disruption() -> None:
    """A pod that is deleted alone is one."""
    spec = {"backend": "jobset", "framework": None, "replicas": {"worker": {"count": 2}}}
    engine = Engine(**spec).look()
    engine.pod("worker-0").pod("worker-1").look()
    engine.pod("worker-0", withdrawn=True).pod("worker-1", withdrawn=True)
    engine.goes("worker-0").goes("worker-1").look()
    assert (engine.role().disruptions, engine.role().failed) == (0, 0)
    engine.pod("worker-0", uid="next").pod("worker-1", uid="next-1").look()
    engine.goes("worker-0").look()
    assert engine.role().disruptions == 1


def test_a_failed_pod_that_its_job_keeps_is_not_the_replica() -> None:
    """Whatever the order in which both are seen."""
    spec = {"backend": "jobset", "framework": None, "replicas": {"worker": {"count": 1}}}
    engine = Engine(**spec).look()
    engine.pod("worker-0").look().fails("worker-0").look()
    failed = engine.observed.pods
    engine.observed = replace(engine.observed, pods=())
    engine.pod("worker-0", uid="next")
    for pods in ((*failed, *engine.observed.pods), (*engine.observed.pods, *failed)):
        engine.observed = replace(engine.observed, pods=pods)
        engine.look()
        assert engine.phase == "Running"
        assert (engine.role().failed, engine.role().restarts) == (1, 1)


def test_workers_of_an_mpijob_are_numbered_as_in_the_run() -> None:
    """With launcherAsWorker the operator's label counts the launcher."""
    fields: dict[str, Any] = {"uid": "u", "run_uid": "j", "attempt": 0, "phase": "Running"}
    pods = [OwnedPod(name=f"m-worker-{n}", role="worker", index=n + 1, **fields) for n in (0, 1)]
    pods.append(OwnedPod(name="m-launcher-abcde", role="launcher", index=0, **fields))
    found = assign_replicas(("launcher", "worker"), ENGINES["kubeflow/mpi"], pods)
    assert [(each.role, each.index) for each in found] == [
        ("worker", 0),
        ("worker", 1),
        ("launcher", 0),
    ]


def test_an_mpijob_without_a_written_limit_has_that_of_its_operator() -> None:
    """A written one is Fairlead's."""
    policy = rendered(**MPI)["spec"]["runPolicy"]
    assert policy == {"cleanPodPolicy": "Running"}
    policy = rendered(**MPI, **LIMITS)["spec"]["runPolicy"]
    assert policy == {"cleanPodPolicy": "Running", "backoffLimit": MAX_INT32}


def test_a_named_account_of_a_launcher_is_refused_where_it_would_get_rights() -> None:
    """By the training operator, whose MPIJob is v1."""
    template = spec_of(containers("main"))
    template["spec"]["serviceAccountName"] = "trusted"
    run = a_run("mnist", {"template": template, "backend": "kubeflow", **MPI})
    newest, older = VARIANTS[MPI_KEY]
    assert render_delegated(run, newest)["apiVersion"] == "kubeflow.org/v2beta1"
    with pytest.raises(InvalidRun) as caught:
        render_delegated(run, older)
    mentions(str(caught.value), "serviceAccountName", "pods/exec", "native")


def test_the_versions_of_a_kind_are_one_resource() -> None:
    """So the rights of the controller and of authors are those of all."""
    for key, variants in VARIANTS.items():
        (group, resource), *_ = {created_objects()[key]}
        assert {(each.api_version.partition("/")[0], each.resource) for each in variants} == {
            (group, resource)
        }


def test_a_daskjob_takes_limits_though_it_has_none() -> None:
    """Fairlead acts on them; every object between has the label by which it is watched."""
    made = rendered(**DASK, **LIMITS)
    cluster = made["spec"]["cluster"]["spec"]
    for part in (made, cluster["scheduler"], cluster["worker"], made["spec"]["job"]):
        assert {names.RUN, names.RUN_UID, names.KIND} <= part["metadata"]["labels"].keys()


def test_pods_of_dask_are_numbered_by_their_owners() -> None:
    """In alphabetical order, also if one takes the place of another."""
    engine = dask()
    assert engine.phase == "Running"
    assert engine.status.replicas_ready == "4/4"
    assert engine.role().active_indexes == "0-1"
    engine.pod("mnist-default-worker-b-77-abcde", phase="Failed")
    old = {pod.name: pod for pod in engine.observed.pods}["mnist-default-worker-b-77-abcde"]
    new = replace(old, name="mnist-default-worker-b-77-later", uid="next", phase="Running")
    engine.observed = replace(engine.observed, pods=(*engine.observed.pods, new))
    engine.look()
    assert engine.role().active_indexes == "0-1"
    assert (engine.role().failed, engine.role().restarts) == (1, 1)


def test_names_of_pods_that_kubernetes_cuts_do_not_mix_replicas_up() -> None:
    """At 58 characters the hash of a ReplicaSet joins the random letters (apiserver, names)."""
    fields: dict[str, Any] = {"attempt": 0, "phase": "Running", "role": "worker", "index": 0}
    pods = [
        OwnedPod(
            name=f"{'n' * 30}-default-worker-{letters}", uid=letters, run_uid=set_uid, **fields
        )
        for letters, set_uid in (("0123abcde", "b"), ("4567fghij", "a"), ("4567later", "a"))
    ]
    found = assign_replicas(("worker",), ENGINES["dask/dask"], pods)
    assert [each.index for each in found] == [1, 0, 0]


def test_failures_beyond_the_count_are_charged() -> None:
    """An autoscaler may add workers; they are no replicas of the run."""
    engine = Engine(backoffLimit=0).runs()
    engine.pod("worker-2").look()
    assert (engine.status.replicas_ready, engine.phase) == ("3/3", "Running")
    engine.fails("worker-2").look()
    assert engine.condition("Failed").reason == "BackoffLimitExceeded"
    assert engine.role().failed == 1


def test_a_healthy_engine_without_conditions_is_not_silent() -> None:
    """A JobSet that restarts has neither pods nor conditions for a moment."""
    spec = {"backend": "jobset", "framework": None, "replicas": {"worker": {"count": 2}}}
    engine = Engine(**spec).look()
    engine.object(reported=True).pod("worker-0").pod("worker-1").later(90)
    engine.goes("worker-0").goes("worker-1").look().later(50)
    assert engine.condition("Created").reason != "BackendSilent"
    assert engine.later(20).condition("Created").reason == "BackendSilent"
    assert Engine(**spec).look().later(90).condition("Created").reason == "BackendSilent"


def test_a_worker_of_an_mpijob_that_failed_is_reported_with_what_to_do() -> None:
    """The operator creates another one when the pod is gone."""
    engine = Engine(**MPI).look()
    for name in ("launcher-0", "worker-0", "worker-1"):
        engine.pod(name)
    engine.look().fails("worker-1").look()
    assert engine.condition("Created").reason == "ReplicaFailed"
    mentions(engine.status.message, "worker-1 has failed", "delete pod worker-1", "OnFailure")


def test_a_suspended_run_says_if_another_client_has_resumed_its_object() -> None:
    """And does not fight with it."""
    spec = {"backend": "jobset", "framework": None, "replicas": {"worker": {"count": 2}}}
    engine = Engine(**spec).look()
    engine.pod("worker-0").pod("worker-1").look().spec(suspend=True)
    assert engine.condition("Suspended").status == "True"
    before = len(engine.did)
    engine.object(suspended=False).look()
    assert engine.did[before:] == []
    assert engine.condition("Suspended").status == "False"
    mentions(engine.status.message, "another client", "JobSet mnist", "kubectl delete jobset")
    engine.object(suspended=True).look()
    assert engine.condition("Suspended").status == "True"


def test_the_deadline_does_not_count_while_a_queue_holds_the_object() -> None:
    """It starts again when the object is resumed, as after a suspension by the author."""
    engine = Engine(activeDeadlineSeconds=40).runs()
    engine.later(30).object(suspended=True).later(30)
    assert engine.phase != "Failed"
    engine.object(suspended=False).look().later(30)
    assert engine.phase != "Failed"
    engine.later(11)
    assert engine.condition("Failed").reason == "DeadlineExceeded"


@pytest.mark.parametrize("reason", ["ReachedMaxRestarts", "BackoffLimitExceeded/Error"])
def test_a_limit_of_the_engine_is_reported_as_one(reason: str) -> None:
    """Whatever failed before."""
    engine = Engine(backend="jobset", framework=None, replicas={"worker": {}}).look()
    engine.fails("worker-0").look()
    engine.reports("Failed", reason, "too often")
    assert engine.condition("Failed").reason == "BackoffLimitExceeded"


def test_a_driver_whose_name_another_pod_has_is_reported() -> None:
    """The object is not created again and again."""
    engine = Engine(**DASK).look()
    engine.object(conditions={"ClusterCreated": ("", "")}).look()
    assert engine.did == [CreateEngineObject()]
    assert engine.condition("Created").reason == "NameTaken"
    mentions(engine.status.message, "role driver", "another pod", "kubectl delete daskjob mnist")


def test_a_run_on_dask_is_suspended_by_deleting_its_object() -> None:
    """A DaskJob has no field for it; what goes with the object is no disruption."""
    engine = dask()
    before = len(engine.did)
    engine.spec(suspend=True)
    assert engine.phase == "Suspended"
    engine.spec(suspend=False)
    assert engine.did[before:] == [DeleteEngineObject("uid-job"), CreateEngineObject()]
    assert engine.status.disruptions == 0
    assert all(each.reason != "BackendObjectReplaced" for each in engine.told)


def test_a_daskjob_that_cannot_be_deleted_is_due() -> None:
    """Until it is deleted the run is not suspended, and its lost driver is still lost."""
    engine = dask()
    engine.failing = "the API server says no"
    engine.spec(suspend=True).look()
    assert engine.phase == "Running"
    engine.spec(suspend=False)
    engine.goes("mnist-runner").look().look()
    assert engine.status.message == "the API server says no"
    before = len(engine.did)
    engine.failing = ""
    engine.look()
    assert engine.did[before:] == [DeleteEngineObject("uid-job"), CreateEngineObject()]


def test_a_driver_that_dask_does_not_replace_begins_again() -> None:
    """Its operator creates the pod once; the object is made again after a live read."""
    engine = dask()
    before = len(engine.did)
    engine.goes("mnist-runner").look()
    assert engine.did[before:] == [DeleteEngineObject("uid-job"), CreateEngineObject()]
    assert engine.status.disruptions == 1
    told = [each.message for each in engine.told if each.reason == "BackendObjectReplaced"]
    mentions(told[0], "role driver", "Dask's operator does not replace it", "starts again")


def test_a_cluster_that_another_client_deletes_begins_again() -> None:
    """Dask's operator creates it once. When the driver ends, it deletes it itself."""
    for phase, actions in (("Succeeded", []), ("Running", [DeleteEngineObject("uid-job")])):
        engine = dask()
        before = len(engine.did)
        engine.observed = replace(engine.observed, between=False)
        engine.pod("mnist-runner", phase=phase).look()
        assert engine.did[before:][:1] == actions


def test_a_driver_that_is_not_created_yet_is_waited_for() -> None:
    """Until the operator says that it created it."""
    engine = Engine(**DASK).look()
    engine.object(conditions={"JobCreated": ("", "")}).look()
    assert engine.did == [CreateEngineObject()]


EVICTED = {"conditions": [{"type": "Failed", "status": "True", "reason": "MPIJobEvicted"}]}


@pytest.mark.parametrize(
    ("key", "status", "end"),
    [
        # It has a phase, and no conditions.
        ("dask/dask", {"jobStatus": "Successful"}, "Succeeded"),
        ("dask/dask", {"jobStatus": "Failed"}, "Failed"),
        ("dask/dask", {"jobStatus": "Running"}, None),
        ("dask/dask", {}, None),
        # The operator writes Failed for evicted workers too, and goes on.
        ("kubeflow/mpi", EVICTED, None),
        ("kubeflow/mpi", {**EVICTED, "completionTime": "2026-01-01T00:00:00Z"}, "Failed"),
        ("kubeflow/pytorch", EVICTED, "Failed"),
    ],
)
def test_the_end_of_an_object_is_read_as_its_engine_writes_it(
    key: str, status: dict[str, Any], end: str | None
) -> None:
    """Neither too early nor never."""
    owner = {"apiVersion": names.API_VERSION, "kind": "Run", "name": "r", "uid": "r"}
    raw = {
        "metadata": {"name": "r", "uid": "u", "ownerReferences": [{**owner, "controller": True}]},
        "status": status,
    }
    assert ENGINES[key].end(ENGINES[key].read(raw)) == end
