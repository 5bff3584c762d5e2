"""Which replica a pod is, and whether it leads, where that takes more than one look-up.

Pure readers of labels and annotations, which rows of `webhook.sources` name.
"""

from __future__ import annotations

from typing import Final

from webhook.marks import Key, Labels

TRAINING: Final = "training.kubeflow.org"
TRAINING_ROLE: Final = f"{TRAINING}/job-role"
TRAINING_OPERATOR: Final = f"{TRAINING}/operator-name"
TRAINING_INDEX: Final = f"{TRAINING}/replica-index"
PADDLE_OPERATOR: Final = "paddlejob-controller"
_JOBSET: Final = "jobset.sigs.k8s.io"
JOBSET_NAME: Final = f"{_JOBSET}/jobset-name"
JOBSET_COORDINATOR: Final = f"{_JOBSET}/coordinator"
REPLICATED_JOB: Final = f"{_JOBSET}/replicatedjob-name"
REPLICATED_JOB_REPLICAS: Final = f"{_JOBSET}/replicatedjob-replicas"
JOB_INDEX: Final = f"{_JOBSET}/job-index"

_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
COMPLETION_KEYS: Final = (Key(_COMPLETION_INDEX), Key(_COMPLETION_INDEX, annotation=True))
"""Kubernetes' own index of a pod in an Indexed Job; before 1.28 it was an annotation only."""


def parse_index(value: str | None) -> int | None:
    """A replica's index; None if absent, not all ASCII digits, or over 32 bits as in Kubernetes.

    A malformed index tells nothing, and is no error: the pod belongs to its run all the same.
    """
    if value is None or not 0 < len(value) <= 10 or not (value.isascii() and value.isdigit()):
        return None
    number = int(value)
    return number if number < 2**31 else None


def completion_index(labels: Labels, annotations: Labels) -> int | None:
    """The pod's index in its Indexed Job, or None."""
    index = parse_index(labels.get(_COMPLETION_INDEX))
    return parse_index(annotations.get(_COMPLETION_INDEX)) if index is None else index


def jobset_index(labels: Labels, annotations: Labels) -> int | None:
    """A pod's index among the replicas of its replicated job, or None.

    Those replicas are jobs, and where there are several, all pods of one job share its index;
    where there is one job, its pods are what is counted.
    """
    job = parse_index(labels.get(JOB_INDEX))
    if job is not None and labels.get(REPLICATED_JOB_REPLICAS, "1") != "1":
        return job
    index = completion_index(labels, annotations)
    return job if index is None else index


def jobset_leads(
    labels: Labels, annotations: Labels, role: str | None, framework: str | None
) -> bool | None:
    """Whether this pod leads its JobSet; None if neither the JobSet nor the framework tells.

    The label that spec.coordinator leaves on every pod of the set is the address of the one.
    """
    index = completion_index(labels, annotations)
    named = labels.get(JOBSET_COORDINATOR)
    if named:
        own = (labels.get(JOBSET_NAME), labels.get(REPLICATED_JOB), labels.get(JOB_INDEX), index)
        return named.partition(".")[0] == "-".join(map(str, own))
    # Trainer makes pod 0 of job 0 the MASTER_ADDR of torch, and JAX elects the same; neither
    # writes the framework on the pod. Where it is not known, one coordinator too many costs a
    # dearer node, one too few costs the run.
    if role == "worker" and framework in (None, "pytorch", "jax"):
        return index == 0 and labels.get(JOB_INDEX, "0") == "0"
    return None


def training_leads(
    labels: Labels, _annotations: Labels, role: str | None, _framework: str | None
) -> bool | None:
    """True for the worker that the training operator gave the role of the absent master.

    And for worker 0 of a PaddleJob: it is the rendezvous where the job has workers only (setPodEnv
    of pkg/controller.v1/paddlepaddle/envvar.go), and no label says so (IsMasterRole beside it).
    Where there is a master, one coordinator too many costs less than one too few.
    """
    # Of workers only: an MXJob has each of its servers so labelled, and those lead nothing.
    if role != "worker":
        return None
    paddle = labels.get(TRAINING_OPERATOR) == PADDLE_OPERATOR
    leads = labels.get(TRAINING_ROLE) == "master" or (paddle and labels.get(TRAINING_INDEX) == "0")
    return True if leads else None
