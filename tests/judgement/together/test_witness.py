"""A pod that several policies match: whichever is found, all of them match it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.fast_yaml import load_yaml
from tests.judgement.together.test_warnings import policies_of, policy, thorough
from tests.laws.world import CLUSTER, policy_set
from tests.policy.test_matched_pods import matches
from webhook.decision.arrival import Arrival
from webhook.decision.engine import decide
from webhook.judgement.together.witness import Witness, find
from webhook.policy import conditions

Json = dict[str, Any]
PLACE: Json = {"requirements": {"nodeSelector": {"pool": "a"}}}


def arrival(witness: Witness) -> Arrival:
    """The pod as it would come."""
    space = witness.subject.namespace
    return Arrival(witness.manifest(), space, witness.subject.namespace_labels, "somebody")


def found(*specs: Json) -> Witness | None:
    """A pod for policies of these matches and excludes."""
    return find(policies_of([policy(f"p{at}", **PLACE, **each) for at, each in enumerate(specs)]))


def labelled(**labels: str) -> Json:
    return {"matchLabels": labels}


def expression(key: str, operator: str, *values: str) -> Json:
    said: Json = {"key": key, "operator": operator}
    return {"matchExpressions": [said | ({"values": list(values)} if values else {})]}


@pytest.mark.parametrize(
    "case", load_yaml((Path(__file__).parent / "witnesses.yaml").read_text()), ids=str
)
def test_a_pod_is_found_for_what_people_write(case: Json) -> None:
    """By each condition, and around what is excluded; none that never comes to Fairlead."""
    pod = found(*case["policies"])
    assert (pod and str(pod)) == case["pod"]


def test_of_many_labels_a_few_are_named() -> None:
    """A warning is to be read."""
    many = found({"match": {"podSelector": labelled(**{f"l{at}": "x" for at in range(9)})}})
    assert str(many).endswith("l4=x and 4 more")


BLOCKS: list[Json] = [
    {"namespaces": ["ml-*"]},
    {"namespaces": ["default", "ml"], "roles": ["worker"]},
    {"namespaceSelector": labelled(a="1")},
    {"podSelector": {**labelled(a="1"), **expression("b", "NotIn", "2")}},
    {"kinds": ["job"]},
    {"roles": ["master"], "frameworks": ["pytorch"]},
    {"replicaIndexes": [0]},
    {"coordinator": True},
    {"resources": ["cpu"], "volumes": ["nfs"]},
    {"serviceAccounts": ["default", "a.*"]},
    {"serviceAccounts": ["trainer"]},
    {"resources": ["nvidia.com/*"]},
    {"requests": [{"resource": "nvidia.com/gpu", "atMost": 4}]},
    {"resourceClaims": True},
    {"annotationSelector": labelled(a="1")},
]
excluded = st.sampled_from(BLOCKS)
blocks = st.fixed_dictionaries(
    {"match": matches}, optional={"exclude": st.lists(excluded, max_size=2)}
)


def take_part(specs: list[Json], pod: Witness) -> bool:
    """Whether policies of these matches and excludes do, as the engine has it."""
    documents = [policy(f"p{at}", **PLACE, **spec) for at, spec in enumerate(specs)]
    decision = decide(arrival(pod), policy_set(documents), CLUSTER)
    return len(decision.policies) == len(specs)


def test_a_pod_is_found_for_a_condition_on_each_field() -> None:
    """Its manifest has what a policy asks for: without it, a trial would find no conflict."""
    assert {name for block in BLOCKS for name in block} == {
        field.document_name for field in conditions.FIELDS
    }
    for block in BLOCKS:
        pod = found({"match": block})
        assert pod is not None, block
        assert take_part([{"match": block}], pod), block


@thorough
@given(st.lists(blocks, min_size=1, max_size=3))
def test_every_policy_takes_part_in_the_pod_that_is_found(specs: list[Json]) -> None:
    """With all that their matches and excludes say."""
    pod = found(*specs)
    event(f"found: {pod is not None}")
    assert pod is None or take_part(specs, pod)
