"""For each rule of policies and classes an object that breaks it, and one that is at its limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.cluster.run_placement_cases import (
    IN_A_PLACEMENT,
    NODE_VALUES,
    VALUES,
    expression,
    near,
    spread,
    terms,
)
from tests.cluster.run_rule_cases import Case
from webhook import names
from webhook.policy.crd.definitions import RESOURCES
from webhook.policy.model import PARTS

Json = dict[str, Any]

# Words of one rule's message each, as all texts at the end of a case.
KEY = "each key is a name"
NUMBER = "compare whole numbers"
PLACES: Json = {"nodeSelector": {"pool": "a"}}


def an_object(kind: str, spec: Mapping[str, Any], **metadata: Any) -> Json:
    """An object of that kind."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "metadata": {"name": "mine", **metadata},
        "spec": dict(spec),
    }


def path_of(kind: str) -> str:
    """Where objects of a kind are created."""
    return f"/apis/{names.API_VERSION}/{RESOURCES[kind].partition('.')[0]}"


def a_policy(**spec: Any) -> Json:
    """A policy that places, unless it says itself what it does."""
    says = any(part in spec for part in PARTS)
    return an_object(names.POLICY_KIND, spec if says else {**spec, "defaults": PLACES})


def a_class(**spec: Any) -> Json:
    """A capacity class."""
    return an_object(names.CLASS_KIND, spec)


def an_exception(**spec: Any) -> Json:
    """An exception to the policy `mine`."""
    whole = {
        "policies": ["mine"],
        "match": {"roles": ["worker"]},
        "until": "2026-12-01T18:00:00Z",
        "reason": "Anna looks for a leak.",
        **spec,
    }
    return an_object(names.EXCEPTION_KIND, whole)


def _exceptions() -> Iterator[Case]:
    kept = an_exception()
    yield Case(
        {**kept, "metadata": {"generateName": "mine-"}},
        kept,
        "metadata.generateName",
        "stamps and the audit log",
    )
    yield Case(
        an_exception(policies=["mine", "*"]),
        an_exception(policies=["*"]),
        "spec.policies",
        "* means all policies",
    )
    blocks: tuple[Json, ...] = ({}, {"podSelector": {"matchLabels": {}}, "namespaceSelector": {}})
    for block in blocks:
        yield Case(
            an_exception(match=block),
            an_exception(match={**block, "namespaces": ["*"]}),
            "spec.match",
            "let every pod pass",
        )


def a_source(**spec: Any) -> Json:
    """A system that an admin adds."""
    return an_object(names.SOURCE_KIND, {"system": "Acme", **spec})


def _sources() -> Iterator[Case]:
    identity = {"precedence": 1, "marks": [{"label": "acme.example.com/job"}]}
    kept = a_source(identity=identity)
    broken = {**kept, "metadata": {"generateName": "mine-"}}
    yield Case(broken, kept, "metadata.generateName", "fairlead install --source")
    kinds = [{"group": "acme.example.com", "kind": "Training"}]
    for nothing in (a_source(), a_source(kinds=[])):
        yield Case(nothing, a_source(kinds=kinds), "spec", "needs identity or kinds")


def _metadata() -> Iterator[Case]:
    words = "policies of equal priority"
    for whole in (a_policy(), a_class(nodes=[{"labels": {"a": "b"}}])):
        broken = {**whole, "metadata": {"generateName": "mine-"}}
        yield Case(broken, whole, "metadata.generateName", words)
    yield Case(
        a_class(complementOf="mine"),
        a_class(complementOf="other"),
        "spec.complementOf",
        "its own complement",
    )


def _policies() -> Iterator[Case]:
    nothing = "one of defaults, overrides, requirements"
    silent: tuple[Json, ...] = ({}, {"overrides": {}}, {"defaults": {}, "requirements": {}})
    for spec in silent:
        broken = an_object(names.POLICY_KIND, spec)
        yield Case(broken, a_policy(requirements={"labels": {}}), "spec", nothing)
    yield Case(
        a_policy(enforcement="Audit", rollout={"namespaces": ["a"]}),
        a_policy(enforcement="Enforce", rollout={"namespaces": ["a-*"]}),
        "spec.rollout",
        "nothing under enforcement: Audit",
    )
    split = {"split": [{"class": "a"}]}
    yield Case(
        a_policy(overrides=split, defaults=split),
        a_policy(overrides=split),
        "spec",
        "a policy has one split",
    )
    empty = "exclude every pod"
    some: Json = {"namespaces": ["a"]}
    blocks: tuple[Json, ...] = (
        {},
        {"podSelector": {}},
        {"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}},
    )
    for block in blocks:
        yield Case(
            a_policy(exclude=[some, block]),
            a_policy(exclude=[some, {"coordinator": False}]),
            "spec.exclude[1]",
            empty,
        )
    for part in PARTS:
        for field in ("labels", "annotations"):
            yield Case(
                a_policy(**{part: {field: {"fairlead.dev/run": "x"}}}),
                a_policy(**{part: {field: {"fairlead.dev.example/run": "x"}}}),
                f"spec.{part}.{field}",
                f"write {field} under fairlead.dev/",
            )


def _classes() -> Iterator[Case]:
    shape: Json = {"labels": {"a": "b"}}
    yield Case(
        a_class(),
        a_class(nodes=[shape]),
        "spec",
        "needs nodes or complementOf",
    )
    yield Case(
        a_class(nodes=[shape], complementOf="other"),
        a_class(complementOf="other"),
        "spec",
        "has nodes or complementOf",
    )
    taint = {"key": "a", "effect": "NoSchedule"}
    telling: tuple[Json, ...] = ({}, {"taints": [taint]}, {"labels": {}, "matchExpressions": []})
    for wrong in telling:
        yield Case(
            a_class(nodes=[shape, wrong]),
            a_class(nodes=[shape, {"matchExpressions": [expression("Exists")]}]),
            "spec.nodes[1]",
            "taints alone",
        )
    yield Case(
        a_class(nodes=[{"matchExpressions": [expression("In")]}]),
        a_class(nodes=[{"matchExpressions": [expression("In", "a")]}]),
        "spec.nodes[0].matchExpressions[0].values",
        VALUES,
    )
    yield Case(
        a_class(nodes=[{"labels": {"a b": "c"}}]),
        a_class(nodes=[{"labels": dict.fromkeys(_KEYS, "c")}]),
        "spec.nodes[0].labels",
        KEY,
    )


_KEYS = ("a", "A_b.c", "x" * 63, "a.b-c/d", f"a.b/{'x' * 63}")
_WRONG_KEYS = ("", "a b", "-a", "x" * 64, "A/b", "a/b/c", f"a/{'x' * 64}")


def _in_a_placement() -> Iterator[tuple[str, Json, Json, str]]:
    """What is said of a policy's placements, and not of a Run's."""
    for field in ("nodeSelector", "labels", "annotations"):
        kept = {field: dict.fromkeys(_KEYS, "c")}
        for key in _WRONG_KEYS:
            if field != "annotations" or key != "A/b":
                yield field, {field: {key: "c"}}, kept, KEY
    yield "annotations", {"annotations": {"A_/b": "c"}}, {"annotations": {"A.b/C": "c"}}, KEY
    selector = {"matchLabels": {"a b": "c"}}
    yield (
        "topologySpreadConstraints[0].labelSelector.matchLabels",
        spread(labelSelector=selector),
        spread(labelSelector={"matchLabels": {"a": "c"}}),
        KEY,
    )
    at = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    for operator in ("Gt", "Lt"):
        yield (
            f"{at}.matchExpressions[0].values",
            terms({"matchExpressions": [expression(operator, "8.5")]}),
            terms({"matchExpressions": [expression(operator, "08")]}),
            NUMBER,
        )
    at = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
    yield (
        f"{at}.mismatchLabelKeys",
        near(labelSelector={}, matchLabelKeys=["a", "b"], mismatchLabelKeys=["c", "b"]),
        near(labelSelector={}, matchLabelKeys=["a"], mismatchLabelKeys=["c", "b"]),
        "also in matchLabelKeys",
    )
    last = {"class": "a"}
    half = {"class": "b", "percent": 50}
    for wrong, words in (
        ([{**last, "count": 1}], "the last share has the rest"),
        ([last, last], "the last share has the rest"),
        ([half, {"class": "b", "count": 1}, last], "shares with count come before"),
        ([half, half, {**half, "percent": 1}, last], "more than 100"),
    ):
        yield "split", {"split": wrong}, {"split": [half, half, last]}, words
    beside = {"capacity": [{"class": "b", "mode": "Allow"}]}
    yield (
        "split",
        {"split": [half, last], **beside},
        {"split": [last], **beside},
        "in capacity too",
    )
    yield (
        "split[0].percent",
        {"split": [{"class": "b", "count": 1, "percent": 5}, last]},
        {"split": [{"class": "b", "count": 1}, {"class": "c", "percent": 5}, last]},
        "count is given too",
    )
    yield (
        "split[0].weight",
        {"split": [{**last, "weight": 5}]},
        {"split": [{**last, "mode": "Prefer", "weight": 5}]},
        "mode Prefer only",
    )
    first = {"class": "a", "mode": "Constrain"}
    counted = {"afterDisruptions": 2}
    for at, bad, good, says in (
        ("", {"then": "Prevent"}, {"afterPending": "20m"}, "needs afterDisruptions"),
        (
            ".within",
            {"afterPending": "1s", "within": "6h"},
            {**counted, "within": "6h"},
            "with afterDisruptions",
        ),
    ):
        place = f"capacity[0].fallback{at}"
        yield (
            place,
            {"capacity": [{**first, "fallback": bad}]},
            {"capacity": [{**first, "fallback": good}]},
            says,
        )
    yield (
        "capacity[0].fallback",
        {"capacity": [{**first, "mode": "Prefer", "fallback": counted}]},
        {"split": [{"class": "a", "fallback": counted}]},
        "mode Constrain only",
    )
    selecting = {
        "matchLabels": {"a": "x"},
        "matchExpressions": [{**expression("Exists"), "key": "b"}],
    }
    for key, where in (("a", "labelSelector"), ("b", "labelSelector's matchExpressions")):
        yield (
            "topologySpreadConstraints[0].matchLabelKeys",
            spread(labelSelector=selecting, matchLabelKeys=["c", key]),
            spread(labelSelector=selecting, matchLabelKeys=["c"]),
            f"is in {where} too",
        )


def _in_each_part(field: str, broken: Json, kept: Json, words: str) -> Iterator[Case]:
    for part in PARTS:
        wrong, right = a_policy(**{part: broken}), a_policy(**{part: kept})
        yield Case(wrong, right, f"spec.{part}.{field}", words)


def _blocks() -> Iterator[Case]:
    """Selectors of match and exclude are judged as all others are."""
    for selector in ("namespaceSelector", "podSelector"):
        for field, wrong, kept, words in (
            ("matchExpressions[0].values", expression("In"), expression("In", "a"), VALUES),
            ("matchLabels", {"a b": "c"}, {"a": "b"}, KEY),
        ):
            name = field.partition("[")[0]
            listed = name == "matchExpressions"
            broken, good = ({selector: {name: [x] if listed else x}} for x in (wrong, kept))
            yield Case(
                a_policy(match=broken),
                a_policy(match=good),
                f"spec.match.{selector}.{field}",
                words,
            )
            yield Case(
                a_policy(exclude=[broken]),
                a_policy(exclude=[good]),
                f"spec.exclude[0].{selector}.{field}",
                words,
            )


CASES: list[Case] = [
    *_metadata(),
    *_policies(),
    *_classes(),
    *_exceptions(),
    *_sources(),
    *_blocks(),
    *(case for each in (*IN_A_PLACEMENT, *_in_a_placement()) for case in _in_each_part(*each)),
]
assert {VALUES, NODE_VALUES} < {case.words for case in CASES}
