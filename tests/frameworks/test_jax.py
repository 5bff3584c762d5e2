"""JAX's variables, by example."""

from __future__ import annotations

from webhook.frameworks.jax import render_env
from webhook.frameworks.replica_group import Gang


def test_worker_0_is_the_coordinator() -> None:
    """Under the new names and the older ones, whose address has no port."""
    assert render_env(Gang("gpt", "ml", "jax", {"worker": 4}), "worker", 3).env == {
        "JAX_COORDINATOR_ADDRESS": "gpt-worker-0.gpt.ml.svc:6666",
        "JAX_NUM_PROCESSES": "4",
        "JAX_PROCESS_ID": "3",
        "COORDINATOR_ADDRESS": "gpt-worker-0.gpt.ml.svc",
        "COORDINATOR_PORT": "6666",
        "NUM_PROCESSES": "4",
        "PROCESS_ID": "3",
    }
