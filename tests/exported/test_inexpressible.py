"""What cannot be exported is refused: policy, field, reason and cure, all at once."""

from __future__ import annotations

import json

import pytest

from tests.exported.sets import required, text
from tests.laws.strategies import Json, document
from tests.objects import required_affinity
from tests.wording import Wording, mentions
from webhook.errors import NotExported
from webhook.exported.documents import documents
from webhook.exported.positioned_settings import placed_of
from webhook.interception import webhooks


def problems(*specs: Json) -> tuple[str, ...]:
    """What is refused of policies p0, p1, ...; nothing if they can be exported."""
    placed, _ = placed_of({"p.yaml": text(*specs).encode()})
    try:
        documents(placed, webhooks())
    except NotExported as error:
        return error.problems
    return ()


POOL_A = required([{"key": "pool", "operator": "In", "values": ["a"]}])
UNREACHABLE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
}


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        (
            {"overrides": {"split": [{"class": "spot", "percent": 50}, {"class": "on-demand"}]}},
            "give count",
        ),
        (
            {
                "overrides": {
                    "capacity": [
                        {
                            "class": "spot",
                            "mode": "Constrain",
                            "fallback": {"afterDisruptions": 1},
                        }
                    ]
                }
            },
            "leave it out",
        ),
        ({"defaults": {"nodeSelector": {"kubernetes.io/os": "linux"}}}, "operating system"),
        (
            {"requirements": {"capacity": [{"class": "spot", "mode": "Prevent"}]}},
            "make it an override",
        ),
        (
            {
                "overrides": {
                    "affinity": required_affinity(
                        {
                            "matchFields": [
                                {
                                    "key": "metadata.name",
                                    "operator": "In",
                                    "values": ["n"],
                                }
                            ]
                        }
                    )
                }
            },
            "kubernetes.io/hostname",
        ),
        (
            {
                "overrides": {
                    "capacity": [
                        {"class": "spot", "mode": "Constrain"},
                        {"class": "pool-b", "mode": "Prevent"},
                    ]
                }
            },
            "node label spot",
        ),
        (
            {"defaults": {"nodeSelector": {"pool": "b"}}, "overrides": {"affinity": POOL_A}},
            "node label pool",
        ),
        (
            {
                "overrides": {"tolerations": [{**UNREACHABLE, "tolerationSeconds": 2**60}]},
            },
            "make it smaller",
        ),
        (
            {
                "defaults": {
                    "patchStrategy": "IsNull",
                    "tolerations": [{"key": "gpu", "operator": "Exists"}],
                },
                "overrides": {"tolerations": [{**UNREACHABLE, "tolerationSeconds": 9}]},
            },
            "leave IsNull out",
        ),
    ],
    ids=[
        *("percentages", "fallback"),
        *("operating system", "capacity", "matchFields", "two classes", "selector and affinity"),
        *("seconds", "IsNull"),
    ],
)
def test_inexpressible_settings_are_rejected_with_policy_and_field(
    spec: Json, cure: str, wording: Wording
) -> None:
    """The line names both, the reason, and what to do instead."""
    (line,) = problems(spec)
    assert line.startswith("policy p0: ")
    assert cure in line
    wording(line)


def test_exceptions_and_rollouts_are_refused_by_name(wording: Wording) -> None:
    """An admission policy knows no time, and one enforcement of a policy only."""
    exception = document(
        "PlacementException",
        "debug-anna",
        {
            "policies": ["*"],
            "match": {"roles": ["worker"]},
            "until": "2027-01-01T00:00:00Z",
            "reason": "Anna looks for a leak.",
        },
    )
    rolled_out = {"defaults": {"nodeSelector": {"a": "b"}}, "rollout": {"namespaces": ["x"]}}
    placed, _ = placed_of({"p.yaml": f"{text(rolled_out)}\n---\n{json.dumps(exception)}".encode()})
    with pytest.raises(NotExported) as caught:
        documents(placed, webhooks())
    of_exception, of_rollout = caught.value.problems
    assert of_exception.startswith("exception debug-anna: ")
    mentions(of_exception, "ends", "admission policy")
    assert of_rollout.startswith("policy p0: rollout: ")
    mentions(of_rollout, "namespaces")
    wording(f"{of_exception}\n{of_rollout}")


def test_all_refusals_come_at_once() -> None:
    """Of every policy of the set."""
    linux = {"defaults": {"nodeSelector": {"kubernetes.io/os": "linux"}}}
    prevent = {"requirements": {"capacity": [{"class": "spot", "mode": "Prevent"}]}}
    assert [line[:9] for line in problems(linux, prevent)] == ["policy p0", "policy p1"]


def test_settings_of_policies_without_a_common_pod_are_allowed() -> None:
    """Different kinds, roles, namespaces or labels keep two policies apart."""
    selector = {"nodeSelector": {"pool": "b"}}
    for one, other in (
        ({"kinds": ["core"]}, {"kinds": ["job"]}),
        ({"coordinator": True}, {"coordinator": False}),
        ({"namespaces": ["a"]}, {"namespaces": ["b", "c"]}),
        (
            {"podSelector": {"matchLabels": {"stage": "x"}}},
            {
                "podSelector": {
                    "matchExpressions": [{"key": "stage", "operator": "In", "values": ["y"]}]
                }
            },
        ),
    ):
        specs: tuple[Json, Json] = (
            {"match": one, "defaults": selector},
            {"match": other, "overrides": {"affinity": POOL_A}},
        )
        assert problems(*specs) == ()
    globs: Json = {"match": {"namespaces": ["b*"]}, "overrides": {"affinity": POOL_A}}
    assert problems({"match": {"namespaces": ["b"]}, "defaults": selector}, globs)
    assert problems({"match": {"namespaces": ["a*"]}, "defaults": selector}, globs) == ()


def test_a_selector_key_that_every_term_admits_is_allowed() -> None:
    """There is nothing to work out: both can always be met."""
    not_core = required([{"key": "pool", "operator": "NotIn", "values": ["core"]}])
    assert (
        problems(
            {"defaults": {"nodeSelector": {"pool": "a"}}, "requirements": {"affinity": not_core}}
        )
        == ()
    )


def test_two_modes_of_one_class_are_alternatives() -> None:
    """The first policy that matches decides."""
    specs = [
        {"overrides": {"capacity": [{"class": "spot", "mode": mode}]}}
        for mode in ("Constrain", "Prevent", "Allow")
    ]
    assert problems(*specs) == ()
