"""A Run becomes the object of another engine, or what the engine cannot do is refused."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.run.backends.runs import WHOLE, Json, a_run, all_rendered, model, rendered
from webhook.convert.engines.convert import convert_object
from webhook.errors import InvalidRun
from webhook.run.backends.backend import written_fields
from webhook.run.backends.kuberay import submit_command
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.backends.training_operator import KINDS, Kubeflow

MASTER_AND_WORKERS = {"master": {}, "worker": {"count": 3}}


def problems(backend: str, document: Json) -> list[str]:
    """Why the engine cannot run it."""
    with pytest.raises(InvalidRun) as error:
        render_run(model(document), BACKENDS[backend])
    return [*error.value.problems]


def main_of(template: Json) -> Json:
    """The first container of a pod template."""
    container: Json = template["spec"]["containers"][0]
    return container


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)
def test_the_main_container_has_the_name_that_the_operator_wants(kind: Any) -> None:
    """The training operator rejects an object without it."""
    roles: Json = {"launcher": {}} if kind.framework == "mpi" else {"worker": {}}
    roles |= {"master": {}} if kind.framework == "xgboost" else {}
    found = rendered("kubeflow", a_run(framework=kind.framework, replicas=roles))

    for replica in found["spec"][kind.replicas].values():
        assert main_of(replica["template"])["name"] == (kind.container or "main")


def test_what_refers_to_the_main_container_is_renamed_with_it() -> None:
    """resourceFieldRef and the default container; other containers keep their names."""
    whole = rendered("kubeflow", WHOLE["kubeflow"][0])["spec"]["tfReplicaSpecs"]["Worker"]
    sidecar, main = whole["template"]["spec"]["containers"]

    assert (sidecar["name"], main["name"]) == ("log", "tensorflow")
    assert main["env"][0]["valueFrom"]["resourceFieldRef"]["containerName"] == "tensorflow"
    annotations = whole["template"]["metadata"]["annotations"]
    assert annotations == {"kubectl.kubernetes.io/default-container": "tensorflow"}


def test_the_mpi_operator_takes_the_first_container() -> None:
    """So the main one is moved to the front."""
    whole = rendered("kubeflow", WHOLE["kubeflow"][-1])["spec"]["mpiReplicaSpecs"]["Worker"]

    assert [each["name"] for each in whole["template"]["spec"]["containers"]] == ["main", "log"]


def test_a_sidecar_with_the_name_of_the_main_container_is_refused() -> None:
    """Two containers cannot have one name."""
    containers = [{"name": "main", "image": "a"}, {"name": "pytorch", "image": "b"}]
    run = a_run(framework="pytorch", replicas={"worker": {}})
    run["spec"]["template"]["spec"]["containers"] = containers

    (problem,) = problems("kubeflow", run)
    assert problem.startswith("spec.mainContainer: ")
    assert "rename the other one, or set mainContainer: pytorch" in problem


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_unset_field_is_left_to_the_engine(backend: str) -> None:
    """No native default appears in the object."""
    roles: Json = {"scheduler": {}, "worker": {}, "driver": {}}
    run = a_run(framework="dask", replicas=roles)
    if backend == "kubeflow":
        run = a_run(framework="jax", replicas={"worker": {}})
    elif backend == "trainer":
        run = a_run(replicas={"worker": {}})
    elif backend == "kuberay":
        run = a_run(framework="ray", replicas={"head": {}, "driver": {}})
    elif backend == "spark":
        run = WHOLE[backend][1]
    text = str(all_rendered(backend, run))

    for word in ("backoffLimit", "cleanPodPolicy", "suspend", "'OnFailure'", "failurePolicy"):
        assert word not in text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("restartScope", "Role"),
        ("disruptionLimit", 3),
        ("disruptionExitCodes", [85]),
    ],
)
def test_a_written_field_without_a_counterpart_is_refused(
    backend: str, field: str, value: Any
) -> None:
    """With its path and what to do."""
    run = WHOLE[backend][-1]
    spec = {key: each for key, each in run["spec"].items() if key != "template"}
    (problem,) = problems(backend, a_run(**{**spec, "mainContainer": None, field: value}))

    assert problem.startswith(f"spec.{field}: ")
    assert problem.endswith("remove it, or use Fairlead's own controller (backend native)")


@pytest.mark.parametrize("backend", BACKENDS)
def test_overrides_of_single_replicas_are_refused(backend: str) -> None:
    """No engine has them."""
    run = WHOLE[backend][0]
    role = "driver" if backend == "spark" else "worker"
    own = (
        {"count": 2, "byIndex": [{"index": 1}]} if role == "worker" else {"byIndex": [{"index": 0}]}
    )
    replicas = {**run["spec"]["replicas"], role: own}
    spec = {**run["spec"], "replicas": replicas}

    assert any("byIndex" in each for each in problems(backend, a_run(**spec)))


@pytest.mark.parametrize(
    ("backend", "spec", "words"),
    [
        ("kubeflow", {"framework": "mxnet"}, "removed from the training operator in 1.9"),
        ("kubeflow", {}, "use backend native, or write the JobSet"),
        ("kubeflow", {"framework": "ray", "replicas": {"head": {}}}, "its frameworks are"),
        (
            "kubeflow",
            {"framework": "paddle", "replicas": MASTER_AND_WORKERS},
            "no role master, only server, worker",
        ),
        (
            "kubeflow",
            {
                "framework": "pytorch",
                "replicas": {"master": {}},
                "pytorch": {"elastic": {"minReplicas": 1}},
            },
            "needs a worker",
        ),
        (
            "jobset",
            {"framework": "mpi", "replicas": {"launcher": {}, "worker": {}}},
            "SSH keys",
        ),
        ("jobset", {"kind": "notebook", "ports": [{"port": 80}]}, "until it is stopped"),
        ("dask", {"framework": "jax", "replicas": {"worker": {}}}, "framework dask only"),
        ("dask", {"framework": "dask", "replicas": {"scheduler": {}}}, "needs a driver"),
        ("trainer", {"framework": "jax", "replicas": {"worker": {}}}, "pytorch, or none"),
        ("trainer", {"replicas": MASTER_AND_WORKERS}, "no role master, only worker"),
        (
            "trainer",
            {"framework": "mpi", "replicas": {"launcher": {}, "worker": {}}},
            "use backend kubeflow, which writes an MPIJob",
        ),
        ("kuberay", {"framework": "jax", "replicas": {"worker": {}}}, "framework ray only"),
        (
            "kuberay",
            {"framework": "ray", "replicas": {"head": {"restartPolicy": "Never"}}},
            "always replaces the pods of the head",
        ),
    ],
)
def test_what_an_engine_does_not_have_is_refused(backend: str, spec: Json, words: str) -> None:
    """By framework, role or kind, and with another way."""
    if spec.get("framework") == "mxnet":
        spec = {**spec, "replicas": {"scheduler": {}, "server": {}, "worker": {}}}

    assert any(words in each for each in problems(backend, a_run(**spec)))


def test_a_tfjob_without_a_chief_ends_with_all_workers() -> None:
    """As a Run does; a TFJob's default is worker 0."""
    assert rendered("kubeflow", WHOLE["kubeflow"][1])["spec"]["successPolicy"] == "AllWorkers"
    assert "successPolicy" not in rendered("kubeflow", WHOLE["kubeflow"][0])["spec"]


def test_the_workers_of_an_mpijob_are_always_counted() -> None:
    """Without a count the MPI operator creates none, where a Run has one."""
    found = rendered("kubeflow", a_run(framework="mpi", replicas={"launcher": {}, "worker": {}}))

    replicas = found["spec"]["mpiReplicaSpecs"]
    assert replicas["Worker"]["replicas"] == 1
    assert "replicas" not in replicas["Launcher"]


def test_the_training_operators_own_mpijob_is_rendered_on_demand() -> None:
    """It has no field for the implementation, which is refused with the cure."""
    roles: Json = {"launcher": {"restartPolicy": "ExitCode"}, "worker": {"count": 2}}
    run = a_run(framework="mpi", replicas=roles, mpi={"slotsPerWorker": 4})
    (found,) = render_run(model(run), Kubeflow("v1"))

    assert found["apiVersion"] == "kubeflow.org/v1"
    assert found["spec"]["slotsPerWorker"] == 4
    assert found["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] == "ExitCode"
    run["spec"]["mpi"]["implementation"] = "Intel"
    with pytest.raises(InvalidRun, match=r"spec.mpi.implementation: MPIJob has no such field"):
        render_run(model(run), Kubeflow("v1"))


def test_a_master_is_the_chief_of_a_tfjob_unless_the_task_type_is_master() -> None:
    """TF_CONFIG has the key in lower case."""
    roles = MASTER_AND_WORKERS
    chief = rendered("kubeflow", a_run(framework="tensorflow", replicas=roles))
    own = {"masterTaskType": "master"}
    master = rendered("kubeflow", a_run(framework="tensorflow", replicas=roles, tensorflow=own))

    assert [*chief["spec"]["tfReplicaSpecs"]] == ["Chief", "Worker"]
    assert [*master["spec"]["tfReplicaSpecs"]] == ["Master", "Worker"]


def test_replicas_of_a_jobset_get_their_rank_from_the_global_index() -> None:
    """And the addresses are those that JobSet gives to pods."""
    spec = rendered("jobset", WHOLE["jobset"][1])["spec"]
    master, worker = (
        {each["name"]: each for each in containers[0]["env"]}
        for job in spec["replicatedJobs"]
        for containers in [job["template"]["spec"]["template"]["spec"]["containers"]]
    )

    assert master["RANK"]["value"] == "0"
    assert worker["RANK"]["value"] == "$(FAIRLEAD_JOB_GLOBAL_INDEX)"
    path = worker["FAIRLEAD_JOB_GLOBAL_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.annotations['jobset.sigs.k8s.io/job-global-index']"
    assert worker["MASTER_ADDR"]["value"] == "mnist-master-0-0.mnist"


def test_pods_of_a_jobset_and_a_trainjob_say_their_framework() -> None:
    """And a JobSet names the leader, or Fairlead would take worker 0 for a second one."""
    found = rendered("jobset", WHOLE["jobset"][1])["spec"]
    runtime, _ = all_rendered("trainer", WHOLE["trainer"][0])

    for spec in (found, runtime["spec"]["template"]["spec"]):
        for job in spec["replicatedJobs"]:
            labels = job["template"]["spec"]["template"]["metadata"]["labels"]
            assert labels["fairlead.dev/framework"] == "pytorch"
    assert found["coordinator"] == {"replicatedJob": "master", "jobIndex": 0, "podIndex": 0}
    assert "coordinator" not in rendered("jobset", WHOLE["jobset"][3])["spec"]


def test_the_index_in_tf_config_is_that_of_the_role() -> None:
    """Not one of the numbers in the addresses."""
    job = rendered("jobset", WHOLE["jobset"][3])["spec"]["replicatedJobs"][1]
    env = {
        each["name"]: each.get("value")
        for each in main_of(job["template"]["spec"]["template"])["env"]
    }

    assert env["TF_CONFIG"].endswith('"task":{"index":$(FAIRLEAD_JOB_INDEX),"type":"ps"}}')


def test_a_role_of_a_jobset_starts_after_those_that_it_needs() -> None:
    """A client of Dask gives up without its scheduler."""
    run = a_run(framework="dask", replicas={"scheduler": {}, "worker": {}, "driver": {}})
    jobs = {each["name"]: each for each in rendered("jobset", run)["spec"]["replicatedJobs"]}

    assert jobs["driver"]["dependsOn"] == [{"name": "scheduler", "status": "Ready"}]
    assert "dependsOn" not in jobs["scheduler"]


def test_restart_scope_run_is_a_restart_of_the_jobset() -> None:
    """Its Jobs fail at once."""
    spec = rendered("jobset", WHOLE["jobset"][2])["spec"]

    assert spec["failurePolicy"] == {"maxRestarts": 2}
    assert spec["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] == 0


def test_quantities_of_a_daskjob_are_text() -> None:
    """Its definition takes no numbers there."""
    worker = rendered("dask", WHOLE["dask"][0])["spec"]["cluster"]["spec"]["worker"]

    assert main_of(worker)["resources"] == {"limits": {"nvidia.com/gpu": "8"}}


@pytest.mark.parametrize("ports", [[], [{"name": "tcp-comm", "containerPort": 8786}]])
def test_the_service_of_a_dask_scheduler_has_endpoints(ports: list[Json]) -> None:
    """A named target port that no container has selects no pod."""
    run = a_run(framework="dask", replicas={"scheduler": {}, "worker": {}, "driver": {}})
    run["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
    scheduler = rendered("dask", run)["spec"]["cluster"]["spec"]["scheduler"]

    named = {each["name"]: each["containerPort"] for each in ports}
    # A Service without a target port has its own number as the target.
    targets = [each.get("targetPort", each["port"]) for each in scheduler["service"]["ports"]]
    assert [named.get(each, each) for each in targets] == [8786, 8787]
    assert all(
        isinstance(each.get("targetPort", ""), str) for each in scheduler["service"]["ports"]
    )
    back = convert_object({"job.yaml": json.dumps(rendered("dask", run)).encode()})
    assert back.document is not None
    assert not back.warnings
    assert rendered("dask", dict(back.document)) == rendered("dask", run)


def test_kuberay_starts_ray_unless_head_and_workers_have_a_command() -> None:
    """The annotation is about the whole cluster."""
    command = {"spec": {"containers": [{"name": "main", "command": ["ray", "start"]}]}}
    roles = {"head": {"template": command}, "worker": {"template": command}}
    (found,) = all_rendered("kuberay", a_run(framework="ray", replicas=roles))
    (problem,) = problems(
        "kuberay", a_run(framework="ray", replicas={"head": {"template": command}, "worker": {}})
    )

    assert found["metadata"]["annotations"] == {"ray.io/overwrite-container-cmd": "true"}
    assert problem.startswith("spec.replicas.worker: KubeRay starts Ray in head and workers")


def submitting(program: str) -> Json:
    return {"name": "main", **submit_command(program)}


def test_a_driver_that_submits_a_program_makes_a_rayjob() -> None:
    """With what KubeRay asks of one; other drivers, and fields of its Job, make a RayCluster."""
    run = WHOLE["kuberay"][2]
    replicas = run["spec"]["replicas"]
    (job,) = all_rendered("kuberay", run)
    assert job["kind"] == "RayJob"
    assert shlex.split(job["spec"]["entrypoint"]) == ["bash", "-c", "python 'a b.py' && echo"]
    groups = job["spec"]["rayClusterSpec"]
    assert groups["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    assert "command" not in main_of(groups["headGroupSpec"]["template"])
    assert main_of(groups["workerGroupSpecs"][0]["template"])["command"] == ["echo a"]

    kept: Json = {"ttlSecondsAfterFinished": 60, "suspend": True, "restartScope": "Run"}
    found = problems("kuberay", a_run(framework="ray", replicas=replicas, **kept))
    assert [each.partition(":")[0] for each in found] == [
        "spec.ttlSecondsAfterFinished",
        "spec.suspend",
    ]
    shut = a_run(framework="ray", replicas=replicas, **kept, cleanPodPolicy="Running")
    assert rendered("kuberay", shut)["spec"]["shutdownAfterJobFinishes"] is True

    for program in ("python a.py --lr 1", "bash -c 'a && b'", 'python "a b.py" $X', "a=1 b"):
        driver: Json = {"template": {"spec": {"containers": [submitting(program)]}}}
        of = a_run(framework="ray", replicas={"head": {}, "driver": driver})
        assert rendered("kuberay", of)["spec"]["entrypoint"] == program
    driver = {**replicas["driver"], "restartPolicy": "Never"}
    own = a_run(framework="ray", replicas={**replicas, "driver": driver})
    assert [each["kind"] for each in all_rendered("kuberay", own)] == ["RayCluster", "Job"]


def test_a_driver_finds_the_head_by_the_service_of_kuberay() -> None:
    """And the webhook knows its pod, which KubeRay does not mark, by Fairlead's labels."""
    _, driver = all_rendered("kuberay", WHOLE["kuberay"][1])

    assert driver["metadata"]["name"] == "mnist-driver"
    labels = driver["spec"]["template"]["metadata"]["labels"]
    assert (labels["fairlead.dev/run"], labels["fairlead.dev/role"]) == ("mnist", "driver")
    env = {each["name"]: each["value"] for each in main_of(driver["spec"]["template"])["env"]}
    assert env["RAY_ADDRESS"] == "ray://mnist-head-svc:10001"


def test_a_sparkapplication_needs_what_no_command_line_gives() -> None:
    """Each missing field is an error with its cure."""
    found = problems("spark", a_run(framework="spark", replicas={"driver": {}}))

    for problem, name in zip(found, ("type", "sparkVersion", "mainApplicationFile"), strict=True):
        assert problem.startswith(f"spec.spark.{name}: a SparkApplication needs it: ")
        assert "add it, or use Fairlead's own controller" in problem


def test_spark_gives_the_driver_the_resources_of_the_run() -> None:
    """By settings, which overwrite the template: memory is the JVM's and an overhead."""
    spec = rendered("spark", WHOLE["spark"][0])["spec"]

    driver = {key: value for key, value in spec["driver"].items() if key != "template"}
    assert driver == {
        "cores": 2,
        "coreRequest": "2500m",
        "coreLimit": "2500m",
        "memory": "3712m",
        "memoryOverhead": "384m",
    }
    assert spec["executor"] == {
        "instances": 8,
        "labels": {"team": "vision"},
        "serviceAccount": "trainer",
    }
    assert spec["restartPolicy"] == {"type": "OnFailure", "onFailureRetries": 2}
    containers = spec["driver"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["log", "spark-kubernetes-driver"]


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"command": ["spark-submit"]}, "has command, and the Spark operator runs spark-submit"),
        ({"args": ["a"]}, "has args, and the Spark operator runs spark-submit"),
        ({"resources": {"limits": {"memory": "512Mi"}}}, "memory is 512 MiB"),
        (
            {"resources": {"limits": {"memory": "4Gi"}, "requests": {"memory": "2Gi"}}},
            "requests 2048 MiB of memory with a limit of 4096 MiB",
        ),
    ],
)
def test_a_driver_that_spark_cannot_start_so_is_refused(container: Json, words: str) -> None:
    """With what to change."""
    run = a_run(**WHOLE["spark"][1]["spec"])
    main = {"name": "main", "image": "example.invalid/none", **container}
    run["spec"]["template"] = {"spec": {"containers": [main]}}

    (problem,) = problems("spark", run)
    assert problem.startswith("spec.replicas.driver: ")
    assert words in problem


def test_a_sparkapplication_has_an_executor_at_least() -> None:
    """A Run may have none."""
    spec = WHOLE["spark"][1]["spec"]
    (problem,) = problems("spark", a_run(**{**spec, "spark": {**spec["spark"], "executors": 0}}))

    assert problem.startswith("spec.spark.executors: is 0, and a SparkApplication has 1")


def test_a_trainjob_has_a_runtime_of_its_own() -> None:
    """All nodes are pods of one Job, called node like its container."""
    runtime, job = all_rendered("trainer", WHOLE["trainer"][0])

    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    # Without it Trainer 2.1 sets none of torchrun's variables.
    assert job["spec"]["trainer"] == {"numProcPerNode": "auto"}
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 4, "torch": {"numProcPerNode": "auto"}}
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert node["template"]["spec"]["backoffLimit"] == 4
    containers = node["template"]["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in containers] == ["log", "node"]


@pytest.mark.parametrize(
    ("backend", "appended"), [("jobset", 17), ("dask", 26), ("trainer", 15), ("kuberay", 22)]
)
def test_a_name_leaves_room_for_what_the_engine_appends(backend: str, appended: int) -> None:
    """63 characters, less the longest end."""
    fits, too_long = "a" * (63 - appended), "a" * (64 - appended)
    if backend in ("jobset", "trainer"):
        spec: Json = {"replicas": {"worker": {"count": 3}}}
    else:
        spec = {key: WHOLE[backend][1]["spec"][key] for key in ("framework", "replicas")}

    assert all_rendered(backend, a_run(fits, **spec))
    (problem,) = problems(backend, a_run(too_long, **spec))
    assert problem.startswith("metadata.name: is too long")


@pytest.mark.parametrize(("roles", "longest"), [(("master", "worker"), 25), (("master",), 46)])
def test_the_address_of_a_jobset_s_leader_is_the_value_of_a_label(
    roles: tuple[str, ...], longest: int
) -> None:
    """It has the name twice; without another role, the leader is none to JobSet."""
    spec: Json = {"framework": "pytorch", "replicas": {role: {} for role in roles}}
    (made,) = all_rendered("jobset", a_run("a" * longest, **spec))
    assert ("coordinator" in made["spec"]) == (len(roles) > 1)
    (problem,) = problems("jobset", a_run("a" * (longest + 1), **spec))
    assert problem.startswith("metadata.name: is too long")
    assert problem.endswith(f"at most {longest}")


def test_every_field_of_a_run_is_in_a_table_or_refused() -> None:
    """The Runs of these tests have each field that an engine has."""
    for backend, runs in WHOLE.items():
        for run in runs:
            kind = BACKENDS[backend].kind(model(run))
            assert kind is not None
            known = {each.run.rpartition(".")[2] for each in kind.fields}
            for path, _ in written_fields(model(run)):
                assert kind.own_variables or path[-1] in known
