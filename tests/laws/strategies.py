"""Hypothesis strategies: pods, nodes, classes and policies over a small world of labels.

Few keys and few values, so that settings meet and contradict each other often.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from hypothesis import strategies as st

from webhook import names
from webhook.placement.fields import OF_PODS

Json = dict[str, Any]

KEYS = ("pool", "zone", "spot", "gen")
VALUES: dict[str, list[str]] = {
    "pool": ["a", "b"],
    "zone": ["a", "b", "c"],
    "spot": ["true", "false"],
    "gen": ["1", "2", "7"],
}
# One more value for each key that nobody ever names: a node that is like none of the settings.
WORLD = {key: [*values, "9"] for key, values in VALUES.items()}
# Whatever Gt and Lt ask for between the bounds that expressions() draws.
WORLD["gen"] = ["0", "1", "2", "3", "6", "7", "8"]
NODE_NAMES = ["n1", "n2"]
TAINT_KEYS = ("spot", "nvidia.com/gpu", "maintenance")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def one(*choices: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(choices)


def some(strategy: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[list[Any]]:
    """A short list, that may be empty."""
    return st.lists(strategy, max_size=most)


@st.composite
def expressions(draw: st.DrawFn) -> Json:
    """One node selector requirement."""
    operator = draw(one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    key = "gen" if operator in ("Gt", "Lt") else draw(one(*KEYS))
    result: Json = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        result["values"] = draw(st.lists(one(*VALUES[key]), min_size=1, max_size=2, unique=True))
    elif operator in ("Gt", "Lt"):
        result["values"] = [draw(one("0", "1", "2", "5", "7"))]
    return result


@st.composite
def terms(draw: st.DrawFn, *, empty: bool = True) -> Json:
    """One node selector term; of a pod's, some are empty."""
    result: Json = {}
    wanted = draw(st.lists(expressions(), min_size=0 if empty else 1, max_size=3))
    if wanted:
        result["matchExpressions"] = wanted
    if draw(st.integers(0, 9)) == 0:
        operator = draw(one("In", "NotIn"))
        result["matchFields"] = [
            {"key": "metadata.name", "operator": operator, "values": [draw(one(*NODE_NAMES))]}
        ]
    return result


@st.composite
def tolerations(draw: st.DrawFn, *, everything: bool = True) -> Json:
    operator = draw(one("Exists", "Equal", None))
    result: Json = {}
    if operator:
        result["operator"] = operator
    if not (operator == "Exists" and everything and draw(st.integers(0, 4)) == 0):
        result["key"] = draw(one(*TAINT_KEYS, names.TAINT_NOT_READY))
    if operator != "Exists":
        value = draw(one("true", "false", None))
        if value is not None:
            result["value"] = value
    effect = draw(one(*EFFECTS, None))
    if effect:
        result["effect"] = effect
    if effect == "NoExecute" and draw(st.booleans()):
        result["tolerationSeconds"] = draw(one(30, 60, 300))
    return result


@st.composite
def toleration_patterns(draw: st.DrawFn) -> Json:
    """A pattern of tolerations that pods may have."""
    key = draw(one(*TAINT_KEYS, "*", f"{TAINT_KEYS[0][:2]}*"))
    value, effect = draw(one("true", None)), draw(one(*EFFECTS, None))
    given = {"key": key, "value": value, "effect": effect}
    return {name: each for name, each in given.items() if each is not None}


selectors: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {}, optional={key: one(*VALUES[key]) for key in KEYS}
)


def _weighted(inner: st.SearchStrategy[Json], key: str) -> st.SearchStrategy[Json]:
    return st.builds(lambda w, p: {"weight": w, key: p}, one(1, 50, 100), inner)


pod_affinity_terms = st.builds(
    lambda v, topology: {"labelSelector": {"matchLabels": {"app": v}}, "topologyKey": topology},
    one("x", "y"),
    one("zone", "kubernetes.io/hostname"),
)


@st.composite
def affinities(draw: st.DrawFn, *, empty_terms: bool = True) -> Json:
    """A pod's or a policy's affinity."""
    result: Json = {}
    node: Json = {}
    if draw(st.booleans()):
        node[REQUIRED] = {
            "nodeSelectorTerms": draw(st.lists(terms(empty=empty_terms), min_size=1, max_size=3))
        }
    if draw(st.integers(0, 2)) == 0:
        node[PREFERRED] = [draw(_weighted(terms(empty=False), "preference"))]
    if node:
        result["nodeAffinity"] = node
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.integers(0, 4)) == 0:
            result[kind] = {
                draw(one(REQUIRED, PREFERRED)): [draw(pod_affinity_terms)],
            }
            if PREFERRED in result[kind]:
                term = result[kind][PREFERRED][0]
                result[kind][PREFERRED] = [{"weight": 10, "podAffinityTerm": term}]
    return result


spread_constraints = st.builds(
    lambda key, when, skew: {"topologyKey": key, "whenUnsatisfiable": when, "maxSkew": skew},
    one("zone", "kubernetes.io/hostname"),
    one("DoNotSchedule", "ScheduleAnyway"),
    one(1, 2),
)


def _by_pair(constraints: list[Json]) -> list[Json]:
    return list({(c["topologyKey"], c["whenUnsatisfiable"]): c for c in constraints}.values())


# Kueue's: of what waits for its admission, and of what waits for its topology.
GATES = (f"{names.KUEUE_PREFIX}admission", names.KUEUE_TOPOLOGY_GATE)
REPLICAS = (
    {names.REPLICA_INDEX: "1"},
    {names.REPLICA_INDEX: "0", names.REPLICAS: "1"},
    {names.REPLICA_INDEX: "2", names.REPLICAS: "6"},
    {names.REPLICA_INDEX: "5", names.REPLICAS: "6"},
)
CLASS_NAMES = ("spot", "on-demand", "pool-b", "old")


# Whatever can be lost was lost.
EVENTS = [{"class": each, "time": "2026-06-01T10:59:00Z"} for each in CLASS_NAMES]
HISTORY = json.dumps({"asOf": "2026-06-01T11:00:00Z", "events": EVENTS})
HISTORIED: Json = {"annotations": {names.HISTORY: HISTORY}}
RUNTIME_CLASS = "sandboxed"


class Values(NamedTuple):
    """Values of a plain field: of policies, of pods, and those that fuzzing adds to policies.

    added: each the path below the field, and the value
    """

    policies: Sequence[Any]
    pods: Sequence[Any]
    added: Sequence[tuple[Any, ...]]


# The fields that are merged alone, in the order in which they are drawn. The RuntimeClass is not in
# the laws' world: it may tolerate every taint.
PLAIN_VALUES: Mapping[str, Values] = {
    "priorityClassName": Values(("low", "high"), ("low", "cluster-default"), (("high",),)),
    "schedulerName": Values(
        ("own", "other"), ("default-scheduler", "own"), (("default-scheduler",),)
    ),
    "runtimeClassName": Values((), (), ((RUNTIME_CLASS,),)),
    "terminationGracePeriodSeconds": Values((5, 20, 30, 40, 60), (0, 30, 45), ((0,), (2**33,))),
    "labels": Values(({"team": "x"}, {"team": "y", "cost": "1"}), (), (("a.b/c_d", ""),)),
    "annotations": Values(
        ({"note": "x"}, {"note": "y"}),
        (),
        (("a.b/c_d", 'ü "~1/~0" \u2028'), ("note", "")),
    ),
    "securityContext": Values(
        ({"runAsUser": 1000}, {"runAsUser": 2000, "fsGroup": 1}),
        ({}, {"runAsUser": 0}),
        (
            ("fsGroup", 2000),
            ("seccompProfile", {"type": "RuntimeDefault"}),
            ("supplementalGroups", [1, 2]),
            ("runAsNonRoot", True),
            ("windowsOptions", {"runAsUserName": "u"}),
            ("seLinuxOptions", {"level": "s0"}),
        ),
    ),
}
# The fields of a pod's spec that a patch may change.
PATCHED = frozenset(
    name
    for field in OF_PODS
    if field.holder == "spec" and field.by_policies
    for name in (field.name, *field.derived)
)


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """A pod of a run, as the webhook gets it."""
    labels = {names.RUN: "r"}
    role = draw(one("worker", "master", None))
    if role:
        labels[names.ROLE] = role
    if draw(st.booleans()):
        labels["stage"] = draw(one("debug", "prod"))
    labels |= draw(one({}, *REPLICAS))
    metadata: Json = {"name": "p", "labels": labels, **deepcopy(draw(one({}, {}, HISTORIED)))}
    if draw(st.integers(0, 3)) == 0:
        mode = draw(one("Allow", "Prefer", "Constrain", "Prevent", "None"))
        asked = {names.CAPACITY: f"{draw(one(*CLASS_NAMES))}={mode}"}
        metadata["annotations"] = metadata.get("annotations", {}) | asked
    spec: Json = {"containers": [{"name": "main", "image": "i"}], "priority": 0}
    if draw(st.integers(0, 3)) == 0:
        labels |= {names.KUEUE_PODSET: "main", names.KUEUE_QUEUE: "q"}
        spec |= draw(one({}, {}, *({"schedulingGates": [{"name": gate}]} for gate in GATES)))
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(selectors)
    if draw(st.booleans()):
        spec["affinity"] = draw(affinities())
    own = draw(some(tolerations()))
    if draw(st.booleans()):
        own += [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in (names.TAINT_NOT_READY, names.TAINT_UNREACHABLE)
        ] * draw(one(1, 1, 1, 2))
    if own:
        spec["tolerations"] = own
    if draw(st.integers(0, 3)) == 0:
        spec["topologySpreadConstraints"] = _by_pair(draw(some(spread_constraints, 2)))
    for field, values in (
        *((field, values.pods) for field, values in PLAIN_VALUES.items() if values.pods),
        ("serviceAccountName", ("default", "trainer", "a.b", "axb")),
    ):
        if draw(st.booleans()):
            spec[field] = draw(one(*values))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@st.composite
def nodes(draw: st.DrawFn) -> Json:
    """A node of the small world."""
    labels = draw(st.fixed_dictionaries({}, optional={k: one(*WORLD[k]) for k in KEYS}))
    taints = draw(
        some(
            st.builds(
                lambda k, v, e: {"key": k, "effect": e} | ({"value": v} if v else {}),
                one(*TAINT_KEYS),
                one("true", "false", ""),
                one(*EFFECTS),
            ),
            2,
        )
    )
    return {
        "metadata": {"name": draw(one(*NODE_NAMES)), "labels": labels},
        "spec": {"taints": taints},
    }


def document(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


CLASSES = (
    document(
        "CapacityClass",
        "spot",
        {
            "nodes": [
                {
                    "labels": {"spot": "true"},
                    "taints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
                }
            ]
        },
    ),
    document("CapacityClass", "on-demand", {"complementOf": "spot"}),
    document(
        "CapacityClass",
        "pool-b",
        {"nodes": [{"labels": {"pool": "b"}}, {"labels": {"zone": "c", "spot": "false"}}]},
    ),
    document(
        "CapacityClass",
        "old",
        {
            "nodes": [
                {
                    "matchExpressions": [
                        {"key": "gen", "operator": "NotIn", "values": ["7"]},
                        {"key": "pool", "operator": "Exists"},
                    ],
                    "taints": [
                        {"key": "maintenance", "effect": "NoExecute"},
                        {"key": "spot", "value": "true", "effect": "NoSchedule"},
                    ],
                }
            ]
        },
    ),
)
MODES = ("Allow", "Prefer", "Constrain", "Prevent", "None")


@st.composite
def with_fallback(draw: st.DrawFn, setting: Json) -> Json:
    """A capacity setting, some of those that require nodes with a fallback."""
    if setting["mode"] != "Constrain" or draw(st.booleans()):
        return setting
    then = {"afterDisruptions": 1, "then": draw(one("Allow", "Prevent"))}
    return {**setting, "fallback": then}


@st.composite
def allowed_values(draw: st.DrawFn) -> Json:
    """The values that authors may choose among."""
    field = draw(one("nodeSelector", "priorityClassName", "schedulerName"))
    if field == "nodeSelector":
        key = draw(one(*KEYS))
        result: Json = {"field": field, "key": key, "oneOf": [draw(one(*VALUES[key]))]}
    else:
        values = {"priorityClassName": ("low", "high"), "schedulerName": ("own", "other")}
        result = {"field": field, "oneOf": [draw(one(*values[field]))]}
    return {**result, "stated": draw(st.booleans())}


@st.composite
def placements(draw: st.DrawFn, part: str) -> Json:
    """The placement of one part of a policy; never empty."""
    result: Json = {}
    if draw(st.booleans()):
        result["nodeSelector"] = draw(selectors)
    if draw(st.integers(0, 2)) == 0:
        result["affinity"] = draw(affinities(empty_terms=False))
    if draw(st.integers(0, 2)) == 0:
        result["tolerations"] = draw(some(tolerations()))
    if part == "requirements" and draw(st.integers(0, 4)) == 0:
        patterns = draw(st.lists(toleration_patterns(), max_size=3))
        result["allowedTolerations"] = {"patterns": patterns, "remove": draw(st.booleans())}
    if part == "requirements" and draw(st.integers(0, 4)) == 0:
        result["values"] = draw(
            st.lists(allowed_values(), max_size=2, unique_by=lambda v: (v["field"], v.get("key")))
        )
    if draw(st.integers(0, 2)) == 0:
        settings = draw(
            st.lists(
                st.builds(lambda c, m: {"class": c, "mode": m}, one(*CLASS_NAMES), one(*MODES)),
                max_size=2,
                unique_by=lambda setting: str(setting["class"]),
            )
        )
        result["capacity"] = settings
    if draw(st.integers(0, 4)) == 0:
        result["topologySpreadConstraints"] = _by_pair(draw(some(spread_constraints, 2)))
    for field, values in PLAIN_VALUES.items():
        if values.policies and draw(st.integers(0, 5)) == 0:
            result[field] = draw(one(*values.policies))
    result = {key: value for key, value in result.items() if value}
    if not result:
        result["nodeSelector"] = {"zone": "a"}
    if part == "defaults" and draw(st.booleans()):
        result["patchStrategy"] = draw(one("IsNull", "PreMerge"))
    return result


@st.composite
def policies(
    draw: st.DrawFn, name: str, parts: tuple[str, ...] = ("defaults", "overrides", "requirements")
) -> Json:
    spec: Json = {"priority": draw(one(0, 1, 5))}
    if draw(st.booleans()):
        spec["match"] = draw(
            one(
                {"roles": ["worker"]},
                {"namespaces": ["ml-*"]},
                {"podSelector": {"matchLabels": {"stage": "prod"}}},
                {"kinds": ["job"]},
                {"serviceAccounts": ["train*"]},
            )
        )
    if draw(st.integers(0, 3)) == 0:
        spec["rollout"] = {"namespaces": draw(one(["ml-*"], ["research"], ["research", "ml-team"]))}
    if draw(st.integers(0, 4)) == 0:
        spec["exclude"] = [{"podSelector": {"matchLabels": {"stage": "debug"}}}]
    chosen = draw(st.lists(one(*parts), min_size=1, max_size=2, unique=True))
    for part in chosen:
        spec[part] = draw(placements(part))
        if "capacity" in spec[part]:
            spec[part]["capacity"] = [draw(with_fallback(each)) for each in spec[part]["capacity"]]
    if draw(st.integers(0, 3)) == 0:
        taken = {each["class"] for each in spec[chosen[0]].get("capacity", ())}
        spec[chosen[0]]["split"] = draw(splits([each for each in CLASS_NAMES if each not in taken]))
    return document("PlacementPolicy", name, spec)


@st.composite
def splits(draw: st.DrawFn, classes: list[str]) -> list[Json]:
    """A split over some classes; a class may be in several shares."""
    given = st.builds(lambda c, m: {"class": c, "mode": m}, one(*classes), one(*MODES))
    share = given.flatmap(with_fallback)
    counted = [{**each, "count": draw(one(1, 2))} for each in draw(st.lists(share, max_size=2))]
    of_all = [{**each, "percent": draw(one(30, 50))} for each in draw(st.lists(share, max_size=2))]
    return [*counted, *of_all, draw(share)]


@st.composite
def policy_lists(
    draw: st.DrawFn,
    parts: tuple[str, ...] = ("defaults", "overrides", "requirements"),
    most: int = 3,
) -> list[Json]:
    """Some PlacementPolicy documents."""
    count = draw(st.integers(1, most))
    return [draw(policies(f"p{at}", parts)) for at in range(count)]


# When the pods of the little world come.
NOW = "2026-06-01T12:00:00Z"


@st.composite
def exceptions(draw: st.DrawFn, name: str, most: int = 3) -> Json:
    """One PlacementException document, in force or not, for some of the policies p0, p1, ..."""
    wanted = st.lists(one(*(f"p{at}" for at in range(most))), min_size=1, unique=True)
    match = one(
        {"roles": ["worker"]},
        {"namespaces": ["ml-*"]},
        {"namespaces": ["research"]},
        {"podSelector": {"matchLabels": {"stage": "prod"}}},
        {"serviceAccounts": ["train*"]},
    )
    spec = {
        "policies": draw(st.just(["*"]) | wanted),
        "match": draw(match),
        "until": draw(one("2026-06-01T14:00:01+02:00", NOW, "2027-01-01T00:00:00Z")),
        "reason": "To see what comes of it.",
    }
    return document("PlacementException", name, spec)


@st.composite
def excepted_lists(draw: st.DrawFn) -> list[Json]:
    """Some PlacementPolicy documents, and in half of the cases exceptions to them."""
    found: list[Json] = draw(policy_lists())
    count = draw(one(0, 0, 1, 2))
    return [*found, *(draw(exceptions(f"e{at}", len(found))) for at in range(count))]
