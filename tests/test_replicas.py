"""Which replica a pod is, and whether it leads its run."""

from __future__ import annotations

import pytest

from tests.marked_pods import RUN, jobset, training, who
from webhook.frameworks.table import FRAMEWORKS, WORKER_ZERO_LEADS


@pytest.mark.parametrize("index", ["", "-1", "+1", "1.0", "٣", "²", "1e3", "9" * 63, str(2**31)])
def test_an_invalid_index_counts_as_missing(index: str) -> None:
    """Signs, other digits than ASCII's, and numbers over 32 bits are no replica index."""
    assert who(RUN | {"fairlead.dev/replica-index": index}).replica_index is None


def test_worker_0_leads_where_the_framework_has_no_other_leader() -> None:
    """JAX's worker 0 is the coordinator; PyTorch's is not, for there a master leads."""
    worker = RUN | {"fairlead.dev/role": "worker", "fairlead.dev/replica-index": "0"}
    assert who(worker | {"fairlead.dev/framework": "jax"}).coordinator
    assert not who(worker | {"fairlead.dev/framework": "pytorch"}).coordinator
    other = {"fairlead.dev/framework": "jax", "fairlead.dev/replica-index": "1"}
    assert not who(worker | other).coordinator


def test_the_training_operators_worker_0_leads_if_it_has_the_masters_role() -> None:
    """job-role: master on a worker says that the job has no master of its own."""
    assert who(training("tfjob", "worker", 0, job_role="master")).coordinator
    assert not who(training("tfjob", "worker", 0)).coordinator


def test_a_paddle_jobs_worker_0_leads_though_nothing_says_so() -> None:
    """Of workers alone it is PADDLE_MASTER; the operator gives job-role to a Master only."""
    assert who(training("paddlejob", "worker", 0)).coordinator
    assert not who(training("paddlejob", "worker", 1)).coordinator
    assert who(training("paddlejob", "master", 0, job_role="master")).coordinator
    assert not who(training("xgboostjob", "worker", 0)).coordinator


def test_an_mxjobs_server_leads_nothing_though_it_has_the_masters_role() -> None:
    """The operator gives job-role: master to every server of an MXJob."""
    assert not who(training("mxjob", "server", 0, job_role="master")).coordinator
    assert who(training("mxjob", "scheduler", 0)).coordinator


@pytest.mark.parametrize(
    ("pod", "index"),
    [
        (jobset("workers", pod=3), 3),
        (jobset("workers", replicas=4, job_index=2, pod=0), 2),
        (jobset("workers", replicas=4, job_index=2, pod=None), 2),
        (jobset("workers", pod=None), 0),
    ],
)
def test_a_jobsets_index_counts_jobs_or_the_one_jobs_pods(pod: dict[str, str], index: int) -> None:
    """Of several jobs in a replicated job the job's index counts, of one its pod's."""
    assert who(pod).replica_index == index


def test_a_jobset_that_names_its_coordinator_has_that_one_only() -> None:
    """The label of spec.coordinator is the coordinator's address; role and index 0 yield to it."""
    named = {"jobset.sigs.k8s.io/coordinator": "llama-slice-1-0.llama"}
    leader = jobset("slice", replicas=2, job_index=1, pod=0) | named
    assert who(leader).role is None
    assert who(leader).coordinator
    assert not who(jobset("slice", replicas=2, job_index=0, pod=0) | named).coordinator
    assert not who(jobset("worker", pod=0) | named).coordinator


def test_a_jobsets_worker_0_leads_unless_its_framework_has_another_leader() -> None:
    """Trainer's torch master is node 0 of job 0; an MPI job is led by its launcher."""
    worker = jobset("node", pod=0)
    told = [who(worker | {"fairlead.dev/framework": name}).coordinator for name in FRAMEWORKS]
    assert dict(zip(FRAMEWORKS, told, strict=True)) == {
        name: name in ("pytorch", *WORKER_ZERO_LEADS) for name in FRAMEWORKS
    }
    assert not who(jobset("node", pod=1)).coordinator
    assert not who(jobset("node", replicas=2, job_index=1, pod=0)).coordinator
    assert who(jobset("launcher", pod=0)).coordinator


def test_the_completion_index_of_an_indexed_job_is_the_last_resort() -> None:
    """A template of an Indexed Job cannot number its pods; Kubernetes does, long by annotation."""
    key = "batch.kubernetes.io/job-completion-index"
    assert who(RUN, {key: "5"}).replica_index == 5
    assert who(RUN | {key: "5"}).replica_index == 5
    assert who(RUN | {"fairlead.dev/replica-index": "2"}, {key: "5"}).replica_index == 2
