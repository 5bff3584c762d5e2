"""A run of so many replicas that its Service is closed at first."""

from __future__ import annotations

from tests.cluster.rooms import Room
from tests.cluster.scenes import play
from webhook import names
from webhook.run.reconcile import LARGE

pytest_plugins = ["tests.cluster.run_fixtures"]


def test_a_large_run_has_its_addresses_when_all_its_pods_are_there(run_room: Room) -> None:
    """Only then does the Service select them."""
    scene = play(
        run_room,
        "large",
        framework="pytorch",
        replicas={"master": {}, "worker": {"count": LARGE}},
    )

    def selector() -> object:
        return run_room.get("services", "large")["spec"].get("selector")

    scene.until("every replica has a pod", lambda: len(scene.pods()) == LARGE + 1)
    uid = scene.run()["metadata"]["uid"]
    scene.until("the Service selects them", lambda: selector() == {names.RUN_UID: uid})
