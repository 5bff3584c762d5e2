"""The API server takes golden Runs, and all objects of their plans, with no unknown field."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.paths import home
from tests.fast_yaml import load_yaml
from tests.run.runs import UID, a_run
from webhook.run.model import Run
from webhook.run.plan import Plan, plan
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
GOLDEN = Path(__file__).parents[1] / "golden"
# Its template has fields and operators that no Kubernetes knows yet, to show that they stay.
NOVEL = "layers"
CASES = {path: load_yaml(path.read_text()) for path in sorted(GOLDEN.glob("runs/*.yaml"))}
PLANNED = {
    path.stem: case["run"]
    for path, case in CASES.items()
    if path.stem != NOVEL and "problems" not in case
}
# What Polyaxonfiles become.
CONVERTED = {
    path.stem: case["run"]
    for path in sorted(GOLDEN.glob("polyaxon/*.yaml"))
    if "run" in (case := load_yaml(path.read_text()))
}


def manifests(made: Plan) -> Iterator[Json]:
    """All objects of a run; of pods the first of each role."""
    if config_map := made.config_map():
        yield config_map
    if made.keys_secret:
        yield made.keys_secret_manifest(made.keys_secret, "private", "public")
    yield made.service()
    if made.run.spec.serving:
        yield made.deployment()
        return
    for role in made.templates:
        yield made.pod(role, 0, 0)
    for role, index in made.special:
        yield made.pod(role, index, 0)


def refusal(plane: ControlPlane, namespace: str, manifest: Json) -> str:
    """Why the object is refused, by a dry run under strict field validation; or nothing."""
    path = f"{home(manifest, namespace)}?dryRun=All&fieldValidation=Strict"
    status, answer = plane.api.call("POST", path, manifest)
    return "" if status == HTTPStatus.CREATED else str(answer["message"])


def refusals(plane: ControlPlane, namespace: str, made: Plan) -> dict[tuple[str, str], str]:
    """The same of all objects of a run, by kind and name; accounts that they name are there."""
    found = {}
    for manifest in manifests(made):
        spec = manifest.get("spec", {})
        if account := spec.get("template", {}).get("spec", spec).get("serviceAccountName"):
            accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            plane.api.call("POST", accounts, {"metadata": {"name": account}})
        found[manifest["kind"], manifest["metadata"]["name"]] = refusal(plane, namespace, manifest)
    return {key: why for key, why in found.items() if why}


@pytest.mark.parametrize("case", PLANNED.values(), ids=PLANNED)
def test_every_manifest_is_taken(case: Json, control_plane: ControlPlane, namespace: str) -> None:
    """Of each golden Run."""
    made = plan(a_run(case["name"], case["spec"], namespace=namespace))
    assert refusals(control_plane, namespace, made) == {}


@pytest.mark.parametrize("run", CONVERTED.values(), ids=CONVERTED)
def test_every_converted_run_is_taken_with_its_pods(
    run: Json, run_api: ControlPlane, namespace: str
) -> None:
    """Of a delegated one, the pods that Fairlead's own controller would make; of no class."""
    run = {**run, "metadata": {**run["metadata"], "namespace": namespace}}
    assert refusal(run_api, namespace, run) == ""
    metadata = {**run["metadata"], "uid": UID}
    run = {**run, "metadata": metadata, "spec": {**run["spec"], "backend": "native"}}
    made = plan(Run.model_validate(run, by_alias=True, by_name=False))
    found = refusals(run_api, namespace, made)
    assert [why for why in found.values() if "no PriorityClass" not in why] == []
