"""What Polyaxonfiles become the API server takes: the Runs, and the pods that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from webhook import names
from webhook.run.model import Run
from webhook.run.plan import plan
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "polyaxon").glob("*.yaml"))
RUNS = {path.stem: case["run"] for path in GOLDEN if "run" in (case := load_yaml(path.read_text()))}
STRICT = "?dryRun=All&fieldValidation=Strict"
NAMESPACE = "/api/v1/namespaces/default"


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_the_api_server_takes_every_converted_run(run_api: ControlPlane, run: Json) -> None:
    """As `kubectl create` would send it, with no field that is not known."""
    run = {**run, "metadata": {**run["metadata"], "namespace": "default"}}
    path = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}{STRICT}"
    status, answer = run_api.api.call("POST", path, run)
    assert status == 201, answer["message"]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_the_api_server_takes_the_pods_of_every_converted_run(
    run_api: ControlPlane, run: Json
) -> None:
    """One of each role, but for what the cluster would have to have: accounts and classes."""
    # Of a delegated one, the pods that Fairlead's own controller would make.
    run = {**run, "spec": {**run["spec"], "backend": "native"}}
    model = Run.model_validate(run, by_alias=True, by_name=False)
    if model.spec.serving:
        manifests = [plan(model).deployment()["spec"]["template"]]
    else:
        manifests = [plan(model).pod(role, 0, 0) for role in model.spec.roles]
    for manifest in manifests:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "converted",
                "labels": manifest["metadata"]["labels"],
                "annotations": manifest["metadata"]["annotations"],
            },
            "spec": {
                key: value
                for key, value in manifest["spec"].items()
                if key not in ("serviceAccountName", "priorityClassName")
            },
        }
        status, answer = run_api.api.call("POST", f"{NAMESPACE}/pods{STRICT}", pod)
        assert status == 201, answer["message"]
