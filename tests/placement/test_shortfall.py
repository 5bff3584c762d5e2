"""Why no node admits a pod, in one line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.placement.pod import parse_pod as read_pod
from webhook.placement.shortfall import WARNING_MAX_CHARACTERS, Condition, shortfall
from webhook.shortening import fit

GPU: Any = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
DISK: Any = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}


def nodes(count: int, *taints: Any, cordoned: bool = False, gpus: int = 4, **labels: str) -> Any:
    """So many nodes that are alike."""
    room = {"cpu": 8000, "nvidia.com/gpu": gpus, "pods": 110}
    name = "-".join((*labels.values(), *(t["key"] for t in taints), str(cordoned), str(gpus)))
    return [Node(f"{name}-{at}", labels, taints, cordoned, room) for at in range(count)]


def condition(key: str, value: str, policy: str = "") -> Condition:
    """That a label has a value."""
    term: Any = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return Condition(f"{key}={value}", policy, (term,))


def said(there: Any, *conditions: Condition, **requests: int) -> str:
    """Of a pod that tolerates nothing."""
    pod = read_pod({"metadata": {}, "spec": {}})
    asked = {name.replace("gpu", "nvidia.com/gpu"): count for name, count in requests.items()}
    return shortfall(pod, asked, conditions, NodeGroups(there).groups_for(_asking(conditions))).text


def _asking(conditions: Any) -> Any:
    terms = [term for each in conditions for term in each.terms]
    return read_pod({"metadata": {}, "spec": {}})._replace(required=terms)


ML = condition("pool", "ml")
ZONE = condition("zone", "a")


@pytest.mark.parametrize(
    ("there", "conditions", "facts"),
    [
        (
            [*nodes(12, GPU, pool="ml"), *nodes(25, pool="web")],
            [ML],
            ("pool=ml matches 12", "taint gpu=true"),
        ),
        (
            [*nodes(1, GPU, pool="ml"), *nodes(25, pool="web")],
            [condition("pool", "ml", "gpu-jobs")],
            ("pool=ml (policy gpu-jobs) matches 1", "taint gpu=true"),
        ),
        (nodes(12, cordoned=True, pool="ml"), [ML], ("pool=ml matches 12", "cordoned")),
        (
            [*nodes(8, GPU, pool="ml"), *nodes(3, cordoned=True, pool="ml")],
            [ML],
            ("pool=ml matches 11", "8 have taint gpu=true", "3 are cordoned"),
        ),
        (
            [
                *nodes(8, GPU, pool="ml"),
                *nodes(1, cordoned=True, pool="ml"),
                *nodes(1, DISK, pool="ml"),
            ],
            [ML],
            ("pool=ml matches 10", "8 have taint gpu=true", "1 is cordoned", "1 more for other"),
        ),
        (nodes(9, pool="web"), [ML], ("pool=ml matches none",)),
        (
            nodes(9, pool="web", zone="b"),
            [condition("pool", "ml", "a"), ZONE],
            ("pool=ml (policy a) and zone=a match none",),
        ),
        (
            [*nodes(4, pool="ml", zone="b"), *nodes(3, pool="web", zone="a")],
            [ML, ZONE],
            ("pool=ml matches 4 and zone=a 3", "none has both"),
        ),
        (
            [
                *nodes(4, pool="ml", zone="a", gen="1"),
                *nodes(3, pool="ml", zone="b", gen="2"),
                *nodes(2, pool="x", zone="a", gen="2"),
            ],
            [ML, ZONE, condition("gen", "2")],
            ("none meets all 3", "zone=a matches 6, gen=2 matches 5"),
        ),
        (
            [*nodes(2, GPU, pool="ml", zone="a", gen="1"), *nodes(9, pool="ml", gen="1")],
            [ML, ZONE, condition("gen", "1")],
            ("pool=ml, zone=a and 1 more match 2", "taint gpu=true"),
        ),
        (nodes(5, GPU), [], ("taint gpu=true",)),
        ([], [ML], ("no nodes",)),
    ],
)
def test_what_shuts_out_the_closest_nodes_is_named(
    there: Any, conditions: Any, facts: tuple[str, ...], wording: Wording
) -> None:
    """Labels first, then what is in the way where they are right."""
    text = said(there, *conditions)
    mentions(text, *facts)
    wording(text)


BOTH = [*nodes(4, gpus=4, pool="ml"), *nodes(2, gpus=8, pool="ml")]
MIXED = [*nodes(5, GPU, pool="ml"), *nodes(2, gpus=0, pool="ml"), *nodes(1, pool="ml")]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (said(BOTH, ML, gpu=16), ("pool=ml matches 6", "nvidia.com/gpu 8 at most", "requests 16")),
        (said(BOTH[:1], ML, gpu=16), ("pool=ml matches 1", "nvidia.com/gpu 4", "requests 16")),
        (said(nodes(3, gpus=0), gpu=1), ("no nvidia.com/gpu",)),
        (said(nodes(3), cpu=96000), ("cpu 8 at most", "requests 96")),
        (
            said(MIXED, ML, gpu=16),
            ("pool=ml matches 8", "5 have taint", "3 have nvidia.com/gpu 4", "16 requested"),
        ),
        (
            said([*nodes(5, GPU), *nodes(1, gpus=0)], gpu=1),
            ("5 have taint gpu=true", "1 has no nvidia.com/gpu"),
        ),
    ],
    ids=["largest", "single node", "none has it", "cpu", "mixed", "mixed without"],
)
def test_resources_are_named_with_what_there_is(
    text: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """By the largest that some node has; and of what none has, just that."""
    mentions(text, *facts)
    wording(text)


def test_long_values_are_shortened() -> None:
    """An author may write labels of hundreds of characters."""
    key = "a" * 250 + "/" + "b" * 63
    text = said(nodes(1), condition(key, "v" * 63, "p"), condition(key, "w"))
    assert len(text) < WARNING_MAX_CHARACTERS
    assert fit("x" * 300, WARNING_MAX_CHARACTERS) == "x" * (WARNING_MAX_CHARACTERS - 1) + "…"
