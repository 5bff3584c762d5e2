"""A second count of the pods that an object makes, which shares no code with Fairlead.

It has one small function for each kind, over plain YAML. `tools.corpora` compares it with what
Fairlead's reader says. A template that pods are made of as often as something calls it counts
once; so does one trial of an Experiment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Json = dict[str, Any]


def documents(file: Path) -> Iterator[Json]:
    """Yield every object of a file, those of a List one by one."""
    for document in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader):
        if isinstance(document, dict):
            items = document.get("items") if str(document.get("kind")).endswith("List") else None
            for item in items if isinstance(items, list) else [document]:
                if isinstance(item, dict):
                    yield item


def count_pods(thing: Json, beside: list[Json]) -> int | None:
    """Return the pods of an object; None if its kind is not in the list."""
    group = str(thing.get("apiVersion")).rpartition("/")[0]
    function = KINDS.get((group, str(thing.get("kind"))))
    if function is None:
        return None
    spec = thing.get("spec")
    return function({**thing, "spec": spec if isinstance(spec, dict) else {}}, beside)


def _get(value: Any, *steps: str) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _number(value: Any, default: int = 1) -> int:
    return value if isinstance(value, int) and value >= 0 else default


def _replicas(thing: Json, _: list[Json]) -> int:
    spec = thing["spec"]
    return _number(spec.get("replicas")) if spec.get("template") else 0


def _batch_job(spec: Json) -> int:
    if not _get(spec, "template"):
        return 0
    return _number(spec.get("completions"), _number(spec.get("parallelism")))


def _training(field: str) -> Callable[[Json, list[Json]], int]:
    def count(thing: Json, _: list[Json]) -> int:
        every = thing["spec"].get(field) or {}
        return sum(_number(replica.get("replicas")) for replica in every.values() if replica)

    return count


def _mpi_job(thing: Json, beside: list[Json]) -> int:
    if "template" in thing["spec"]:  # v1alpha1: a launcher and workers of one template
        return 1 + _number(thing["spec"].get("replicas"), 0)
    return _training("mpiReplicaSpecs")(thing, beside)


def _jobset(spec: Json) -> int:
    total = 0
    for job in spec.get("replicatedJobs") or []:
        within = _number(_get(job, "template", "spec", "parallelism"))
        total += _number(job.get("replicas")) * within
    return total


def _runtime(thing: Json, _: list[Json]) -> int:
    return _jobset(_get(thing, "spec", "template", "spec") or {})


def _train_job(thing: Json, beside: list[Json]) -> int:
    reference = thing["spec"].get("runtimeRef") or {}
    kind = reference.get("kind", "ClusterTrainingRuntime")
    for other in beside:
        if (other.get("kind"), _get(other, "metadata", "name")) == (kind, reference.get("name")):
            return _of_runtime(thing, other)
    return 0


def _of_runtime(thing: Json, runtime: Json) -> int:
    nodes = _get(thing, "spec", "trainer", "numNodes")
    policy = _get(runtime, "spec", "mlPolicy") or {}
    total = 0
    for job in _get(runtime, "spec", "template", "spec", "replicatedJobs") or []:
        labels = _get(job, "template", "metadata", "labels") or {}
        step = labels.get("trainer.kubeflow.org/trainjob-ancestor-step")
        pods = _number(_get(job, "template", "spec", "parallelism"))
        if step == "trainer":
            wanted = None if "mpi" in policy else nodes
            pods = wanted or (policy.get("numNodes") or 1 if policy else pods)
        if "mpi" in policy and nodes and job.get("name") == "node":
            pods = max(nodes - 1, 1) if policy["mpi"].get("runLauncherAsNode") else nodes
        total += pods * (1 if step else _number(job.get("replicas")))
    return total


def _ray_cluster(spec: Json) -> int:
    total = 1 if _get(spec, "headGroupSpec", "template") else 0
    for group in spec.get("workerGroupSpecs") or []:
        least = _number(group.get("minReplicas"), 0)
        total += _number(group.get("replicas"), least) * _number(group.get("numOfHosts"))
    return total


def _ray_job(spec: Json) -> int:
    submits = spec.get("submissionMode") in (None, "K8sJobMode")
    cluster = spec.get("rayClusterSpec")
    is_known = cluster is not None or "clusterSelector" in spec or "submitterPodTemplate" in spec
    return _ray_cluster(cluster or {}) + int(submits and is_known)


def _spark(spec: Json) -> int:
    total = int("driver" in spec and spec.get("mode", "cluster") == "cluster")
    if "executor" in spec:
        dynamic = spec.get("dynamicAllocation") or {}
        least = _number(dynamic.get("minExecutors"))
        first = _number(dynamic.get("initialExecutors"), least)
        total += _number(_get(spec, "executor", "instances"), first)
    return total


def _dask_cluster(spec: Json) -> int:
    total = int(isinstance(_get(spec, "scheduler", "spec"), dict))
    if isinstance(_get(spec, "worker", "spec"), dict):
        total += _number(_get(spec, "worker", "replicas"))
    return total


def _dask_job(thing: Json, _: list[Json]) -> int:
    runner = isinstance(_get(thing, "spec", "job", "spec"), dict)
    return int(runner) + _dask_cluster(_get(thing, "spec", "cluster", "spec") or {})


def _groups(thing: Json, _: list[Json]) -> int:
    group = thing["spec"].get("leaderWorkerTemplate") or {}
    replicas, size = _number(thing["spec"].get("replicas")), _number(group.get("size"))
    return replicas * (size if group.get("workerTemplate") else bool(group.get("leaderTemplate")))


def _volcano(spec: Json) -> int:
    tasks = spec.get("tasks") or []
    return sum(_number(task.get("replicas"), 0) for task in tasks if task.get("template"))


def _workflow(spec: Json) -> int:
    runs = ("container", "script", "containerSet", "resource", "data")
    templates = spec.get("templates") or []
    return sum(any(template.get(kind) is not None for kind in runs) for template in templates)


def _pipeline_run(thing: Json, _: list[Json]) -> int:
    pipeline = thing["spec"].get("pipelineSpec") or {}
    tasks = [*(pipeline.get("tasks") or []), *(pipeline.get("finally") or [])]
    return sum("taskRef" in task or "taskSpec" in task for task in tasks)


def _inference(thing: Json, _: list[Json]) -> int:
    parts = [thing["spec"].get(part) for part in ("predictor", "transformer", "explainer")]
    return sum(_number(part.get("minReplicas")) for part in parts if isinstance(part, dict))


def _llm_part(spec: Json) -> int:
    replicas, parallelism = _number(spec.get("replicas")), spec.get("parallelism") or {}
    if "worker" not in spec:
        return replicas if "template" in spec else 0
    local = max(_number(parallelism.get("dataLocal")), 1)
    data = _number(parallelism.get("data")) * _number(parallelism.get("pipeline"))
    return replicas * max(data // local, 1)


def _llm(thing: Json, _: list[Json]) -> int:
    scheduler = _get(thing, "spec", "router", "scheduler") or {}
    scheduler_pods = _number(scheduler.get("replicas")) if "template" in scheduler else 0
    return scheduler_pods + _llm_part(thing["spec"]) + _llm_part(thing["spec"].get("prefill") or {})


def _experiment(thing: Json, beside: list[Json]) -> int:
    trial = _get(thing, "spec", "trialTemplate", "trialSpec")
    return (count_pods(trial, beside) or 0) if isinstance(trial, dict) else 0


def _at(*steps: str, by: Callable[[Json], int]) -> Callable[[Json, list[Json]], int]:
    """Return a count of what is at a path."""
    return lambda thing, _: by(_get(thing, *steps) or {})


KINDS: Final[dict[tuple[str, str], Callable[[Json, list[Json]], int]]] = {
    ("", "Pod"): lambda _thing, _beside: 1,
    ("", "ReplicationController"): _replicas,
    ("apps", "Deployment"): _replicas,
    ("apps", "ReplicaSet"): _replicas,
    ("apps", "StatefulSet"): _replicas,
    ("batch", "Job"): _at("spec", by=_batch_job),
    ("batch", "CronJob"): _at("spec", "jobTemplate", "spec", by=_batch_job),
    ("kubeflow.org", "TFJob"): _training("tfReplicaSpecs"),
    ("kubeflow.org", "PyTorchJob"): _training("pytorchReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _training("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _training("paddleReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _training("jaxReplicaSpecs"),
    ("kubeflow.org", "MXJob"): _training("mxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _mpi_job,
    ("kubeflow.org", "Experiment"): _experiment,
    ("kubeflow.org", "Notebook"): lambda thing, _: int("template" in thing["spec"]),
    ("jobset.x-k8s.io", "JobSet"): _at("spec", by=_jobset),
    ("trainer.kubeflow.org", "TrainingRuntime"): _runtime,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): _runtime,
    ("trainer.kubeflow.org", "TrainJob"): _train_job,
    ("ray.io", "RayCluster"): _at("spec", by=_ray_cluster),
    ("ray.io", "RayService"): _at("spec", "rayClusterConfig", by=_ray_cluster),
    ("ray.io", "RayJob"): _at("spec", by=_ray_job),
    ("ray.io", "RayCronJob"): _at("spec", "jobTemplate", by=_ray_job),
    ("sparkoperator.k8s.io", "SparkApplication"): _at("spec", by=_spark),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _at("spec", "template", by=_spark),
    ("kubernetes.dask.org", "DaskCluster"): _at("spec", by=_dask_cluster),
    ("kubernetes.dask.org", "DaskWorkerGroup"): _at("spec", by=_dask_cluster),
    ("kubernetes.dask.org", "DaskJob"): _dask_job,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _groups,
    ("batch.volcano.sh", "Job"): _at("spec", by=_volcano),
    ("batch.volcano.sh", "CronJob"): _at("spec", "jobTemplate", "spec", by=_volcano),
    ("flow.volcano.sh", "JobTemplate"): _at("spec", by=_volcano),
    ("argoproj.io", "Workflow"): _at("spec", by=_workflow),
    ("argoproj.io", "CronWorkflow"): _at("spec", "workflowSpec", by=_workflow),
    ("argoproj.io", "WorkflowTemplate"): _at("spec", by=_workflow),
    ("argoproj.io", "ClusterWorkflowTemplate"): _at("spec", by=_workflow),
    ("tekton.dev", "TaskRun"): lambda thing, _: int(
        "taskRef" in thing["spec"] or "taskSpec" in thing["spec"]
    ),
    ("tekton.dev", "PipelineRun"): _pipeline_run,
    ("serving.kserve.io", "InferenceService"): _inference,
    ("serving.kserve.io", "LLMInferenceService"): _llm,
}
