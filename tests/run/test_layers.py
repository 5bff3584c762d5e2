"""How environments patch one another: the laws, and a table of every field."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.laws import scheduler, strategies
from webhook import names
from webhook.placement.fields import FIELDS, Shape
from webhook.placement.schema.placement import PlacementModel
from webhook.placement.tolerations import meeting_points
from webhook.run import environment
from webhook.run.environment import upon

Json = dict[str, Any]
# A busy machine is no failure of a law.
lawful = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
STRATEGIES = ("PostMerge", "PreMerge", "Replace", "IsNull")
TAINTS = [
    {"key": key, "value": value, "effect": effect}
    for key, value, effect in itertools.product(
        (*strategies.TAINT_KEYS, names.TAINT_NOT_READY, "other"),
        ("true", "false", ""),
        strategies.EFFECTS,
    )
]


def model(said: Json, strategy: str | None = None) -> PlacementModel:
    return PlacementModel.model_validate({**said, "patchStrategy": strategy})


def said(environment: PlacementModel) -> Json:
    return environment.model_dump(by_alias=True, exclude_none=True)


def folded(*layers: tuple[str | None, Json]) -> Json:
    """What layers come to, each with its strategy."""
    return dict(upon({}, [model(layer, strategy) for strategy, layer in layers]))


def patience(tolerations: list[Json]) -> list[Any]:
    """Of each taint how long it is tolerated: eviction goes by the first that matches."""
    found = []
    for taint in TAINTS:
        own = [t for t in tolerations if scheduler.tolerated({"spec": {"tolerations": [t]}}, taint)]
        evicts = taint["effect"] == "NoExecute"
        found.append((bool(own), own[0].get("tolerationSeconds") if own and evicts else None))
    return found


def meaning(environment: Json) -> Json:
    """What an environment comes to in Kubernetes, where lists of named things have no order."""
    found = {key: value for key, value in environment.items() if value}
    found["tolerations"] = patience(found.get("tolerations", []))
    for field, keys in (
        ("topologySpreadConstraints", ("topologyKey", "whenUnsatisfiable")),
        ("capacity", ("class",)),
    ):
        items = found.get(field, [])
        found[field] = {tuple(item[key] for key in keys): item for item in items}
        assert len(found[field]) == len(items)
    return found


# Of each scalar; zero is a word.
TWO_VALUES = {
    field.name: (0, 20) if isinstance(field.unset, int) else ("one", "two")
    for field in FIELDS
    if field.shape is Shape.SCALAR
}
environments = st.builds(
    lambda common, more: {**common, **more},
    strategies.placements("overrides"),
    st.fixed_dictionaries(
        {},
        optional={name: st.sampled_from(values) for name, values in TWO_VALUES.items()},
    ),
)


@lawful
@given(environments)
def test_merging_nothing_changes_nothing(environment: Json) -> None:
    """An empty layer, or none at all, above or below, by any strategy."""
    for strategy in STRATEGIES:
        assert folded((None, environment), (strategy, {})) == environment
        assert folded((None, {}), (strategy, environment)) == environment
    assert dict(upon({}, [None, model(environment), None])) == environment


@lawful
@given(environments, environments)
def test_what_shares_no_key_merges_in_either_order(one: Json, other: Json) -> None:
    """PostMerge of layers that speak of different fields commutes."""
    other = {field: value for field, value in other.items() if field not in one}
    here, there = folded((None, one), (None, other)), folded((None, other), (None, one))
    assert meaning(here) == meaning(there)


@lawful
@given(environments, environments)
def test_pre_merge_is_post_merge_the_other_way_round(one: Json, other: Json) -> None:
    """The earlier wins, as the later does under PostMerge."""
    pre = folded((None, one), ("PreMerge", other))
    assert meaning(pre) == meaning(folded((None, other), ("PostMerge", one)))


@lawful
@given(environments, environments)
def test_is_null_never_changes_a_field_that_is_set(one: Json, other: Json) -> None:
    """Fields of which the earlier says something stay whole; the others come whole."""
    assert folded((None, one), ("IsNull", other)) == {**other, **one}


@lawful
@given(environments, environments)
def test_replace_takes_every_field_that_is_given(one: Json, other: Json) -> None:
    """Fields of the later come whole, with nothing of the earlier in them; the others stay."""
    assert folded((None, one), ("Replace", other)) == {**one, **other}


@lawful
@given(environments, environments, environments)
def test_post_merge_is_associative(a: Json, b: Json, c: Json) -> None:
    """A run's and a role's environments may be folded first, once for all replicas."""
    left = folded((None, folded((None, a), (None, b))), (None, c))
    right = folded((None, a), (None, folded((None, b), (None, c))))
    assert meaning(left) == meaning(right)


@lawful
@given(environments, st.sampled_from(("PostMerge", "PreMerge", "Replace", "IsNull")))
def test_a_layer_upon_itself_is_itself(environment: Json, strategy: str) -> None:
    """Each strategy is idempotent."""
    twice = folded((None, environment), (strategy, environment))
    assert meaning(twice) == meaning(environment)


def terms(value: str) -> Json:
    """A required node affinity."""
    expression = {"key": "zone", "operator": "In", "values": [value]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [expression]}]
        }
    }


def near(app: str) -> Json:
    """A required pod affinity."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def spread(skew: int, when: str) -> Json:
    return {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": when}


SPOT = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
GPU = {"key": "gpu", "operator": "Exists"}
SOON = {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
LATE = {**SOON, "tolerationSeconds": 300}
ALL = {"operator": "Exists"}

# Field, earlier, later, and what comes by PostMerge, PreMerge, Replace, IsNull.
TABLE: list[tuple[Any, ...]] = [
    (
        "nodeSelector",
        {"pool": "a", "zone": "x"},
        {"pool": "b", "gpu": "yes"},
        {"pool": "b", "zone": "x", "gpu": "yes"},
        {"pool": "a", "zone": "x", "gpu": "yes"},
        {"pool": "b", "gpu": "yes"},
        {"pool": "a", "zone": "x"},
    ),
    (
        "labels",
        {"team": "a", "cost": "1"},
        {"team": "b"},
        {"team": "b", "cost": "1"},
        {"team": "a", "cost": "1"},
        {"team": "b"},
        {"team": "a", "cost": "1"},
    ),
    (
        "annotations",
        {"note": "a"},
        {"note": "b", "more": "b"},
        {"note": "b", "more": "b"},
        {"note": "a", "more": "b"},
        {"note": "b", "more": "b"},
        {"note": "a"},
    ),
    (
        "tolerations",
        [SPOT, GPU],
        [GPU, LATE],
        [SPOT, GPU, LATE],
        [SPOT, GPU, LATE],
        [GPU, LATE],
        [SPOT, GPU],
    ),
    # Seconds of one taint: whoever wins stands first, or alone.
    ("tolerations", [SPOT, SOON], [LATE], [LATE, SPOT], [SPOT, SOON], [LATE], [SPOT, SOON]),
    ("tolerations", [ALL], [SOON], [SOON, ALL], [ALL, SOON], [SOON], [ALL]),
    # Of affinity a list is taken whole, and the other lists stay; Replace takes all of affinity.
    (
        "affinity",
        {"nodeAffinity": terms("a"), "podAffinity": near("x")},
        {"nodeAffinity": terms("b"), "podAntiAffinity": near("y")},
        {
            "nodeAffinity": terms("b"),
            "podAffinity": near("x"),
            "podAntiAffinity": near("y"),
        },
        {
            "nodeAffinity": terms("a"),
            "podAffinity": near("x"),
            "podAntiAffinity": near("y"),
        },
        {"nodeAffinity": terms("b"), "podAntiAffinity": near("y")},
        {"nodeAffinity": terms("a"), "podAffinity": near("x")},
    ),
    (
        "topologySpreadConstraints",
        [spread(1, "DoNotSchedule"), spread(1, "ScheduleAnyway")],
        [spread(2, "DoNotSchedule")],
        [spread(2, "DoNotSchedule"), spread(1, "ScheduleAnyway")],
        [spread(1, "DoNotSchedule"), spread(1, "ScheduleAnyway")],
        [spread(2, "DoNotSchedule")],
        [spread(1, "DoNotSchedule"), spread(1, "ScheduleAnyway")],
    ),
    (
        "securityContext",
        {"runAsUser": 1, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"}},
        {"fsGroup": 2, "seccompProfile": {"type": "RuntimeDefault"}},
        {"runAsUser": 1, "fsGroup": 2, "seccompProfile": {"type": "RuntimeDefault"}},
        {
            "runAsUser": 1,
            "fsGroup": 2,
            "seccompProfile": {"type": "Localhost", "localhostProfile": "p"},
        },
        {"fsGroup": 2, "seccompProfile": {"type": "RuntimeDefault"}},
        {"runAsUser": 1, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"}},
    ),
    (
        "capacity",
        [{"class": "spot", "mode": "Allow"}, {"class": "old", "mode": "Prevent"}],
        [{"class": "spot", "mode": "Prefer", "weight": 9}, {"class": "gpu", "mode": "Allow"}],
        [
            {"class": "spot", "mode": "Prefer", "weight": 9},
            {"class": "old", "mode": "Prevent"},
            {"class": "gpu", "mode": "Allow"},
        ],
        [
            {"class": "spot", "mode": "Allow"},
            {"class": "old", "mode": "Prevent"},
            {"class": "gpu", "mode": "Allow"},
        ],
        [{"class": "spot", "mode": "Prefer", "weight": 9}, {"class": "gpu", "mode": "Allow"}],
        [{"class": "spot", "mode": "Allow"}, {"class": "old", "mode": "Prevent"}],
    ),
    *((field, *two, *(two[1], two[0]) * 2) for field, two in TWO_VALUES.items()),
    # Nothing is no word: it is filled by every strategy, and clears a field by Replace alone.
    ("nodeSelector", {}, {"pool": "b"}, *([{"pool": "b"}] * 4)),
    ("nodeSelector", {"pool": "a"}, {}, {"pool": "a"}, {"pool": "a"}, {}, {"pool": "a"}),
    ("tolerations", [SPOT], [], [SPOT], [SPOT], [], [SPOT]),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_field_has_its_way(row: tuple[Any, ...], strategy: str) -> None:
    """Maps go by key, lists by what names their items, and single values whole."""
    field, earlier, later, *expected = row
    result = folded((None, {field: earlier}), (strategy, {field: later}))
    assert result.get(field) == expected[STRATEGIES.index(strategy)]


def test_every_field_of_an_environment_is_in_the_table() -> None:
    """A field that is added has to say how it merges."""
    fields = {field.alias for field in PlacementModel.model_fields.values()}
    assert {row[0] for row in TABLE} == fields - {"patchStrategy"}


def test_layers_go_from_the_bottom_up() -> None:
    """Each is patched upon all that came before it, by its own strategy."""
    result = folded(
        (None, {"nodeSelector": {"pool": "run", "zone": "a"}, "priorityClassName": "low"}),
        ("Replace", {"nodeSelector": {"pool": "role"}}),
        ("IsNull", {"priorityClassName": "high", "schedulerName": "own"}),
        ("PreMerge", {"nodeSelector": {"pool": "replica", "gpu": "yes"}}),
    )
    assert result == {
        "nodeSelector": {"pool": "role", "gpu": "yes"},
        "priorityClassName": "low",
        "schedulerName": "own",
    }


def test_thousands_of_tolerations_are_not_compared_pair_by_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is looked at a few times, so that one Run cannot hold up a webhook that plans it."""
    looked = 0

    def counting(toleration: Any) -> Any:
        nonlocal looked
        looked += 1
        return meeting_points(toleration)

    monkeypatch.setattr(environment, "meeting_points", counting)
    own = [{**SOON, "key": f"own-{n}", "tolerationSeconds": n} for n in range(1000)]
    more = [{**SOON, "key": f"more-{n}"} for n in range(60)]
    together = environment.patched({"tolerations": own}, model({"tolerations": more}))
    assert together["tolerations"] == [*own, *more]
    assert looked <= len(own) + len(more)
