"""Paddle's variables, by examples."""

from __future__ import annotations

import pytest

from webhook.frameworks.paddle import render_env
from webhook.frameworks.replica_group import Gang


def gang(**counts: int) -> Gang:
    """A Paddle run in namespace ml."""
    return Gang("ernie", "ml", "paddle", counts)


@pytest.mark.parametrize("leader", ["master", "server"])
def test_the_leader_serves_and_the_others_go_to_it(leader: str) -> None:
    """The launcher serves only where it is told its own machine."""
    run = gang(**{leader: 1, "worker": 2})
    assert render_env(run, leader, 0).env["PADDLE_MASTER"] == "127.0.0.1:36543"
    assert (
        render_env(run, "worker", 1).env["PADDLE_MASTER"] == f"ernie-{leader}-0.ernie.ml.svc:36543"
    )


def test_a_collective_run_has_nodes_and_ranks() -> None:
    """The workers alone, or after a master."""
    assert render_env(gang(worker=2), "worker", 1).env == {
        "PADDLE_MASTER": "ernie-worker-0.ernie.ml.svc:36543",
        "PADDLE_NNODES": "2",
        "PADDLE_JOB_ID": "ernie",
        "PADDLE_RANK": "1",
    }


def test_with_servers_each_pod_gets_its_role() -> None:
    """One server, or one trainer."""
    run = gang(server=2, worker=3)
    server, worker = render_env(run, "server", 1).env, render_env(run, "worker", 2).env
    assert (server["PADDLE_SERVER_NUM"], server["PADDLE_RANK"]) == ("1", "1")
    assert (worker["PADDLE_TRAINER_NUM"], worker["PADDLE_RANK"]) == ("1", "4")
    assert not server.keys() & {"PADDLE_TRAINER_NUM"}
    assert not worker.keys() & {"PADDLE_SERVER_NUM"}
