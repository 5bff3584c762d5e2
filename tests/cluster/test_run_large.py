"""A run of so many replicas that its Service is closed at first."""

from __future__ import annotations

from tests.cluster.live_runs import create_run
from tests.cluster.spaces import Space
from webhook import names
from webhook.run.reconcile import LARGE

pytest_plugins = ["tests.cluster.run_fixtures"]


def test_a_large_run_has_its_addresses_when_all_its_pods_are_there(run_space: Space) -> None:
    """Only then does the Service select them."""
    live = create_run(
        run_space,
        "large",
        framework="pytorch",
        replicas={"master": {}, "worker": {"count": LARGE}},
    )

    def selector() -> object:
        return run_space.get("services", "large")["spec"].get("selector")

    live.until("every replica has a pod", lambda: len(live.pods()) == LARGE + 1)
    uid = live.run()["metadata"]["uid"]
    live.until("the Service selects them", lambda: selector() == {names.RUN_UID: uid})
