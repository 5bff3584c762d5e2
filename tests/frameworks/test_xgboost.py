"""XGBoost's variables, by example."""

from __future__ import annotations

from webhook.frameworks.replica_group import Gang
from webhook.frameworks.xgboost import render_env


def test_the_tracker_is_on_the_master_which_trains_too() -> None:
    """So there are as many workers as replicas, and worker 0 is the second."""
    assert render_env(
        Gang("trees", "ml", "xgboost", {"master": 1, "worker": 2}), "worker", 0
    ).env == {
        "DMLC_TRACKER_URI": "trees-master-0.trees.ml.svc",
        "DMLC_TRACKER_PORT": "9999",
        "DMLC_TASK_ID": "1",
        "DMLC_NUM_WORKER": "3",
        "MASTER_ADDR": "trees-master-0.trees.ml.svc",
        "MASTER_PORT": "9999",
        "WORLD_SIZE": "3",
        "RANK": "1",
        "WORKER_ADDRS": "trees-worker-0.trees.ml.svc,trees-worker-1.trees.ml.svc",
        "WORKER_PORT": "9999",
    }


def test_a_single_master_gets_no_workers() -> None:
    """As Kubeflow's training operator has it."""
    assert not {"WORKER_ADDRS", "WORKER_PORT"} & set(
        render_env(Gang("trees", "ml", "xgboost", {"master": 1}), "master", 0).env
    )


def test_addresses_of_many_workers_are_short_and_of_more_are_left_out() -> None:
    """XGBoost itself needs none; a variable that is too long keeps the pod from starting."""
    many = Gang("trees", "n" * 63, "xgboost", {"master": 1, "worker": 2_000})
    assert render_env(many, "worker", 7).env["WORKER_ADDRS"].startswith("trees-worker-0.trees,")
    more = Gang("trees", "ml", "xgboost", {"master": 1, "worker": 9_000})
    assert "WORKER_ADDRS" not in render_env(more, "worker", 7).env
