"""MXNet's variables, by example."""

from __future__ import annotations

from webhook.frameworks.mxnet import render_env
from webhook.frameworks.replica_group import Gang


def test_all_replicas_get_the_scheduler_and_their_role() -> None:
    """In ps-lite's words, which are our roles."""
    run = Gang("lenet", "ml", "mxnet", {"scheduler": 1, "server": 2, "worker": 3})
    for role in run.counts:
        assert render_env(run, role, 0).env == {
            "DMLC_PS_ROOT_URI": "lenet-scheduler-0.lenet.ml.svc",
            "DMLC_PS_ROOT_PORT": "9091",
            "DMLC_NUM_SERVER": "2",
            "DMLC_NUM_WORKER": "3",
            "DMLC_ROLE": role,
            "DMLC_USE_KUBERNETES": "1",
        }
