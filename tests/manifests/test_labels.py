"""Labels say whose an object is; no component labels, or narrows, what is another's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.manifests.generated import MANIFESTS
from tests.manifests.kustomize import OVERLAYS, Json, kustomized, of_kind
from webhook import names

Build = Callable[[str], tuple[Json, ...]]
COMPONENTS = sorted(
    path.relative_to(MANIFESTS / "components").parent
    for path in MANIFESTS.glob("components/**/kustomization.yaml")
    if path.parent.name != "marks"
)
# What a component changes of what is there before it.
CHANGES = {"MutatingWebhookConfiguration", "Deployment"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_is_found_by_its_labels(build: Build, overlay: str) -> None:
    """As docs/guides/uninstalling.md removes Fairlead; the part it is of stands beside."""
    for each in build(overlay):
        labels = each["metadata"]["labels"]
        assert labels["app.kubernetes.io/part-of"] == names.MANAGER, each["metadata"]
    for deployment in of_kind(build(overlay), "Deployment"):
        part = deployment["metadata"]["labels"]["app.kubernetes.io/component"]
        assert deployment["metadata"]["name"] == f"{names.MANAGER}-{part}"


def test_a_component_leaves_what_is_not_its_own(
    kubectl_path: Path, tmp_path: Path, build: Build
) -> None:
    """All at once: what is somebody's own, or neither webhook's nor guard's, stays as it was."""
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}, "data": {"a": "b"}}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(own))
    # These two take away what the base has, or what another component brings.
    exclusive = ("guard-stamp-deny", "policies-from-files")
    components = [each for each in COMPONENTS if str(each) not in exclusive]
    # A source before its guard, the guard itself before both, as the guide says.
    components.sort(key=lambda each: (str(each).startswith("source-"), len(each.parts), str(each)))
    whole = {
        "resources": ["own.yaml", os.path.relpath(MANIFESTS / "base", tmp_path)],
        "components": [
            os.path.relpath(MANIFESTS / "components" / each, tmp_path) for each in components
        ],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    found = kustomized(kubectl_path, tmp_path)
    assert own in found
    before = [
        each
        for each in build("default")
        if each["kind"] not in CHANGES and "certificates" not in each["metadata"]["name"]
    ]
    assert [each for each in before if each not in found] == []
