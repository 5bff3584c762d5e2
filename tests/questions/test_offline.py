"""What decisions need is read from files; golden/sessions/mutate.yaml has what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.files import POD, POLICIES
from webhook.evaluation.world import labels_of
from webhook.questions.offline import Offline, read_offline

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: research, labels: {tier: batch}}\n"
CLASSES = """\
kind: PriorityClass
metadata: {name: high}
value: 100
globalDefault: true
---
kind: PriorityClass
metadata: {name: normal}
value: 10
globalDefault: true
---
kind: PriorityClass
metadata: {name: low}
value: 1
"""


def read(folder: Path, objects: str, file: str) -> Offline:
    for name, text in (("o.yaml", objects), ("p.yaml", POLICIES), ("n.yaml", file)):
        (folder / name).write_text(text)
    namespaces = folder / "n.yaml" if file else None
    return read_offline([folder / "o.yaml"], [folder / "p.yaml"], "mine", namespaces)


@pytest.mark.parametrize("in_file", [False, True])
def test_namespaces_and_priority_classes_count(tmp_path: Path, *, in_file: bool) -> None:
    """Among the objects, or in a file as kubectl prints it; of two defaults the lower value is."""
    there = f"{NAMESPACE}---\n{CLASSES}"
    offline = read(tmp_path, POD if in_file else f"{POD}---\n{there}", there if in_file else "")
    assert labels_of("research", offline.world.namespaces) == {
        "kubernetes.io/metadata.name": "research",
        "tier": "batch",
    }
    assert offline.world.cluster.default_priority_class == "normal"


def test_a_namespace_among_the_objects_takes_no_label_away(tmp_path: Path) -> None:
    """As `kubectl apply` of it would take none."""
    bare = "apiVersion: v1\nkind: Namespace\nmetadata: {name: research, labels: {own: x}}\n"
    offline = read(tmp_path, f"{POD}---\n{bare}", NAMESPACE)
    assert labels_of("research", offline.world.namespaces).keys() >= {"tier", "own"}
