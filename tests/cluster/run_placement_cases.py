"""The same for the rules about placement, in each layer of a Run's environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cluster.run_rule_cases import Case, in_each_layer
from webhook.crd.rules import TOO_DEEP

Json = dict[str, Any]
# Words of one rule's message each, as all texts at the end of a case.
VALUES = "one value or more, Exists"
NODE_VALUES = "Gt and Lt exactly one"
TERM = "term without expressions"
NEEDS_SELECTOR = "needs a labelSelector"


def expression(operator: str, *values: str) -> Json:
    """An expression on the label `a`."""
    return {"key": "a", "operator": operator, **({"values": list(values)} if values else {})}


def terms(*every: Json) -> Json:
    """A placement that requires a node that meets one of these terms."""
    required = {"nodeSelectorTerms": list(every)}
    return {"affinity": {"nodeAffinity": {f"required{_DURING}": required}}}


_DURING = "DuringSchedulingIgnoredDuringExecution"
_AT_TERM = f"affinity.nodeAffinity.required{_DURING}.nodeSelectorTerms[0]"


def near(**term: Any) -> Json:
    """A placement near other pods."""
    return {"affinity": {"podAffinity": {f"required{_DURING}": [{"topologyKey": "z", **term}]}}}


def spread(**more: Any) -> Json:
    """A placement with one topology spread constraint."""
    always = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
    return {"topologySpreadConstraints": [{**always, **more}]}


def _nodes() -> Iterator[tuple[str, Json, Json, str]]:
    good = terms({"matchExpressions": [expression("In", "x")]})
    for wrong, kept in (
        (expression("In"), good),
        (expression("NotIn"), good),
        (expression("Exists", "x"), terms({"matchExpressions": [expression("Exists")]})),
        (expression("DoesNotExist", "x"), good),
        (expression("Gt"), terms({"matchExpressions": [expression("Gt", "1")]})),
        (expression("Lt", "1", "2"), terms({"matchExpressions": [expression("Lt", "1")]})),
    ):
        at = f"{_AT_TERM}.matchExpressions[0].values"
        yield at, terms({"matchExpressions": [wrong]}), kept, NODE_VALUES
    nothing: list[Json] = [{}, {"matchExpressions": []}]
    for empty in nothing:
        yield _AT_TERM, terms(empty), good, TERM


def _selectors() -> Iterator[tuple[str, Json, Json, str]]:
    at = f"affinity.podAffinity.required{_DURING}[0]"
    kept = near(labelSelector={"matchExpressions": [expression("NotIn", "x")]})
    for wrong in (expression("In"), expression("Exists", "x")):
        broken = near(labelSelector={"matchExpressions": [wrong]})
        yield f"{at}.labelSelector.matchExpressions[0].values", broken, kept, VALUES
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        kept = near(**{field: ["a"]}, labelSelector={})
        yield f"{at}.{field}", near(**{field: ["a"]}), kept, NEEDS_SELECTOR
    at = "topologySpreadConstraints[0]"
    kept = spread(matchLabelKeys=["a"], labelSelector={})
    yield f"{at}.matchLabelKeys", spread(matchLabelKeys=["a"]), kept, NEEDS_SELECTOR
    yield (
        f"{at}.minDomains",
        spread(minDomains=2),
        spread(minDomains=2, whenUnsatisfiable="DoNotSchedule"),
        "whenUnsatisfiable DoNotSchedule only",
    )


def _others() -> Iterator[tuple[str, Json, Json, str]]:
    def tolerations(**one: Any) -> Json:
        return {"tolerations": [one]}

    yield (
        "tolerations[0]",
        tolerations(effect="NoExecute"),
        tolerations(operator="Exists"),
        "toleration without a key",
    )
    yield (
        "tolerations[0].value",
        tolerations(key="a", operator="Exists", value="b"),
        tolerations(key="a", operator="Exists", value=""),
        "Exists takes no value",
    )
    for effect in ({}, {"effect": "NoSchedule"}):
        yield (
            "tolerations[0].tolerationSeconds",
            tolerations(key="a", tolerationSeconds=5, **effect),
            tolerations(key="a", tolerationSeconds=2**63 - 1, effect="NoExecute"),
            "effect NoExecute only",
        )
    yield (
        "capacity[0].weight",
        {"capacity": [{"class": "spot", "mode": "Constrain", "weight": 5}]},
        {"capacity": [{"class": "spot", "mode": "Prefer", "weight": 100}]},
        "mode Prefer only",
    )
    for profile in ("seccompProfile", "appArmorProfile"):
        kept = {"securityContext": {profile: {"type": "Localhost", "localhostProfile": "p"}}}
        for wrong in ({"type": "Localhost"}, {"type": "Localhost", "localhostProfile": ""}):
            yield (
                f"securityContext.{profile}",
                {"securityContext": {profile: wrong}},
                kept,
                "needs a localhostProfile",
            )
        yield (
            f"securityContext.{profile}.localhostProfile",
            {"securityContext": {profile: {"type": "Unconfined", "localhostProfile": "p"}}},
            kept,
            "type Localhost only",
        )


# What the rules in TOO_DEEP say is left to the controller, for a single replica.
LEFT_TO_THE_CONTROLLER = (VALUES, NODE_VALUES, TERM)
assert len(TOO_DEEP) == len(LEFT_TO_THE_CONTROLLER)
# Field, a placement that breaks a rule, one that keeps it, words: for policies too.
IN_A_PLACEMENT = [*_nodes(), *_selectors(), *_others()]
_EVERYWHERE = [case for each in IN_A_PLACEMENT for case in in_each_layer(*each)]
PLACEMENT_CASES: list[Case] = [
    case
    for case in _EVERYWHERE
    if "byIndex" not in case.field or case.words not in LEFT_TO_THE_CONTROLLER
]
LEFT: list[Case] = [case for case in _EVERYWHERE if case not in PLACEMENT_CASES]
