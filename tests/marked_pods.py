"""Pods' metadata as each system really writes it, for the tests of the table of marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fast_yaml import load_yaml
from webhook.identity import Identity, identify

# Pods as each system really labels them, with the identity that they are read as.
PODS: list[dict[str, Any]] = load_yaml(
    (Path(__file__).parent / "golden" / "marks" / "pods.yaml").read_text()
)
RUN = {"fairlead.dev/run": "mnist"}


def who(
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    namespace: Mapping[str, str] | None = None,
) -> Identity:
    identity = identify(labels, annotations or {}, namespace or {})
    assert identity is not None
    return identity


def training(operator: str, replica: str, index: int, **more: str) -> dict[str, str]:
    """A pod's labels from createNewPod of the training operator 1.8."""
    return {
        "training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/operator-name": f"{operator}-controller",
        "training.kubeflow.org/replica-type": replica,
        "training.kubeflow.org/replica-index": str(index),
        **{f"training.kubeflow.org/{key.replace('_', '-')}": value for key, value in more.items()},
    }


def jobset(job: str, *, replicas: int = 1, job_index: int = 0, pod: int | None) -> dict[str, str]:
    """A pod's labels from JobSet's labelAndAnnotateObject, and Kubernetes' Job controller."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "llama",
        "jobset.sigs.k8s.io/replicatedjob-name": job,
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "jobset.sigs.k8s.io/replicatedjob-replicas": str(replicas),
        "jobset.sigs.k8s.io/global-replicas": str(replicas),
        "jobset.sigs.k8s.io/job-index": str(job_index),
        "jobset.sigs.k8s.io/job-key": "6c2f7c1d4ef3",
        "jobset.sigs.k8s.io/job-global-index": str(job_index),
        "batch.kubernetes.io/job-name": f"llama-{job}-{job_index}",
        "batch.kubernetes.io/controller-uid": "9d2c0a55-4d38-4e2c-8a2a-0b8a8f0d9f11",
    }
    if pod is not None:
        labels["batch.kubernetes.io/job-completion-index"] = str(pod)
    return labels


def shown(identity: Identity) -> dict[str, Any]:
    """The fields of an identity that say something, as golden cases have them."""
    return {
        key: value
        for key, value in identity._asdict().items()
        if value is not None and value is not False
    }


MLRUN = {
    "mlrun/class": "job",
    "mlrun/project": "fraud",
    "mlrun/function": "trainer",
    "mlrun/tag": "latest",
    "mlrun/scrape-metrics": "True",
    "mlrun/uid": "3f0a4c2b7d5e4a1e9f61",
    "mlrun/name": "train-model",
    "mlrun/owner": "iris",
}
SPARK = {
    "spark-app-selector": "spark-7f3c1a",
    "spark-app-name": "etl",
    "spark-role": "executor",
    "spark-exec-id": "4",
    "spark-version": "3.5.3",
}
KATIB = {"katib.kubeflow.org/trial": "random-x7k2", "katib.kubeflow.org/experiment": "random"}
