"""What a policy is for, in words."""

from __future__ import annotations

from tests.wording import Wording, mentions
from webhook.cli.policies.words import for_whom, where
from webhook.policy.model import PlacementPolicy


def policy(**spec: object) -> PlacementPolicy:
    """A policy of this spec."""
    return PlacementPolicy.model_validate(
        {
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "PlacementPolicy",
            "metadata": {"name": "p"},
            "spec": {"defaults": {"nodeSelector": {"a": "b"}}, **spec},
        }
    )


def test_a_match_is_told_condition_by_condition(wording: Wording) -> None:
    """By the names that documents have, with what is excluded."""
    found = policy(
        match={
            "namespaces": ["ml-*"],
            "podSelector": {"matchLabels": {"team": "x"}},
            "roles": ["worker", "ps"],
            "coordinator": False,
        },
        exclude=[{"kinds": ["notebook"]}],
    )
    *conditions, leads, excluded = for_whom(found).split("; ")
    assert conditions == ["namespaces ml-*", "podSelector team=x", "roles worker, ps"]
    mentions(leads, "not", "lead")
    mentions(excluded, "not", "kinds notebook")
    mentions(for_whom(policy()), "every pod")
    wording(for_whom(found))
    wording(for_whom(policy()))


def test_where_a_policy_is_enforced_is_told() -> None:
    """Everywhere, in the namespaces of its rollout, or nowhere yet."""
    assert where(policy()) == "everywhere"
    assert where(policy(enforcement="Audit")) == "audit"
    assert where(policy(rollout={"namespaces": ["a", "b-*"]})) == "in a, b-*"
