"""Teams' policies in a set: what has no effect, hashes, metrics, and who refuses them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fast_yaml import load_yaml
from webhook import names
from webhook.errors import InvalidDocuments, NotExported
from webhook.exported.positioned_settings import placed_of
from webhook.installation.policy_plan import of_files
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.policy.team_policies import MOST_BYTES, MOST_IN_NAMESPACE
from webhook.server.webhook_metrics import TEAMS, Metrics

Json = dict[str, Any]
EVERY_FIELD: Json = load_yaml((Path(__file__).parent / "team-policy.yaml").read_text())
PLATFORM = {
    "apiVersion": names.API_VERSION,
    "kind": names.POLICY_KIND,
    "metadata": {"name": "platform"},
    "spec": {"defaults": {"nodeSelector": {"pool": "shared"}}},
}


def team(name: str = "own", namespace: str = "team-a", **spec: Any) -> Json:
    """A team's policy; by default it sets its pool."""
    defaults = {"defaults": {"nodeSelector": {"pool": namespace}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.TEAM_KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**defaults, **spec},
    }


def files(*documents: Json) -> dict[str, bytes]:
    return {f"{at}.json": orjson.dumps(each) for at, each in enumerate(documents)}


def loaded(*documents: Json) -> PolicySet:
    return load(files(*documents)).policies


def with_settings(policies: PolicySet) -> list[str]:
    """The policies that have an effect."""
    return [policy.name for policy in policies.policies if policy.settings]


def test_a_teams_policy_comes_after_all_others_and_names_its_namespace() -> None:
    """So that positions of other policies do not depend on it."""
    policies = loaded(team("a"), team("b", "another"), PLATFORM)
    assert with_settings(policies) == ["platform", "another/b", "team-a/a"]
    assert policies.of_teams == {"another": (1,), "team-a": (2,)}


def test_every_field_of_a_teams_policy_sets_something() -> None:
    """With the class that it names."""
    spot = {
        "apiVersion": names.API_VERSION,
        "kind": names.CLASS_KIND,
        "metadata": {"name": "spot"},
        "spec": {"nodes": [{"labels": {"spot": "true"}}]},
    }
    (policy,) = loaded(EVERY_FIELD, spot).policies
    assert {setting.row.name for setting in policy.settings} >= {"nodeSelector", "tolerations"}
    assert len(policy.settings) == len(EVERY_FIELD["spec"]["defaults"])


def test_a_policy_has_an_effect_again_when_its_class_comes() -> None:
    """Until then it is in the set, without settings and with a warning."""
    capacity = {"capacity": [{"class": "spot", "mode": "Prefer"}]}
    given = load(files(team(defaults=capacity), PLATFORM))
    assert with_settings(given.policies) == ["platform"]
    assert ["there is no capacity class" in str(each) for each in given.warnings] == [True]


def test_only_the_first_of_a_namespace_have_an_effect() -> None:
    """By name, and in each namespace apart."""
    many = [team(f"p{at:02}") for at in range(MOST_IN_NAMESPACE + 2)]
    policies = loaded(*reversed(many), team("p99", "other"))
    kept = [f"team-a/p{at:02}" for at in range(MOST_IN_NAMESPACE)]
    assert with_settings(policies) == ["other/p99", *kept]


def test_a_policy_that_is_too_large_has_no_effect() -> None:
    """Its size is that of its JSON."""
    large = team(description="x" * MOST_BYTES)
    assert with_settings(loaded(large, team("small"))) == ["team-a/small"]


def test_the_hash_of_a_namespace_depends_on_its_own_policies_alone() -> None:
    """Elsewhere it is that of the set without them; the hash of the set has all."""
    without, given = loaded(PLATFORM), loaded(PLATFORM, team())
    changed = loaded(PLATFORM, team(description="changed"))
    assert given.hash_in("elsewhere") == changed.hash_in("elsewhere") == without.hash
    assert without.hash_in("team-a") == without.hash
    assert len({given.hash_in("team-a"), changed.hash_in("team-a"), without.hash}) == 3
    assert given.hash != changed.hash


def test_turns_of_replicas_are_those_of_the_namespace() -> None:
    """The stamp of a sampled replica has them, so that they must not change elsewhere."""
    policies = loaded(PLATFORM, team(match={"replicaIndexes": [3]}))
    assert policies.turns(8, "team-a") == {3, 4}
    assert policies.turns(8, "elsewhere") == set()


def test_an_export_refuses_policies_of_teams() -> None:
    """And names their namespaces."""
    with pytest.raises(NotExported, match="namespace team-a"):
        placed_of(files(PLATFORM, team()))


def test_an_installation_refuses_policies_of_teams() -> None:
    """No cluster defines them."""
    with pytest.raises(InvalidDocuments) as caught:
        of_files(files(PLATFORM, team()))
    assert ["read from files only" in str(each) for each in caught.value.findings] == [True]


def test_metrics_count_policies_of_teams_together() -> None:
    """A team may make as many names as it likes, and each would be a series."""
    metrics = Metrics()
    metrics.decided("placed", ["platform", "team-a/a", "team-b/b"])
    body, _ = asyncio.run(metrics.render(""))
    text = body.decode()
    assert f'policy="{TEAMS}"' in text
    assert "team-a" not in text
