"""Runs of other frameworks, and those that stay: each is told what its framework wants."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.cluster.live_runs import CONTAINER, LiveRun, create_run
from tests.cluster.spaces import Json, Space
from webhook import names

pytest_plugins = ["tests.cluster.run_fixtures"]


def env(pod: Json) -> dict[str, str]:
    """The variables of the main container that have plain values."""
    listed = pod["spec"]["containers"][0].get("env", [])
    return {one["name"]: one["value"] for one in listed if "value" in one}


def started(space: Space, framework: str, **counts: int) -> tuple[LiveRun, dict[str, Json]]:
    """A run of so many replicas by role, all of them running."""
    roles = {role: {"count": count} for role, count in counts.items()}
    live = create_run(space, "gang", framework=framework, replicas=roles)
    expected = [f"{role}-{index}" for role, count in counts.items() for index in range(count)]
    return live, live.until_running(*expected)


def test_mpi(run_space: Space) -> None:
    """The launcher comes after the workers, with a hostfile of them and keys to enter them."""
    _, pods = started(run_space, "mpi", launcher=1, worker=2)
    created = {name: pod["metadata"]["creationTimestamp"] for name, pod in pods.items()}
    assert created["launcher-0"] >= max(created["worker-0"], created["worker-1"])
    maps = run_space.items("configmaps", f"{names.RUN}=gang")
    (hostfile,) = [one["data"]["hostfile"] for one in maps if "hostfile" in one.get("data", {})]
    hosts = [line.split()[0] for line in hostfile.splitlines()]
    assert [host.partition(".")[0] for host in hosts] == ["gang-worker-0", "gang-worker-1"]
    (secret,) = run_space.items("secrets", f"{names.RUN}=gang")
    keys = {key: base64.b64decode(value) for key, value in secret["data"].items()}
    assert any(b"PRIVATE KEY" in value for value in keys.values())
    mounted = {
        volume["secret"]["secretName"]
        for volume in pods["launcher-0"]["spec"]["volumes"]
        if "secret" in volume
    }
    assert secret["metadata"]["name"] in mounted
    # Whoever may read the run may not read its keys in it.
    assert "PRIVATE" not in run_space.kubectl("get", "run", "gang", "-o", "yaml")


@pytest.fixture
def notebook(run_space: Space) -> LiveRun:
    """A notebook that runs."""
    template: dict[str, Any] = {
        "spec": {"containers": [{**CONTAINER, "ports": [{"containerPort": 8888}]}]}
    }
    live = create_run(run_space, "lab", kind="notebook", template=template)
    live.until_phase("Running")
    return live


def test_a_notebook_is_a_deployment_and_a_service(notebook: LiveRun) -> None:
    """One pod, replaced before a second one could want its volume, behind an address."""
    deployment = notebook.space.get("deployments", "lab")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["metadata"]["ownerReferences"][0]["kind"] == "Run"
    service = notebook.space.get("services", "lab")
    assert [port["port"] for port in service["spec"]["ports"]] == [8888]
    assert notebook.status["address"] == f"http://lab.{notebook.space.name}.svc:8888"
    (pod,) = notebook.space.pods()
    assert pod["metadata"]["labels"][names.KIND] == "notebook"

    def behind() -> list[str]:
        slices = notebook.space.items("endpointslices")
        return [each["targetRef"]["name"] for one in slices for each in one["endpoints"] or ()]

    # The endpoint slices follow their pods.
    notebook.until("it is reached", lambda: behind() == [pod["metadata"]["name"]])
    (row,) = notebook.space.kubectl("get", "runs", "--no-headers").splitlines()
    assert row.split()[:3] == ["lab", "Running", "1/1"]
