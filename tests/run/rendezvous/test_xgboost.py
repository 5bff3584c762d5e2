"""XGBoost's variables, by example."""

from __future__ import annotations

from webhook.run.gang import Gang
from webhook.run.rendezvous.xgboost import tell


def test_the_tracker_is_on_the_master_which_trains_too() -> None:
    """So there are as many workers as replicas, and worker 0 is the second."""
    assert tell(Gang("trees", "ml", "xgboost", {"master": 1, "worker": 2}), "worker", 0).env == {
        "DMLC_TRACKER_URI": "trees-master-0.trees.ml.svc",
        "DMLC_TRACKER_PORT": "9999",
        "DMLC_TASK_ID": "1",
        "DMLC_NUM_WORKER": "3",
        "MASTER_ADDR": "trees-master-0.trees.ml.svc",
        "MASTER_PORT": "9999",
        "WORLD_SIZE": "3",
        "RANK": "1",
    }
