"""PyTorch's variables, by examples."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frameworks.resolvers.pytorch import Torchrun, torchrun
from webhook.errors import InvalidRun
from webhook.frameworks.pytorch import PyTorch, check, render_env
from webhook.frameworks.replica_group import Gang


def gang(options: dict[str, Any] | None = None, gpus: int = 0, **counts: int) -> Gang:
    """A PyTorch run in namespace ml, each replica with so many GPUs."""
    devices = {role: (gpus,) * count for role, count in counts.items()}
    model = PyTorch.model_validate(options or {})
    return Gang("mnist", "ml", "pytorch", counts, model, devices=devices)


def test_the_master_is_rank_0_and_worker_i_is_rank_i_and_1() -> None:
    """World size, ranks and nodes of a run of one GPU a replica."""
    assert render_env(gang(master=1, worker=3), "worker", 2).env == {
        "MASTER_ADDR": "mnist-master-0.mnist.ml.svc",
        "MASTER_PORT": "23456",
        "WORLD_SIZE": "4",
        "RANK": "3",
        "PET_NNODES": "4",
        "PET_NPROC_PER_NODE": "1",
        "PET_NODE_RANK": "3",
        "PET_MASTER_ADDR": "mnist-master-0.mnist.ml.svc",
        "PET_MASTER_PORT": "23456",
    }


def test_without_a_master_worker_0_leads() -> None:
    """Its rank is 0, and all are sent to it."""
    run = gang(worker=2)
    assert render_env(run, "worker", 0).env["RANK"] == "0"
    assert render_env(run, "worker", 1).env["RANK"] == "1"
    assert render_env(run, "worker", 1).env["MASTER_ADDR"] == "mnist-worker-0.mnist.ml.svc"


def test_torchrun_takes_a_static_rendezvous_from_the_variables() -> None:
    """As its own parser did with these."""
    run = gang(master=1, worker=2, gpus=4)
    assert torchrun(render_env(run, "worker", 1).env) == Torchrun(
        (3, 3), "4", "static", "mnist-master-0.mnist.ml.svc:23456", "none", 0, 2, standalone=False
    )


def test_torchrun_takes_an_elastic_rendezvous_from_the_variables() -> None:
    """The most are all replicas; the store is the leader's."""
    elastic = {"nprocPerNode": 2, "elastic": {"minReplicas": 1, "maxRestarts": 5}}
    assert torchrun(render_env(gang(elastic, worker=3), "worker", 1).env) == Torchrun(
        (1, 3), "2", "c10d", "mnist-worker-0.mnist.ml.svc:23456", "mnist", 5, 1, standalone=False
    )


def test_rendezvous_variables_are_for_elastic_runs_alone() -> None:
    """And PET_STANDALONE is for none: torchrun parses it as a number."""
    elastic = gang({"elastic": {"minReplicas": 1}}, worker=3)
    assert "PET_RDZV_BACKEND" in render_env(elastic, "worker", 0).env
    for run in (elastic, gang(master=1)):
        assert "PET_STANDALONE" not in render_env(run, next(iter(run.counts)), 0).env
    assert not {name for name in render_env(gang(master=1), "master", 0).env if "RDZV" in name}


@pytest.mark.parametrize(
    ("processes", "gpus", "told", "world"),
    [
        (None, 0, "1", "2"),
        (None, 8, "8", "16"),
        (3, 8, "3", "6"),
        ("gpu", 8, "gpu", "16"),
        ("auto", 8, "auto", "16"),
        # How many CPUs torchrun will see is not known; it tells its processes itself.
        ("auto", 0, "auto", "2"),
        ("cpu", 8, "cpu", "2"),
    ],
)
def test_processes_are_set_by_the_run_or_by_the_gpus(
    processes: object, gpus: int, told: str, world: str
) -> None:
    """The world is replicas times processes."""
    options = {} if processes is None else {"nprocPerNode": processes}
    env = render_env(gang(options, gpus, worker=2), "worker", 0).env
    assert (env["PET_NPROC_PER_NODE"], env["WORLD_SIZE"]) == (told, world)


def test_replicas_with_unlike_gpus_get_one_process_each() -> None:
    """torchrun wants the same number everywhere, unless told otherwise."""
    run = Gang(
        "mnist",
        "ml",
        "pytorch",
        {"master": 1, "worker": 2},
        devices={"master": (4,), "worker": (4, 8)},
    )
    env = render_env(run, "worker", 1).env
    assert (env["PET_NPROC_PER_NODE"], env["WORLD_SIZE"]) == ("1", "3")


def test_an_elastic_run_that_wants_more_than_it_has_is_refused() -> None:
    """It would wait for ever."""
    with pytest.raises(InvalidRun, match=r"^spec\.pytorch\.elastic\.minReplicas: is 5\b.* 4\b"):
        check(gang({"elastic": {"minReplicas": 5}}, master=1, worker=3))
    check(gang({"elastic": {"minReplicas": 4}}, master=1, worker=3))
