"""Objects are read from whatever kubectl reads, and every problem has its place."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest

from tests.wording import Wording, mentions
from webhook.errors import NotSynced, UnreadableInput
from webhook.questions.objects import (
    ClusterFile,
    count_kinds,
    read_cluster_file,
    read_files,
    read_objects,
)
from webhook.workloads.object import Object


def read(folder: Path, text: str, name: str = "objects.yaml") -> list[Object]:
    file = folder / name
    file.write_text(text)
    return read_objects([file])


def test_documents_and_lists_are_taken_apart(tmp_path: Path) -> None:
    """Documents of one file and items of a List are objects, in their order; empty ones are not."""
    text = """
apiVersion: v1
kind: List
items:
- {kind: Pod, metadata: {name: a}}
- {kind: Job, metadata: {name: b, namespace: ml}}
---
# nothing
---
kind: Pod
metadata: {generateName: c-}
"""
    found = read(tmp_path, text)
    assert [each.title for each in found] == ["Pod/a", "Job/b", "Pod/c-*"]
    assert [each.namespace for each in found] == ["", "ml", ""]
    assert count_kinds(each.kind for each in found) == "2 Pods, 1 Job"


def test_items_of_a_typed_list_have_its_kind(tmp_path: Path) -> None:
    """The API server's own lists leave kind out of their items."""
    found = read(tmp_path, json.dumps({"kind": "PodList", "items": [{"metadata": {"name": "a"}}]}))
    assert found[0].title == "Pod/a"


def test_an_object_knows_its_place(tmp_path: Path) -> None:
    """File, line and column of any path, in lists too."""
    text = "kind: List\nitems:\n- kind: Pod\n  spec:\n    nodeName: a\n"
    (found,) = read(tmp_path, text)
    assert found.place(("spec", "nodeName")) == f"{tmp_path}/objects.yaml:5:15"
    assert found.place() == f"{tmp_path}/objects.yaml:3:3"


def test_folders_are_read_whole(tmp_path: Path) -> None:
    """Sub-folders too, by name; hidden files and files of other types are passed over."""
    (tmp_path / "b" / ".git").mkdir(parents=True)
    (tmp_path / "b" / "x.json").write_text('{"kind": "Pod", "metadata": {"name": "x"}}')
    (tmp_path / "b" / ".git" / "y.yaml").write_text("kind: Pod")
    (tmp_path / "a.yml").write_text("kind: Job\nmetadata: {name: a}")
    (tmp_path / "c.YAML").write_text("kind: Job\nmetadata: {name: c}")
    (tmp_path / "README.md").write_text("# not an object")
    assert [each.title for each in read_objects([tmp_path])] == ["Job/a", "Pod/x", "Job/c"]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("kustomization.yaml", "kubectl kustomize"),
        ("kustomization.yml", "kubectl kustomize"),
        ("Kustomization", "kubectl kustomize"),
        ("Chart.yaml", "helm template"),
    ],
)
def test_what_objects_are_made_from_is_none(tmp_path: Path, name: str, command: str) -> None:
    """Wherever it is below a folder, and also if it is given itself."""
    folder = tmp_path / "base" / "own"
    folder.mkdir(parents=True)
    (folder / "pod.yaml").write_text("kind: Pod\nmetadata: {name: a}\n")
    assert len(read_objects([tmp_path])) == 1
    (folder / name).write_text("resources: [pod.yaml]\nkind: Kustomization\n")
    for path in (tmp_path, folder / name):
        with pytest.raises(UnreadableInput) as caught:
            read_objects([path])
        mentions(str(caught.value), f"{folder / name}: ", f"{command} {folder}")
        with pytest.raises(UnreadableInput) as again:
            read_files([path], plain=True)
        assert str(again.value) == str(caught.value)
    assert read_files([tmp_path]).keys() >= {str(folder / "pod.yaml")}


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with kubectl."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod")))
    (found,) = read_objects([Path("-")])
    assert found.place() == "<stdin>:1:1"


def test_plain_scalars_are_what_kubectl_makes_of_them(tmp_path: Path) -> None:
    """YAML 1.1: yes is true, 010 is 8; times and dates are text."""
    text = "kind: A\nv: [yes, off, y, 010, 0x1F, 1_000, 1:30, 2026-11-21, 1.5, 09, '010', ~]"
    (found,) = read(tmp_path, text)
    values = [True, False, True, 8, 31, 1000, "1:30", "2026-11-21", 1.5, 9.0, "010", None]
    assert found.value["v"] == values
    assert [type(value) for value in found.value["v"]] == [type(value) for value in values]


def test_every_problem_of_every_file_is_named(tmp_path: Path) -> None:
    """A file that is not there, one that is no text, and one that is no YAML, all at once."""
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    (tmp_path / "b.yaml").write_text("{")
    with pytest.raises(UnreadableInput) as caught:
        read_objects([tmp_path, tmp_path / "c.yaml"])
    found = [problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]
    assert [problem.partition(":")[0] for problem in found] == ["a.yaml", "b.yaml", "c.yaml"]
    assert "UTF-8" in found[0]
    mentions(found[2], "c.yaml: ", "No such file")


def test_long_json_is_read_all_the_same(tmp_path: Path) -> None:
    """Without lines, but with the same objects; broken, it is an error with its place."""
    names = [f"n{number}" for number in range(2200)]
    items = [{"kind": "Node", "metadata": {"name": name, "x": "x" * 1000}} for name in names]
    text = json.dumps({"kind": "List", "items": items})
    found = read(tmp_path, text, "nodes.json")
    assert [each.name for each in found] == names
    assert found[7].place(("metadata",)) == f"{tmp_path}/nodes.json"
    with pytest.raises(UnreadableInput) as caught:
        read(tmp_path, text[:-1])
    assert caught.value.problems[0].startswith(f"{tmp_path}/objects.yaml:2:1: not YAML")


LISTED = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {tier: batch}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: b}}
- apiVersion: scheduling.k8s.io/v1
  kind: PriorityClass
  metadata: {name: normal}
  value: 10
  globalDefault: true
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
"""


def read_text(folder: Path, text: str | bytes) -> ClusterFile:
    file = folder / "cluster.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_cluster_file(file)


def test_what_kubectl_prints_is_read(tmp_path: Path) -> None:
    """A List of both kinds; every namespace has its own name as a label."""
    cluster = read_text(tmp_path, LISTED)
    assert cluster.peek("a") == {"kubernetes.io/metadata.name": "a", "tier": "batch"}
    assert asyncio.run(cluster.labels("b")) == {"kubernetes.io/metadata.name": "b"}
    assert cluster.default_priority_class == "normal"


def test_documents_are_read_one_by_one_too(tmp_path: Path) -> None:
    """Empty ones are passed over."""
    text = "".join(f"---\n---\nkind: Namespace\nmetadata: {{name: {name}}}\n" for name in "ab")
    assert set(read_text(tmp_path, text).namespaces) == {"a", "b"}
    assert read_text(tmp_path, "").default_priority_class is None


def test_a_date_that_there_is_not_is_text(tmp_path: Path) -> None:
    """As kubectl reads it; PyYAML would end in a traceback."""
    text = "kind: Namespace\nmetadata: {name: a, labels: {since: 2026-13-45}}\n"
    assert read_text(tmp_path, text).namespaces["a"]["since"] == "2026-13-45"


def test_of_several_defaults_the_lowest_counts(tmp_path: Path) -> None:
    """As the Priority admission plugin does."""
    text = "\n".join(
        f"---\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\nglobalDefault: true"
        for name, value in (("c", 5), ("b", 3), ("a", 3))
    )
    assert read_text(tmp_path, text).default_priority_class == "a"


def test_a_namespace_that_is_not_there_is_not_guessed(tmp_path: Path, wording: Wording) -> None:
    """The error says which file to add it to."""
    cluster = read_text(tmp_path, LISTED)
    assert cluster.peek("c") is None
    with pytest.raises(NotSynced) as unknown:
        asyncio.run(cluster.labels("c"))
    wording(str(unknown.value), {tmp_path: "TMP"})
