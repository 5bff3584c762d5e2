"""Sets of nodes as bits are the nodes that a look at each one finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.placement.nodes import Node
from webhook.placement.settings import CapacitySetting
from webhook.policy.load import load
from webhook.policy.node_settings import NodeMasks, holds, is_of, tolerations_of, untolerated

POLICIES = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {pool: a}, taints: [{key: spot, effect: NoSchedule}]}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: every-setting}
spec:
  requirements:
    nodeSelector: {pool: a}
    labels: {team: x}
    capacity: [{class: spot, mode: Prevent}]
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - {matchExpressions: [{key: pool, operator: NotIn, values: [b]}]}
          - {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}
  overrides:
    tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
"""
SET = load({"policies.yaml": POLICIES.encode()}).policies
(POLICY,) = SET.policies
TAINTS: list[Any] = [
    {"key": "spot", "effect": "NoSchedule"},
    {"key": "gpu", "value": "a100", "effect": "NoSchedule"},
    {"key": "gpu", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
]
NODES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "b"])),
        st.lists(st.sampled_from(TAINTS), max_size=2),
    ),
    max_size=8,
).map(lambda given: [Node(f"n{at}", *each) for at, each in enumerate(given)])


@given(NODES)
@settings(deadline=None)
def test_bits_are_what_a_look_at_each_node_finds(nodes: list[Node]) -> None:
    """For each setting alone and all together, for classes, and for taints."""
    masks = NodeMasks(nodes)

    def named(mask: int) -> list[str]:
        return [node.name for at, node in enumerate(nodes) if mask >> at & 1]

    assert named(masks.all) == [node.name for node in nodes]
    for setting in POLICY.settings:
        assert named(masks.mask_for([setting])) == [n.name for n in nodes if holds(setting, n)]
    together = [n.name for n in nodes if all(holds(setting, n) for setting in POLICY.settings)]
    assert named(masks.mask_for(POLICY.settings)) == together
    spot = SET.classes["spot"]
    assert named(masks.of_class(spot)) == [n.name for n in nodes if is_of(spot, n)]
    tolerations = list(tolerations_of(POLICY.settings))
    open_ = [n.name for n in nodes if not untolerated(n, tolerations)]
    assert named(masks.tolerated(masks.all, tolerations)) == open_
    counted = sum(len(taints) * on for taints, on in masks.taints(masks.all, tolerations))
    assert counted == sum(len(untolerated(n, tolerations)) for n in nodes)


def test_the_settings_above_are_of_each_kind() -> None:
    """Else the test above would say less than it seems to."""
    kinds = {type(setting).__name__ for setting in POLICY.settings}
    assert kinds >= {"MemberSetting", "CapacitySetting", "RequiredSetting", "TolerationSetting"}
    assert any(
        isinstance(setting, CapacitySetting) and setting.condition for setting in POLICY.settings
    )
