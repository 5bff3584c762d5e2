"""Namespaces and priority classes from a file, for a webhook without a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.wording import Wording, mentions
from webhook.cli.cluster_file import ClusterFile, read_cluster_file
from webhook.errors import NotSynced, UnreadableInput

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


def read(folder: Path, text: str | bytes) -> ClusterFile:
    file = folder / "cluster.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_cluster_file(file)


def test_what_kubectl_prints_is_read(tmp_path: Path) -> None:
    """A List of both kinds; every namespace has its own name as a label."""
    cluster = read(tmp_path, LISTED)
    assert cluster.peek("a") == {"kubernetes.io/metadata.name": "a", "tier": "batch"}
    assert asyncio.run(cluster.labels("b")) == {"kubernetes.io/metadata.name": "b"}
    assert cluster.default_priority_class == "normal"


def test_documents_are_read_one_by_one_too(tmp_path: Path) -> None:
    """Empty ones are passed over."""
    text = "".join(f"---\n---\nkind: Namespace\nmetadata: {{name: {name}}}\n" for name in "ab")
    assert set(read(tmp_path, text).namespaces) == {"a", "b"}
    assert read(tmp_path, "").default_priority_class is None


def test_a_date_that_there_is_not_is_no_yaml(tmp_path: Path) -> None:
    """PyYAML would end in a traceback."""
    text = "kind: Namespace\nmetadata: {name: a, creationTimestamp: 2026-13-45}\n"
    with pytest.raises(UnreadableInput, match=r"cluster\.yaml: not YAML: month must be"):
        read(tmp_path, text)


def test_of_several_defaults_the_lowest_counts(tmp_path: Path) -> None:
    """As the Priority admission plugin does."""
    text = "\n".join(
        f"---\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\nglobalDefault: true"
        for name, value in (("c", 5), ("b", 3), ("a", 3))
    )
    assert read(tmp_path, text).default_priority_class == "a"


def test_a_namespace_that_is_not_there_is_not_guessed(tmp_path: Path, wording: Wording) -> None:
    """The error says which file to add it to."""
    cluster = read(tmp_path, LISTED)
    assert cluster.peek("c") is None
    with pytest.raises(NotSynced) as unknown:
        asyncio.run(cluster.labels("c"))
    mentions(str(unknown.value), "namespace c: ", "cluster.yaml")
    wording(str(unknown.value), {tmp_path: "TMP"})


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (b"a: [", [["not YAML"]]),
        (b"\xff", [["not YAML"]]),
        ("kind: Pod\nmetadata: {name: p}", [["object 1", "Pod p"]]),
        ("kind: Namespace", [["object 1", "Namespace None"]]),
        ("- a\n- b", [["object 1", "None None"]]),
        (
            "kind: Namespace\nmetadata: {name: a, labels: {b: true}}\n---\nkind: Pod",
            [["namespace a:", "label", "text"], ["object 2", "Pod None"]],
        ),
    ],
    ids=["no YAML", "no text", "a Pod", "no name", "a list", "two"],
)
def test_every_problem_is_named(
    tmp_path: Path, text: str | bytes, problems: list[list[str]], wording: Wording
) -> None:
    """With the file, and the object's number or the namespace's name."""
    with pytest.raises(UnreadableInput) as caught:
        read(tmp_path, text)
    assert len(caught.value.problems) == len(problems)
    for problem, facts in zip(caught.value.problems, problems, strict=True):
        mentions(problem, "cluster.yaml", *facts)
    if "not YAML" not in str(caught.value):
        wording("\n".join(caught.value.problems), {tmp_path: "TMP"})
