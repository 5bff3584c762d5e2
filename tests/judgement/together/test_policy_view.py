"""The work of holding policies against each other is bounded, however large they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.judgement.together.test_warnings import policy, pool, prepared
from tests.objects import required_affinity
from webhook.judgement.together.warnings import OF_A_WRITE, of_policy
from webhook.policy.findings import Kind

Json = dict[str, Any]

TERMS = {
    "affinity": required_affinity(*[
                    {"matchExpressions": [
                        {"key": f"k{(at + more) % 20}", "operator": "In", "values": [f"v{at}", "w"]}
                        for more in range(9)
                    ]}
                    for at in range(60)
                ])
}  # fmt: skip
GLOBS = [f"*-{at}-*" for at in range(1_000)]


@pytest.mark.parametrize(
    "large",
    [
        policy("large", requirements=TERMS),
        policy("large", requirements={"tolerations": [{"key": f"t{at}"} for at in range(64)],
                                      "nodeSelector": {f"k{at}": "v" for at in range(20)}}),
        policy("large", match={"namespaces": GLOBS}, requirements=pool("a")),
    ],
)  # fmt: skip
def test_a_large_policy_is_held_against_few_others(large: Json) -> None:
    """And it is told that not all is checked."""
    others = [
        policy(f"p{at:04}", requirements={"nodeSelector": {f"k{at % 20}": "v", f"own{at}": "v"}})
        for at in range(600)
    ]
    found = of_policy(prepared([*others, large]), "large", None, OF_A_WRITE)
    assert Kind.NOT_CHECKED in {each.kind for each in found}


def test_of_a_thousand_small_policies_all_is_checked() -> None:
    """As ten teams of a hundred policies each write them."""
    crowd = [
        policy(
            f"p{at:04}",
            match={"namespaces": [f"team-{at % 10}-*", f"lab-{at}"], "roles": ["worker"]},
            requirements={"nodeSelector": {f"k{at % 7}": "v"}},
        )
        for at in range(1_000)
    ]
    assert of_policy(prepared(crowd), "p0007", None, OF_A_WRITE) == []
