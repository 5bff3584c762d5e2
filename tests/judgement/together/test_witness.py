"""A pod that several policies match: whichever is found, all of them match it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.judgement.together.test_warnings import policies_of, policy, thorough
from tests.laws.world import CLUSTER, policy_set
from tests.policy.test_matched_pods import matches
from webhook import names
from webhook.admission.arrival import Arrival
from webhook.admission.engine import decide
from webhook.judgement.together.witness import Witness, find

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
    """A selector of these labels."""
    return {"matchLabels": labels}


def expression(key: str, operator: str, *values: str) -> Json:
    """A selector of one expression."""
    said: Json = {"key": key, "operator": operator}
    return {"matchExpressions": [said | ({"values": list(values)} if values else {})]}


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ([{}, {}], "in namespace default"),
        ([{"match": {"namespaces": ["ml-*"]}}, {"match": {"namespaces": ["*-prod"]}}],
         "in namespace ml--prod"),
        ([{"match": {"namespaces": ["m?"]}, "exclude": [{"namespaces": ["mx", "m1"]}]},
          {"match": {"namespaces": ["m1", "m2"]}}], "in namespace m2"),
        ([{"match": {"namespaceSelector": labelled(team="a")}},
          {"match": {"namespaceSelector": expression("tier", "Exists")}}],
         "in namespace default (team=a, tier=any)"),
        ([{"match": {"namespaceSelector": labelled(**{"kubernetes.io/metadata.name": "ml"})}}],
         "in namespace ml"),
        ([{"match": {"podSelector": expression("a", "In", "1", "2")}},
          {"match": {"podSelector": expression("a", "NotIn", "1")}}],
         "in namespace default, with a=2"),
        ([{"match": {"kinds": ["job", "service"]}, "exclude": [{"kinds": ["job"]}]}],
         "in namespace default, with fairlead.dev/kind=service"),
        ([{"match": {"coordinator": True, "roles": ["worker"], "frameworks": ["jax", "mpi"]}}],
         ("in namespace default, with fairlead.dev/framework=jax, fairlead.dev/replica-index=0, "
          "fairlead.dev/role=worker")),
        ([{"match": {"roles": ["worker"], "frameworks": ["jax"], "replicaIndexes": [0, 3]},
           "exclude": [{"coordinator": True}]}],
         ("in namespace default, with fairlead.dev/framework=jax, fairlead.dev/replica-index=3, "
          "fairlead.dev/role=worker")),
        ([{"match": {"resources": ["cpu", "nvidia.com/gpu"], "volumes": ["nfs"]},
           "exclude": [{"resources": ["cpu"]}]}],
         "in namespace default, requesting nvidia.com/gpu, with volumes nfs"),
        ([{"match": {"serviceAccounts": ["train*", "a.b"]},
           "exclude": [{"serviceAccounts": ["*.b"]}]}],
         "in namespace default, with service account train"),
        ([{"exclude": [{"serviceAccounts": ["d*"]}]}],
         "in namespace default, with service account example"),
        ([{"match": {"serviceAccounts": ["default"]}}], "in namespace default"),
        ([{"exclude": [{"namespaces": ["default"], "roles": ["ps"]}]},
          {"match": {"roles": ["ps"]}}],
         "in namespace example, with fairlead.dev/role=ps"),
        ([{"overrides": {"nodeSelector": {"kubernetes.io/os": "windows"}}}],
         "in namespace default, for windows"),
    ],
)  # fmt: skip
def test_a_pod_is_found_for_what_people_write(specs: list[Json], text: str) -> None:
    """By each condition, and around what is excluded."""
    assert str(found(*specs)) == text


@pytest.mark.parametrize(
    "specs",
    [
        [{"match": {"namespaces": ["ml"]}}, {"match": {"namespaces": ["web"]}}],
        [{"match": {"namespaces": ["kube-system"]}}],
        [{"match": {"roles": ["worker"]}, "exclude": [{"roles": ["worker"]}]}],
        [{"match": {"coordinator": True}}, {"match": {"coordinator": False}}],
        [{"match": {"podSelector": labelled(a="1")}},
         {"match": {"podSelector": expression("a", "DoesNotExist")}}],
        [{"match": {"volumes": ["nfs"]}}, {"exclude": [{"volumes": ["nfs"]}]}],
        [{"exclude": [{"kinds": list(names.KINDS)}]}],
        [{"match": {"serviceAccounts": ["a"]}}, {"match": {"serviceAccounts": ["b*"]}}],
        [{"overrides": {"nodeSelector": {"kubernetes.io/os": "windows"}}},
         {"overrides": {"nodeSelector": {"kubernetes.io/os": "linux"}}}],
    ],
)  # fmt: skip
def test_where_there_is_none_none_is_found(specs: list[Json]) -> None:
    """Nor one that never comes to Fairlead."""
    assert found(*specs) is None


def test_of_many_labels_a_few_are_named() -> None:
    """A warning is to be read."""
    many = found({"match": {"podSelector": labelled(**{f"l{at}": "x" for at in range(9)})}})
    assert str(many).endswith("l4=x and 4 more")


excluded = st.sampled_from(
    [
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
    ]
)
blocks = st.fixed_dictionaries(
    {"match": matches}, optional={"exclude": st.lists(excluded, max_size=2)}
)


@thorough
@given(st.lists(blocks, min_size=1, max_size=3))
def test_every_policy_takes_part_in_the_pod_that_is_found(specs: list[Json]) -> None:
    """As the engine has it."""
    pod = found(*specs)
    event(f"found: {pod is not None}")
    if pod is not None:
        documents = [policy(f"p{at}", **PLACE, **each) for at, each in enumerate(specs)]
        decision = decide(arrival(pod), policy_set(documents), CLUSTER)
        assert len(decision.policies) == len(specs)
