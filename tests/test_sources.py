"""The table of marks: each system's pods are known by the labels that it really writes."""

from __future__ import annotations

import pytest

from tests.marked_pods import (
    KATIB,
    MLRUN,
    RUN,
    SPARK,
    jobset,
    polyaxon,
    polyaxon_annotations,
    training,
)
from webhook.identity import Identity, identify
from webhook.sources import SOURCES

# name: labels, annotations, what they must be read as
PODS: dict[str, tuple[dict[str, str], dict[str, str], Identity]] = {
    "fairlead": (
        RUN
        | {
            "fairlead.dev/kind": "experiment",
            "fairlead.dev/framework": "tensorflow",
            "fairlead.dev/role": "chief",
            "fairlead.dev/replica-index": "0",
        },
        {},
        Identity("mnist", "experiment", "tensorflow", "chief", 0, "fairlead", True),
    ),
    "fairlead, the mark alone": (
        RUN,
        {},
        Identity("mnist", "job", None, None, None, "fairlead", False),
    ),
    "mlrun job": (
        MLRUN,
        {},
        Identity("train-model", "job", None, None, None, "mlrun", False),
    ),
    "mlrun build": (
        {"mlrun/class": "build", "mlrun/task-name": "mlrun-build-x", "mlrun/project": "fraud"},
        {},
        Identity("mlrun-build-x", "build", None, None, None, "mlrun", False),
    ),
    "mlrun spark": (
        MLRUN | SPARK | {"mlrun/class": "spark", "mlrun/job": "train-model-5a1b"},
        {},
        Identity("train-model", "job", "spark", "executor", 4, "mlrun", False),
    ),
    "mlrun mpi": (
        MLRUN
        | {"mlrun/class": "mpijob", "mlrun/job": "train-model-5a1b"}
        | {"group-name": "kubeflow.org", "mpi-job-name": "train-model-5a1b"}
        | {"mpi-job-role": "launcher"},
        {},
        Identity("train-model", "job", "mpi", "launcher", None, "mlrun", True),
    ),
    "mlrun dask": (
        {"mlrun/class": "dask", "mlrun/project": "fraud", "mlrun/function": "cluster"}
        | {"dask.org/cluster-name": "mlrun-cluster-a1", "dask.org/component": "worker"},
        {},
        Identity("cluster", "job", "dask", "worker", None, "mlrun", False),
    ),
    "mlrun serving, made by nuclio": (
        {"mlrun/class": "serving", "nuclio.io/project-name": "fraud"}
        | {"nuclio.io/function-name": "fraud-serve", "nuclio.io/class": "function"},
        {},
        Identity("fraud-serve", "service", None, None, None, "mlrun", False),
    ),
    "nuclio": (
        {
            "nuclio.io/app": "functionres",
            "nuclio.io/class": "function",
            "nuclio.io/function-name": "resize",
            "nuclio.io/function-version": "latest",
            "nuclio.io/project-name": "images",
        },
        {"nuclio.io/image-hash": "1700000000"},
        Identity("resize", "service", None, None, None, "nuclio", False),
    ),
    "polyaxon job": (
        polyaxon("polyaxon-jobs"),
        polyaxon_annotations("job"),
        Identity("mnist-search", "job", None, None, None, "polyaxon", False),
    ),
    "polyaxon build": (
        polyaxon("polyaxon-jobs"),
        polyaxon_annotations("builder"),
        Identity("mnist-search", "build", None, None, None, "polyaxon", False),
    ),
    "polyaxon service, from an operator that copies no annotations": (
        polyaxon("polyaxon-services"),
        {},
        Identity(
            "8aac02e3a62a4f0aaa257c59da5eab80",
            "service",
            None,
            None,
            None,
            "polyaxon",
            False,
        ),
    ),
    "polyaxon tfjob": (
        polyaxon("polyaxon-tfjobs") | training("tfjob", "ps", 2),
        polyaxon_annotations("tfjob"),
        Identity("mnist-search", "job", "tensorflow", "ps", 2, "polyaxon", False),
    ),
    "katib trial on a batch job": (
        KATIB | {"batch.kubernetes.io/job-name": "random-x7k2"},
        {},
        Identity("random-x7k2", "experiment", None, None, None, "katib", False),
    ),
    "katib suggestion": (
        {
            "katib.kubeflow.org/deployment": "random-random",
            "katib.kubeflow.org/experiment": "random",
            "katib.kubeflow.org/suggestion": "random",
        },
        {},
        Identity("random", "service", None, None, None, "katib", False),
    ),
    "pipelines": (
        {
            "pipeline/runid": "b1c6f0c8-19c4-4f0f-8e64-3a6d6d9d4c55",
            "pipelines.kubeflow.org/v2_component": "true",
            "workflows.argoproj.io/workflow": "churn-n9xkq",
            "workflows.argoproj.io/completed": "false",
        },
        {"pipelines.kubeflow.org/v2_component": "true"},
        Identity("churn-n9xkq", "job", None, None, None, "kubeflow-pipelines", False),
    ),
    "trainer, in a runtime whose pod template has the step": (
        jobset("node", pod=2) | {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
        {},
        Identity("llama", "job", None, "worker", 2, "kubeflow-trainer", False),
    ),
    "trainer's dataset initializer": (
        jobset("dataset-initializer", pod=0)
        | {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"},
        {},
        Identity("llama", "job", None, None, 0, "kubeflow-trainer", False),
    ),
    "mpi operator v2beta1": (
        {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "pi",
            "training.kubeflow.org/job-role": "worker",
            "training.kubeflow.org/replica-index": "1",
        },
        {},
        Identity("pi", "job", "mpi", "worker", 1, "mpi-operator", False),
    ),
    "mpi operator v1alpha2": (
        {"group_name": "kubeflow.org", "mpi_job_name": "pi", "mpi_role_type": "launcher"},
        {},
        Identity("pi", "job", "mpi", "launcher", None, "mpi-operator", True),
    ),
    "training operator, PyTorchJob": (
        training("pytorchjob", "master", 0, job_role="master"),
        {},
        Identity("mnist", "job", "pytorch", "master", 0, "kubeflow-training", True),
    ),
    "training operator, TFJob": (
        training("tfjob", "evaluator", 0),
        {},
        Identity("mnist", "job", "tensorflow", "evaluator", 0, "kubeflow-training", False),
    ),
    "training operator, MPIJob": (
        training("mpijob", "launcher", 0, job_role="master"),
        {},
        Identity("mnist", "job", "mpi", "launcher", 0, "kubeflow-training", True),
    ),
    "ray head": (
        {
            "ray.io/is-ray-node": "yes",
            "ray.io/cluster": "rc-1",
            "ray.io/node-type": "head",
            "ray.io/group": "headgroup",
            "ray.io/identifier": "rc-1-head",
            "app.kubernetes.io/name": "kuberay",
            "app.kubernetes.io/created-by": "kuberay-operator",
        },
        {},
        Identity("rc-1", "job", "ray", "head", None, "kuberay", True),
    ),
    "ray service's worker": (
        {
            "ray.io/cluster": "serve-raycluster-x1",
            "ray.io/node-type": "worker",
            "ray.io/group": "gpus",
            "ray.io/serve": "true",
            "ray.io/worker-group-replica-index": "3",
        },
        {},
        Identity("serve-raycluster-x1", "service", "ray", "worker", 3, "kuberay", False),
    ),
    "ray service's head, whose proxy is not healthy yet": (
        {
            "ray.io/cluster": "serve-raycluster-x1",
            "ray.io/node-type": "head",
            "ray.io/group": "headgroup",
            "ray.io/serve": "false",
        },
        {},
        Identity("serve-raycluster-x1", "service", "ray", "head", None, "kuberay", True),
    ),
    "ray job's submitter, since KubeRay 1.7": (
        {
            "ray.io/originated-from-cr-name": "sums",
            "ray.io/originated-from-crd": "RayJob",
            "app.kubernetes.io/created-by": "kuberay-operator",
            "batch.kubernetes.io/job-name": "sums",
        },
        {},
        Identity("sums", "job", "ray", None, None, "kuberay", False),
    ),
    "spark driver by the operator": (
        {
            "spark-app-selector": "spark-7f3c1a",
            "spark-app-name": "spark-pi",
            "spark-role": "driver",
            "sparkoperator.k8s.io/app-name": "spark-pi",
            "sparkoperator.k8s.io/launched-by-spark-operator": "true",
            "sparkoperator.k8s.io/submission-id": "0b7e1c1c",
        },
        {},
        Identity("spark-pi", "job", "spark", "driver", None, "spark", True),
    ),
    "spark executor": (
        SPARK,
        {},
        Identity("etl", "job", "spark", "executor", 4, "spark", False),
    ),
    "dask job runner": (
        {"dask.org/cluster-name": "sums", "dask.org/component": "job-runner"}
        | {"sidecar.istio.io/inject": "false"},
        {},
        Identity("sums", "job", "dask", "driver", None, "dask", True),
    ),
    "dask worker": (
        {
            "dask.org/cluster-name": "sums",
            "dask.org/workergroup-name": "sums-default",
            "dask.org/component": "worker",
        },
        {},
        Identity("sums", "job", "dask", "worker", None, "dask", False),
    ),
    "jobset, and all of Trainer's default runtimes": (
        jobset("node", pod=0),
        {},
        Identity("llama", "job", None, "worker", 0, "jobset", True),
    ),
    "volcano task": (
        {"volcano.sh/job-name": "mpi", "volcano.sh/task-spec": "mpimaster"}
        | {"volcano.sh/task-index": "0", "volcano.sh/queue-name": "default"},
        {},
        Identity("mpi", "job", None, "launcher", 0, "volcano", True),
    ),
    "leader of a LeaderWorkerSet": (
        {
            "leaderworkerset.sigs.k8s.io/name": "llama",
            "leaderworkerset.sigs.k8s.io/worker-index": "0",
            "apps.kubernetes.io/pod-index": "3",
        },
        {"leaderworkerset.sigs.k8s.io/size": "2"},
        Identity("llama", "job", None, "head", 0, "leaderworkerset", True),
    ),
    "worker of a LeaderWorkerSet, before its webhook": (
        {"leaderworkerset.sigs.k8s.io/name": "llama", "apps.kubernetes.io/pod-index": "1"},
        {"leaderworkerset.sigs.k8s.io/leader-name": "llama-3"},
        Identity("llama", "job", None, "worker", 1, "leaderworkerset", False),
    ),
    "predictor of KServe": (
        {"serving.kserve.io/inferenceservice": "iris", "component": "predictor"},
        {},
        Identity("iris", "service", None, None, None, "kserve", False),
    ),
    "worker of an LLMInferenceService": (
        {
            "app.kubernetes.io/part-of": "llminferenceservice",
            "app.kubernetes.io/name": "llama",
            "leaderworkerset.sigs.k8s.io/name": "llama-kserve-mn",
            "leaderworkerset.sigs.k8s.io/worker-index": "1",
        },
        {"leaderworkerset.sigs.k8s.io/leader-name": "llama-kserve-mn-0"},
        Identity("llama", "service", None, "worker", 1, "kserve", False),
    ),
    "notebook": (
        {"notebook-name": "iris", "statefulset": "iris", "app": "iris"},
        {},
        Identity("iris", "notebook", None, None, None, "kubeflow-notebooks", False),
    ),
    "workspace": (
        {"notebooks.kubeflow.org/workspace-name": "iris", "statefulset": "ws-iris-abc12"},
        {},
        Identity("iris", "notebook", None, None, None, "kubeflow-notebooks", False),
    ),
}


@pytest.mark.parametrize("pod", PODS)
def test_each_systems_own_labels_tell_the_run(pod: str) -> None:
    """A pod as each system really labels it is read as what it is."""
    labels, annotations, expected = PODS[pod]
    assert identify(labels, annotations, {}) == expected


def test_every_row_of_the_table_has_an_example() -> None:
    """No row is in the table without a pod here that proves it; the namespace has its own tests."""
    seen = {expected.source for _, _, expected in PODS.values()}
    assert seen == {source.name for source in SOURCES} - {"namespace"}
