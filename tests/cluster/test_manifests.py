"""The real API server takes every object of every overlay, as it is, and warns of none."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.control_planes import clear_namespace
from tests.manifests.generated import MANIFESTS, OTHERS
from tests.manifests.kustomize import OVERLAYS, Json, kustomized, of_kind, one, overlay
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

# Kinds of others, for which no definition is there: tests/manifests/test_overlays.py looks at them.
FOREIGN = ("cert-manager.io", "monitoring.coreos.com")


@pytest.fixture(scope="module")
def space(control_plane: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[Kubectl]:
    """A namespace in the place of fairlead-system, with its labels."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    (namespace,) = of_kind(overlay("default"), "Namespace")
    control_plane.create_namespace(name, namespace["metadata"]["labels"])
    yield cluster_kubectl.within(name)
    clear_namespace(control_plane, name)


def moved(objects: tuple[Json, ...], space: Kubectl) -> list[Json]:
    """The objects for another namespace; kinds that this cluster does not know left out."""
    found = []
    for each in objects:
        if each["apiVersion"].partition("/")[0] in FOREIGN:
            continue
        metadata = dict(each["metadata"])
        if "namespace" in metadata:
            assert metadata["namespace"] == names.NAMESPACE
            metadata["namespace"] = space.namespace
        found.append({**each, "metadata": metadata})
    return found


def taken(objects: list[Json], space: Kubectl) -> list[Json]:
    """What the API server would store; it fails at the first that it refuses or warns of."""
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    # Strict: a field that it does not know would be dropped with a warning otherwise.
    options = ("--server-side", "--dry-run=server", "--validate=strict", "-o", "json")
    done = space.run("apply", "-f", "-", *options, stdin=json.dumps(items))
    assert (done.returncode, done.stderr) == (0, "")
    answered = json.loads(done.stdout)
    # Of one object kubectl makes no list.
    stored: list[Json] = answered.get("items", [answered])
    return stored


@pytest.fixture(scope="module")
def known() -> set[str]:
    """The objects that the API server has taken already: overlays have most of theirs in common."""
    return set()


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_object_of_an_overlay_is_taken(name: str, space: Kubectl, known: set[str]) -> None:
    """Under Pod Security's eyes, and with nothing that the API server does not know."""
    objects = {json.dumps(each): each for each in moved(overlay(name), space)}
    assert objects
    if fresh := [each for text, each in objects.items() if text not in known]:
        stored = taken(fresh, space)
        assert [each["kind"] for each in stored] == [each["kind"] for each in fresh]
    known |= {*objects}


def test_a_guarded_installation_of_every_source_is_taken(
    space: Kubectl, kubectl_path: Path, tmp_path: Path
) -> None:
    """Each entry as it was made, for the API server fills nothing in; and a binding for each."""
    sources = [MANIFESTS / "components" / f"source-{source.name}" for source in OTHERS]
    components = [path for source in sources for path in (source, source / "guard-stamp")]
    whole = {
        "resources": [os.path.relpath(MANIFESTS / "fail-open-guarded-deny", tmp_path)],
        "components": [os.path.relpath(path, tmp_path) for path in components],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    objects = kustomized(kubectl_path, tmp_path)
    made = one(objects, "MutatingWebhookConfiguration")
    (stored,) = taken([made], space)
    assert stored["webhooks"] == made["webhooks"]
    assert len(stored["webhooks"]) == 2 + sum(len(source.marks) for source in OTHERS)
    bindings = of_kind(objects, "ValidatingAdmissionPolicyBinding")
    assert [each["spec"] for each in taken(bindings, space)] == [each["spec"] for each in bindings]
