"""Dask's variables, by example."""

from __future__ import annotations

from webhook.frameworks.dask import render_env
from webhook.frameworks.replica_group import Gang

SCHEDULER = "tcp://etl-scheduler-0.etl.ml.svc:8786"


def test_all_replicas_get_the_scheduler_and_workers_their_names() -> None:
    """A name means nothing to a scheduler or a driver."""
    run = Gang("etl", "ml", "dask", {"scheduler": 1, "worker": 2, "driver": 1})
    assert render_env(run, "worker", 1).env == {
        "DASK_SCHEDULER_ADDRESS": SCHEDULER,
        "DASK_WORKER_NAME": "etl-worker-1",
    }
    for role in ("scheduler", "driver"):
        assert render_env(run, role, 0).env == {"DASK_SCHEDULER_ADDRESS": SCHEDULER}
