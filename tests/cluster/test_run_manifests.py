"""The API server takes all that a Run is planned to become, with no field that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from tests.run.runs import a_run
from webhook.run.plan import Plan, plan
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]
RUNS = Path(__file__).parents[1] / "golden" / "runs"
# Its template has fields and operators that no Kubernetes knows yet, to show that they stay.
NOVEL = "layers"
CASES = [
    path
    for path in sorted(RUNS.glob("*.yaml"))
    if path.stem != NOVEL and "problems" not in load_yaml(path.read_text())
]


def manifests(made: Plan) -> Iterator[Json]:
    """All objects of a run; of pods the first of each role."""
    if config_map := made.config_map():
        yield config_map
    if made.keys_secret:
        yield made.keys_secret_manifest("private", "public")
    yield made.service()
    if made.run.spec.serving:
        yield made.deployment()
        return
    for role in made.templates:
        yield made.pod(role, 0, 0)
    for role, index in made.special:
        yield made.pod(role, index, 0)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_manifest_is_taken(
    path: Path, control_plane: ControlPlane, namespace: str, taken: Callable[[Json], str]
) -> None:
    """Of each golden Run, by a dry run under strict field validation."""
    case = load_yaml(path.read_text())["run"]
    made = plan(a_run(case["name"], case["spec"], namespace=namespace))
    refusals = {}
    for manifest in manifests(made):
        account = manifest["spec"].get("serviceAccountName") if "spec" in manifest else None
        if account:
            accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            control_plane.api.call("POST", accounts, {"metadata": {"name": account}})
        if refusal := taken(manifest):
            refusals[manifest["kind"], manifest["metadata"]["name"]] = refusal
    assert not refusals


@pytest.fixture
def taken(control_plane: ControlPlane, namespace: str) -> Callable[[Json], str]:
    """Creates an object as a dry run; why it is refused, or nothing."""
    resources = {
        "ConfigMap": "/api/v1/{}/configmaps",
        "Secret": "/api/v1/{}/secrets",
        "Service": "/api/v1/{}/services",
        "Deployment": "/apis/apps/v1/{}/deployments",
        "Pod": "/api/v1/{}/pods",
    }

    def create(manifest: Json) -> str:
        path = resources[manifest["kind"]].format(f"namespaces/{namespace}")
        query = "dryRun=All&fieldValidation=Strict"
        status, answer = control_plane.api.call("POST", f"{path}?{query}", manifest)
        return "" if status == HTTPStatus.CREATED else str(answer["message"])

    return create
