"""Laws of values from the pod's namespace: such a policy decides as the one with the literal."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.laws.strategies import KEYS, TAINT_KEYS, VALUES, one, pods, policy_lists
from tests.laws.test_laws import lawful
from tests.laws.world import decided, patched, policy_set
from webhook import names

Json = dict[str, Any]
PARTS = ("defaults", "overrides", "requirements")
SPACE = {"team-pool": "b", "team-zone": "c", "team": "true", "blank": ""}
# Labels of the namespace: with a value, without one, and absent.
LABELS = (*SPACE, "absent")


@st.composite
def entries(draw: st.DrawFn, *, tolerations: bool) -> Json:
    """One entry of nodeSelectorFrom, or of tolerationsFrom."""
    key = draw(one(*TAINT_KEYS)) if tolerations else draw(one(*KEYS))
    entry: Json = {"key": key, "namespaceLabel": draw(one(*LABELS))}
    if tolerations:
        entry["effect"] = draw(one("NoSchedule", "NoExecute"))
    if draw(st.booleans()):
        entry["default"] = draw(one("true", *VALUES.get(key, ())))
    return entry


@st.composite
def policies_with_values(draw: st.DrawFn) -> list[Json]:
    """Policies, some of which read labels of the namespace."""
    policies = draw(policy_lists())
    for policy in policies:
        for part in [part for part in PARTS if part in policy["spec"]]:
            placement = policy["spec"][part]
            selected = draw(st.lists(entries(tolerations=False), max_size=2))
            taken = {entry["key"]: entry for entry in selected}
            for key in taken:
                placement.get("nodeSelector", {}).pop(key, None)
            tolerated = draw(st.lists(entries(tolerations=True), max_size=2))
            by_taint = {(entry["key"], entry["effect"]): entry for entry in tolerated}
            placement["nodeSelectorFrom"] = [*taken.values()]
            placement["tolerationsFrom"] = [*by_taint.values()]
    return policies


def value_of(entry: Json) -> str:
    value: str = SPACE.get(entry["namespaceLabel"]) or entry.get("default", "")
    return value


def literal(policies: list[Json]) -> list[Json]:
    """The policies with the values written into them; entries without one are left out."""
    result = copy.deepcopy(policies)
    for policy in result:
        for part in [part for part in PARTS if part in policy["spec"]]:
            placement = policy["spec"][part]
            selected = placement.pop("nodeSelectorFrom", [])
            fixed = placement.setdefault("nodeSelector", {})
            fixed |= {entry["key"]: value_of(entry) for entry in selected if value_of(entry)}
            tolerated = placement.pop("tolerationsFrom", [])
            placement.setdefault("tolerations", []).extend(
                {
                    "key": entry["key"],
                    "operator": "Equal",
                    "value": value_of(entry),
                    "effect": entry["effect"],
                }
                for entry in tolerated
                if value_of(entry)
            )
    return result


def lacking(policies: list[Json], *parts: str) -> set[str]:
    """The policies that have no value for an entry of these parts."""
    return {
        policy["metadata"]["name"]
        for policy in policies
        for part in parts
        for name in ("nodeSelectorFrom", "tolerationsFrom")
        for entry in policy["spec"].get(part, {}).get(name, ())
        if not value_of(entry)
    }


def comparable(pod: Json) -> Json:
    """The pod with its stamp as an object, without the hash of the set."""
    result = copy.deepcopy(pod)
    annotations = result["metadata"].get("annotations", {})
    if text := annotations.pop(names.PLACEMENT, None):
        stamp = json.loads(text)
        stamp.pop("set")
        stamp["policies"] = {
            policy: sorted(fields) for policy, fields in stamp.get("policies", {}).items()
        }
        annotations["stamp"] = stamp
    return result


@lawful
@given(pods(), policies_with_values())
def test_a_value_from_the_namespace_decides_as_the_same_value_in_the_policy(
    pod: Json, policies: list[Json]
) -> None:
    """A missing default sets nothing; a missing override or requirement may only reject more."""
    space = {key: value for key, value in SPACE.items() if value}
    decision = decided(pod, policy_set(policies), space=SPACE)
    with_literals = decided(pod, policy_set(literal(policies)), space=space)
    missing = lacking(policies, "overrides", "requirements")
    event(f"{decision.result} {'missing' if missing else ''}")
    if not with_literals.allowed:
        assert not decision.allowed
    if decision.allowed or not missing:
        assert decision.result == with_literals.result
        assert comparable(patched(pod, decision)) == comparable(patched(pod, with_literals))


@lawful
@given(pods(), policies_with_values())
def test_a_missing_value_rejects_only_by_the_policies_that_lack_it(
    pod: Json, policies: list[Json]
) -> None:
    """And each rejection says which label is missing."""
    decision = decided(pod, policy_set(policies), space=SPACE)
    if decision.allowed or not decided(pod, policy_set(literal(policies)), space=SPACE).allowed:
        return
    missing = lacking(policies, "overrides", "requirements")
    assert missing
    assert {*decision.rejected_by} <= missing
    assert "the pod's namespace has no label" in decision.reason
