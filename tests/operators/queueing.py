"""Runs on Fairlead's own controller in queues of Kueue, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pytest

from tests.cluster.live_runs import ALONE, SOON, TEMPLATE, LiveRun, run_manifest
from tests.cluster.spaces import Json, Space
from tests.wording import mentions
from webhook import names
from webhook.installation.manifests import render
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl

SIZE: Final = {"master": 1, "worker": 2}
PRIORITY: Final = f"{names.KUEUE_PREFIX}priority-class"
CONTROLLER: Final = "queueing"


Begin: TypeAlias = Callable[[], object]


@pytest.fixture(scope="module")
def begin(control_plane: ControlPlane) -> Begin:
    """Starts the controller, which has the rights of an installation without a backend."""
    options = (*ALONE, *SOON, "--no-nodes")
    return lambda: start_controller(control_plane, name=CONTROLLER, options=options)


@pytest.fixture(scope="module")
def queueing_controller(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, begin: Begin
) -> Iterator[None]:
    """The controller runs, with the component's rights; without them a run names the cure."""
    begin()
    space = Space(control_plane, cluster_kubectl.within("default"), "default")
    first = play(space, "gpu", "first")
    first.until("it says what it may not", lambda: "--backend kueue" in said(first))
    mentions(said(first), "queue gpu", "may not read Workloads")
    assert first.pods() == {}
    space.delete(names.RUNS, first.name)
    cluster_kubectl.create(*render((), ("backend-kueue",)).values())
    yield
    control_plane.stop_component(CONTROLLER)


def play(
    space: Space,
    queue: str,
    name: str = "train",
    size: Json = SIZE,
    *,
    priority: str = "",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> LiveRun:
    """A PyTorch run in a queue, each of whose replicas asks for one CPU."""
    container = {**TEMPLATE["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}
    manifest = run_manifest(
        name,
        replicas={
            role: count if isinstance(count, dict) else {"count": count}
            for role, count in size.items()
        },
        **{
            "framework": "pytorch",
            "template": {"spec": {"containers": [container]}},
            **spec,
        },
    )
    of_kueue = {names.KUEUE_QUEUE: queue, **({PRIORITY: priority} if priority else {})}
    manifest["metadata"]["labels"] = {**(labels or {}), **of_kueue}
    space.create(manifest)
    return LiveRun(space, name)


def workload(run: LiveRun) -> Json:
    """The Workload of the run; empty without one."""
    uid = run.run()["metadata"]["uid"]
    selector = f"--selector={names.RUN_UID}={uid}"
    found: list[Json] = run.space.kubectl.json("get", "workloads", selector)["items"]
    return found[0] if found else {}


def holds(run: LiveRun, condition: str) -> bool:
    """Whether the run's Workload has the condition."""
    found = workload(run).get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in found)


def said(run: LiveRun) -> str:
    return str(run.status.get("message", ""))
