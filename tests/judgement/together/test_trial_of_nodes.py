"""Policies each of which leaves nodes, and that together leave none of those that there are."""

from __future__ import annotations

import math
import re
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.test_cluster_objects import objects
from tests.judgement.together.test_everywhere import ML, within
from tests.judgement.together.test_warnings import policy, pool, spot, thorough
from tests.laws.strategies import CLASSES, pods
from tests.laws.world import decided, policy_set
from webhook.judgement.set_judgement import Objects, judge_set
from webhook.judgement.together.warnings import UNBOUNDED, Budget
from webhook.placement.nodes import Node, survey
from webhook.policy.findings import Kind

Json = dict[str, Any]
TAINT: Any = {"key": "spot", "value": "true", "effect": "NoSchedule"}
NODES = (
    Node("books", {"pool": "a", "zone": "a"}, ()),
    Node("cheap", {"spot": "true", "zone": "b"}, (TAINT,)),
    Node("plain", {"pool": "b", "zone": "b"}, ()),
)
NOTEBOOKS = policy("notebooks", match={"kinds": ["notebook"]}, defaults=pool("a"))
GPUS = policy("gpus", match={"resources": ["nvidia.com/gpu"]}, overrides=spot("Constrain"))


def test_an_incomplete_check_is_reported() -> None:
    """Of each policy that was left out; and it makes none unsatisfiable."""
    read = Objects().documents(objects(NOTEBOOKS, GPUS, *CLASSES[:1]))
    judged = judge_set(read, Budget(math.inf, 0), nodes=NODES)
    told = [each for each in judged.findings if each.kind is Kind.NOT_CHECKED]
    assert [(each.file, each.severity) for each in told] == [
        ("placementpolicies/gpus", "warning"),
        ("placementpolicies/notebooks", "warning"),
    ]


# Each has a node: of a policy that leaves none by itself it is told whatever stands beside it.
zones = st.sampled_from(["a", "b"])
matches = st.sampled_from([{}, {"roles": ["worker"]}, ML, {"kinds": ["job"]}])
wanted = st.one_of(
    st.builds(lambda zone: {"nodeSelector": {"zone": zone}}, zones),
    st.builds(lambda some: within(*some), st.lists(st.sampled_from("ab"), min_size=1, max_size=2)),
)
parts = st.sampled_from(["overrides", "defaults", "requirements"])


@thorough
@given(st.lists(st.tuples(matches, parts, wanted), min_size=2, max_size=3), pods())
def test_an_error_is_true_of_every_pod(crowd: list[tuple[Json, str, Json]], pod: Json) -> None:
    """That says nothing of nodes itself: none of the nodes admits it, by the engine."""
    documents = [
        policy(f"p{at}", match=match, **{part: placement})
        for at, (match, part, placement) in enumerate(crowd)
    ]
    pod["spec"] = {"containers": pod["spec"]["containers"], "priority": 0}
    pod["metadata"].pop("annotations", None)
    read = Objects().documents(objects(*documents, *CLASSES[:1]))
    found = [
        each
        for each in judge_set(read, UNBOUNDED, nodes=NODES).findings
        if (each.kind, each.severity) == (Kind.NO_NODE, "error") and "policies/" in each.file
    ]
    event(f"told: {bool(found)}")
    decision = decided(pod, policy_set(documents))
    for finding in found:
        # The policy each of whose pods stays Pending: the finding's own, or another.
        other = re.search(r"every pod that policy '(.+?)' matches", finding.message)
        by = other[1] if other else finding.file.partition("/")[2]
        if by in decision.policies and decision.allowed:
            event("a pod that it matches")
            assert decision.placement is not None
            assert not survey(decision.placement, {}, NODES).admitted, finding
