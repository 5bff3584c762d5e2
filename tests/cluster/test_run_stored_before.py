"""A Run that the API server of an earlier version stored, with all defaults written into it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.cluster.causes import message_with, rule_message
from tests.cluster.live_runs import LiveRun
from tests.cluster.spaces import Json, Space
from tests.policy.examples import changed
from tests.run.written_defaults import AS_WRITTEN, STORED
from webhook import names
from webhook.run.crd import FIXED as RULES
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.run_fixtures"]

FIXED = message_with("may not be changed", RULES)


def replace(plane: ControlPlane, namespace: str, before: Json, after: Json) -> tuple[int, Json]:
    """Create one Run, replace it by another, as `kubectl replace` does, and delete it."""
    path = f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.RUNS}"
    made = plane.api.create(path, copy.deepcopy(before))
    update = copy.deepcopy(after)
    update["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    name = before["metadata"]["name"]
    answer: tuple[int, Json] = plane.api.call(
        "PUT", f"{path}/{name}?dryRun=All&fieldValidation=Strict", update
    )
    plane.api.call("DELETE", f"{path}/{name}")
    return answer


def test_the_file_that_made_it_can_replace_it(bare_space: Space) -> None:
    """A field left out equals its default; and the other way round."""
    for before, after in ((STORED, AS_WRITTEN), (AS_WRITTEN, STORED)):
        status, answer = replace(bare_space.plane, bare_space.name, before, after)
        assert status == 200, answer


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("backoffLimit",), 4, "backoffLimit"),
        (("restartScope",), "Run", "restartScope"),
        (("cleanPodPolicy",), "All", "cleanPodPolicy"),
        (("replicas", "worker", "restartPolicy"), "Never", "replicas"),
        (("replicas", "worker", "count"), 3, "replicas"),
        (("mpi", "implementation"), "Intel", "mpi"),
        (("mpi", "slotsPerWorker"), 2, "mpi"),
    ],
)
def test_another_value_than_the_default_is_a_change(
    bare_space: Space, path: tuple[str, ...], value: Any, field: str
) -> None:
    """Whether the stored Run has the default or not."""
    for before in (STORED, AS_WRITTEN):
        after = changed(AS_WRITTEN, ("spec", *path), value)
        status, answer = replace(bare_space.plane, bare_space.name, before, after)
        causes = answer["details"]["causes"]
        assert status == 422
        assert [(each["field"], rule_message(each["message"])) for each in causes] == [
            (f"spec.{field}", FIXED)
        ]


def test_the_controller_goes_on_with_it(run_space: Space) -> None:
    """It runs, restarts its failed worker, is suspended and resumed, and succeeds."""
    run_space.create(copy.deepcopy(STORED))
    live = LiveRun(run_space, "stored")
    pods = live.until_running("launcher-0", "worker-0", "worker-1")
    live.ends("worker-1", 1)
    live.until_replaced("worker-1", pods["worker-1"])
    live.set(suspend=True)
    live.until_phase("Suspended")
    live.set(suspend=False)
    live.until_running("launcher-0", "worker-0", "worker-1")
    live.ends("launcher-0", 0)

    assert live.until_phase("Succeeded")["restarts"] == 1
    stored = live.run()["spec"]
    assert (stored["backoffLimit"], stored["cleanPodPolicy"]) == (3, "Running")
