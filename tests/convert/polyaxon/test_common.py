"""What pods have in common becomes one template, and nothing is lost on the way."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.convert.polyaxon.components.distributed import split
from webhook.convert.polyaxon.draft import settled
from webhook.run.template import merged

CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab")},
        optional={
            "image": st.sampled_from("xy"),
            "args": st.lists(st.sampled_from("xy"), max_size=1),
            "env": st.just([{"name": "A", "value": "1"}]),
        },
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda container: container["name"],
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={"hostNetwork": st.booleans(), "volumes": st.just([{"name": "v"}])},
)


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(st.sampled_from(["master", "worker", "ps"]), SPECS, min_size=1))
def test_the_template_and_what_differs_give_each_pod_again(specs: dict[str, Any]) -> None:
    """By the strategic merge that makes a role's template of them."""
    base, rest = split(specs)
    for role, spec in specs.items():
        whole = merged({"spec": settled(base)}, {"spec": settled(rest[role])})
        assert whole["spec"] == spec


def test_pods_that_are_alike_are_the_template_alone() -> None:
    """Nothing is left for the roles."""
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "i"}], "hostPID": True}
    assert split({"master": spec, "worker": dict(spec)}) == (spec, {"master": {}, "worker": {}})


def test_pods_with_other_containers_have_nothing_in_common() -> None:
    """Two lists of different containers are not mixed."""
    one: dict[str, Any] = {"containers": [{"name": "a"}]}
    other: dict[str, Any] = {"containers": [{"name": "b"}]}
    assert split({"x": one, "y": other}) == ({}, {"x": one, "y": other})
