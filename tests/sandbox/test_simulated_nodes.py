"""From pools to nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.errors import SandboxError
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, Pool, Taint, node_manifests, read_pools


def test_a_pool_becomes_as_many_nodes_that_take_its_zones_in_turn() -> None:
    """Names count up from 0, and zones repeat."""
    nodes = node_manifests([Pool(name="a", count=3, zones=["z1", "z2"])])
    assert [node["metadata"]["name"] for node in nodes] == ["a-0", "a-1", "a-2"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["z1", "z2", "z1"]


def test_a_node_carries_the_labels_that_a_kubelet_sets() -> None:
    """Hostname, system and architecture are there without being asked for; a pool may differ."""
    (plain,) = node_manifests([Pool(name="a", count=1)])
    assert plain["metadata"]["labels"] == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": "a-0",
    }
    (arm,) = node_manifests([Pool(name="a", count=1, labels={"kubernetes.io/arch": "arm64"})])
    assert arm["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert arm["status"]["nodeInfo"]["architecture"] == "arm64"


def test_taints_and_capacity_go_into_the_node_as_they_are() -> None:
    """A taint without a value stays without one; all capacity is allocatable."""
    pool = Pool(
        name="a",
        count=1,
        taints=[Taint(key="k", effect="NoExecute")],
        capacity={"cpu": "4", "nvidia.com/gpu": "2"},
    )
    (node,) = node_manifests([pool])
    assert node["spec"]["taints"] == [{"key": "k", "effect": "NoExecute"}]
    assert node["status"]["allocatable"] == {"cpu": "4", "nvidia.com/gpu": "2"}


def test_the_shipped_nodes_are_on_demand_and_spot_in_two_zones_and_gpus() -> None:
    """Every pool of the shipped file spans both zones, and spot and GPU nodes are tainted."""
    nodes = node_manifests(read_pools(SHIPPED_NODES))
    by_pool: dict[str, set[str]] = {}
    for node in nodes:
        labels = node["metadata"]["labels"]
        pool = labels["cloud.google.com/gke-nodepool"]
        by_pool.setdefault(pool, set()).add(labels["topology.kubernetes.io/zone"])
        keys = {taint["key"] for taint in node["spec"]["taints"]}
        assert ("cloud.google.com/gke-spot" in labels) == ("cloud.google.com/gke-spot" in keys)
        assert ("nvidia.com/gpu" in node["status"]["capacity"]) == ("nvidia.com/gpu" in keys)
    assert {pool: len(zones) for pool, zones in by_pool.items()} == {
        "on-demand": 2,
        "spot": 2,
        "gpu": 2,
        "gpu-spot": 2,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pools: [{name: a, count: many}]", r":1:26: pools\[0\]\.count: .*whole number.*many"),
        ("pools: [{name: A_b, count: 1}]", r":1:16: pools\[0\]\.name: .*A_b"),
        ("pools: [{name: a, count: 1, labels: {x: yes}}]", r"pools\[0\]\.labels\[?\.?x.*'yes'"),
        ("pools: [{name: a, count: 1, taint: []}]", r"pools\[0\]\.taint: .*'taints'"),
        (
            "pools: [{name: a, count: 1, taints: [{key: k, effect: Never}]}]",
            r"pools\[0\]\.taints\[0\]\.effect: .*Never.*NoSchedule",
        ),
        ("pools: [{name: a, count: 1}, {name: a, count: 2}]", r"pools\[1\]\.name: .*\[0\]"),
        ("- just a list", ":1:1: "),
        ("pools: [", ":1:.*not YAML"),
        ("pools: 2026-13-45", r":1:8: pools: .*list.*2026-13-45"),
        ("pools: []\npools: []", r":2:1: .*line 1"),
        ("pools: []\n---\npools: []", "2 documents"),
        ("pools: [{name: a, name: !x b, count: 1}]", ":1:"),
    ],
)
def test_a_wrong_file_is_refused_with_file_and_field(
    tmp_path: Path, text: str, message: str
) -> None:
    """The message names the file, the field's path and what was wanted there."""
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(SandboxError, match=message) as caught:
        read_pools(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """No traceback for a slip in a file's name."""
    with pytest.raises(SandboxError, match=r"absent\.yaml: No such file"):
        read_pools(tmp_path / "absent.yaml")
