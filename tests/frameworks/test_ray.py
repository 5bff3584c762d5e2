"""Ray's variables, by examples."""

from __future__ import annotations

from webhook.frameworks.ray import render_env
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.table import ROLES

GANG = Gang("tune", "ml", "ray", {"head": 1, "worker": 2, "driver": 1})
HEAD = "tune-head-0.tune.ml.svc"


def test_head_and_workers_get_the_heads_address() -> None:
    """For `ray start`, and for programs beside it."""
    for role in ("head", "worker"):
        assert render_env(GANG, role, 0).env == {"RAY_ADDRESS": f"{HEAD}:6379", "RAY_PORT": "6379"}


def test_a_driver_gets_the_address_for_clients() -> None:
    """It has no Ray node in its pod, which any other address would need."""
    assert render_env(GANG, "driver", 0).env == {
        "RAY_ADDRESS": f"ray://{HEAD}:10001",
        "RAY_PORT": "6379",
        "RAY_API_SERVER_ADDRESS": f"http://{HEAD}:8265",
    }


def test_no_worker_starts_before_the_head_runs() -> None:
    """A worker that finds no head fails."""
    after = ROLES["ray"].after
    assert after is not None
    assert {role for role, first in after.items() if first == ("head",)} == {"worker", "driver"}
