"""Whom a label of a policy concerns beside the pod's owner, by Kubernetes' rules of selectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import label_selectors
from tests.laws.strategies import KEYS, VALUES, Json, one, some
from tests.objects import an_object
from tests.placement.test_owner_selector import label_expressions
from tests.wording import Wording
from webhook.evaluation.selecting_objects import KINDS, merge_selecting, notes, selector_only

LABELS = st.fixed_dictionaries({}, optional={key: one(*VALUES[key]) for key in KEYS})
TEAM = {"team": "ml"}


def selecting(kind: str, selector: object, name: str = "s") -> Json:
    return an_object(KINDS[kind].api_version, kind, name, {KINDS[kind].field: selector})


def said(*objects: Json, before: Json | None = None, adoptable: bool = False) -> list[str]:
    """The notes about a pod that gets the label team."""
    own = before or {}
    among = [(each["kind"], selector_only(each)) for each in objects]
    after = {**own, **TEAM}
    return [*notes(own, after, among, policies=["of-ml"], adoptable=adoptable)]


@given(own=LABELS, added=LABELS, expressions=some(label_expressions()))
def test_a_note_is_made_where_the_labels_change_what_a_selector_says(
    own: dict[str, str], added: dict[str, str], expressions: list[Json]
) -> None:
    """Of a network policy, in both directions."""
    selector = {"matchExpressions": expressions}
    after = {**added, **own}
    was, will = (label_selectors.holds(selector, each) for each in (own, after))
    policy = ("NetworkPolicy", selecting("NetworkPolicy", selector))
    found = [*notes(own, after, [policy], policies=["p"], adoptable=True)]
    assert bool(found) == (was != will)
    assert all(("no longer" in text) == was for text in found)


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_a_controller_adopts_a_pod_that_has_none(kind: str, wording: Wording) -> None:
    """Not one with a controller, nor one that it selects already."""
    plain = KINDS[kind].plain
    other = selecting(kind, TEAM if plain else {"matchLabels": TEAM}, "other")
    (text,) = said(other, adoptable=True)
    wording(text)
    assert said(other) == []
    assert said(other, before=TEAM, adoptable=True) == []


def test_two_disruption_budgets_are_named(wording: Wording) -> None:
    """If a label of a policy adds one of them."""
    one_of_all = selecting("PodDisruptionBudget", {}, "all")
    of_team = selecting("PodDisruptionBudget", {"matchLabels": TEAM}, "team")
    for text in said(one_of_all, of_team):
        wording(text)
    assert len(said(one_of_all, of_team)) == 2
    assert said(one_of_all) == []


def test_an_object_of_a_file_replaces_that_of_the_cluster() -> None:
    """Else a budget that is applied again would be two."""
    budget = ("PodDisruptionBudget", selecting("PodDisruptionBudget", {"matchLabels": TEAM}))
    known = [("Service", selecting("Service", TEAM)), budget]
    new = ("PodDisruptionBudget", selecting("PodDisruptionBudget", {"matchLabels": {"a": "b"}}))
    assert merge_selecting([new], known) == [known[0], new]
    assert len(merge_selecting([budget], known)) == 2


def test_services_and_network_policies_are_named(wording: Wording) -> None:
    """A Service without a selector selects no pod."""
    web = [selecting("Service", TEAM, f"web-{at}") for at in range(5)]
    nobody = selecting("Service", {}), selecting("Service", None)
    without = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    for text in said(*web, *nobody, selecting("NetworkPolicy", without, "closed")):
        wording(text)


@pytest.mark.parametrize(
    "selector",
    ["x", 3, {"matchLabels": 3}, {"matchExpressions": [3, {"key": [], "values": 2}]}],
)
def test_an_odd_selector_of_a_file_is_no_traceback(selector: object) -> None:
    """The API server refuses it."""
    assert isinstance(said(*(selecting(kind, selector) for kind in KINDS)), list)
