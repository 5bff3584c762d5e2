"""Nodes that share what is equal in them."""

from __future__ import annotations

import sys
from typing import Any

from webhook.cluster_objects import sharing
from webhook.cluster_objects.sharing import Row, Sharing
from webhook.placement import nodes

TAINT = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def node(name: str, **labels: str) -> nodes.Node:
    return nodes.parse_node(
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {"taints": [dict(TAINT)]},
            "status": {"allocatable": {"cpu": "8", "memory": "28Gi"}},
        }
    )


def fresh(text: str) -> str:
    """An equal string that is another object."""
    return "".join(list(text))


def test_a_shared_node_is_an_equal_node() -> None:
    before = node("a", pool="ml")
    after = Sharing().shared(before)
    assert dict(after.labels) == before.labels
    assert list(after.taints) == before.taints
    assert (after.name, after.unschedulable) == ("a", False)
    assert after.allocatable == before.allocatable


def test_what_is_equal_is_one_object() -> None:
    """Keys, values, taints and amounts; what differs stays each node's own."""
    keep = Sharing()
    one, other = (keep.shared(node(fresh(name), pool=fresh("m l"))) for name in ("a", "b"))
    assert one.labels["pool"] is other.labels["pool"]
    assert one.taints is other.taints
    assert one.allocatable is other.allocatable
    assert one.labels != other.labels
    assert sys.getsizeof(one.labels) < sys.getsizeof(dict(one.labels))


def test_a_row_is_a_mapping() -> None:
    keep = Sharing()
    labels: Any = keep.shared(node("a", pool="ml")).labels
    assert isinstance(labels, Row)
    assert labels.get("pool") == "ml"
    assert labels.get("none") is None
    assert labels.get("none", "x") == "x"
    assert "pool" in labels
    assert "none" not in labels
    assert len(labels) == 2
    assert labels == {"kubernetes.io/hostname": "a", "pool": "ml"}
    assert labels != keep.shared(node("a")).labels
    assert labels == Sharing().shared(node("a", pool="ml")).labels


def test_what_is_remembered_for_sharing_is_bounded(monkeypatch: Any) -> None:
    """After the bound sharing begins again, and nodes are right all the same."""
    monkeypatch.setattr(sharing, "_POOL_ENTRIES", 2)
    keep = Sharing()
    for at in range(5):
        seen = keep.shared(node("a", **{f"key{at}": "x"}))
        assert seen.labels[f"key{at}"] == "x"
    tainted = [
        keep.shared(node("a")._replace(taints=[{"key": key, "effect": "NoSchedule"}])).taints
        for key in ("a", "a", "b", "c", "a")
    ]
    assert tainted[0] is tainted[1]
    assert tainted[0] is not tainted[-1]
    assert tainted[0] == tainted[-1]
