"""What becomes of policies: which are written, which stay as they are, and when nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.installation.test_policy_objects import capacity_class
from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InstallationError
from webhook.installation.object_kinds import Key, in_order, key_of
from webhook.installation.policy_files import GIVEN, SHIPPED
from webhook.installation.policy_plan import check, is_still, marked, plan_writes

Json = dict[str, Any]
SHIPS = [capacity_class("spot"), capacity_class("on-demand", complementOf="spot")]
OURS = [marked(each, SHIPPED) for each in SHIPS]


def at(name: str) -> Key:
    return key_of(names.CLASS_KIND, name)


def stored(*objects: Json) -> dict[Key, Json]:
    return in_order(objects)


def test_classes_that_ship_come_into_a_cluster_without_any() -> None:
    """And again where one is missing, as long as all the others are of this kind."""
    assert list(plan_writes(OURS, {}).writes) == [at("spot"), at("on-demand")]
    live = stored(marked(SHIPS[0], SHIPPED))
    plan = plan_writes(OURS, live)
    assert list(plan.writes) == [at("on-demand")]
    assert plan.same == [at("spot")]


def test_an_exception_keeps_no_class_away() -> None:
    """It was never any installation's, and says nothing of classes."""
    exception = {**capacity_class("debug"), "kind": names.EXCEPTION_KIND, "spec": {}}
    live = stored(marked(SHIPS[0], SHIPPED), exception)
    assert list(plan_writes(OURS, live).writes) == [at("on-demand")]


@pytest.mark.parametrize("other", [capacity_class("mine"), marked(capacity_class("mine"), GIVEN)])
def test_classes_are_not_installed_over_existing_ones(other: Json) -> None:
    """He may mean them to be all there is; those that are there still are brought up to date."""
    old = marked(capacity_class("spot", nodes=[{"labels": {"old": "yes"}}]), SHIPPED)
    plan = plan_writes(OURS, stored(other, old))
    assert list(plan.writes) == [at("spot")]
    assert plan.kept == {}


def test_a_class_that_a_user_changed_stays() -> None:
    """Or wrote himself; what is as it would be written is nobody's change."""
    mine = capacity_class("spot", nodes=[{"labels": {"mine": "yes"}}])
    changed = {**marked(SHIPS[0], SHIPPED), "spec": mine["spec"]}
    for live in (mine, changed, marked(mine, GIVEN)):
        plan = plan_writes(OURS, stored(live, SHIPS[1]))
        assert list(plan.kept) == [at("spot")]
        assert plan.writes == {}
        assert plan.same == [at("on-demand")]


def test_policies_that_are_given_replace_what_an_installation_put_there() -> None:
    """Shipped or given; what somebody has changed since stays, and is told."""
    other = capacity_class("spot", nodes=[{"labels": {"other": "yes"}}])
    for origin in (SHIPPED, GIVEN):
        plan = plan_writes([marked(other, GIVEN)], stored(marked(SHIPS[0], origin)))
        assert is_still(plan.writes[at("spot")], GIVEN)
    plan = plan_writes([marked(other, GIVEN)], stored(SHIPS[0]))
    assert plan.writes == {}
    assert "it was changed" in plan.kept[at("spot")]


def test_what_makes_no_set_is_not_written(wording: Wording) -> None:
    """Unless the cluster's is none as it is: that is its admins' to mend."""
    complement = capacity_class("on-demand", complementOf="none")
    plan = plan_writes([marked(complement, GIVEN)], {})
    with pytest.raises(InstallationError) as refused:
        check(plan, {})
    mentions(str(refused.value), "capacityclasses/on-demand", "Nothing has been")
    wording(str(refused.value))
    check(plan, stored(capacity_class("other", complementOf="nowhere")))
    check(plan_writes([], {}), stored(complement))
