"""Hypothesis strategies: policies with more in them than the laws need."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from tests.fuzz.additions import GKE_SPOT, Addition, Json, at, fixed
from tests.fuzz.pods import added
from tests.laws.strategies import (
    CLASSES,
    PLAIN_VALUES,
    PREFERRED,
    REQUIRED,
    exceptions,
    one,
    policy_lists,
)
from webhook import names
from webhook.judgement.set_judgement import load_served
from webhook.policy.policy_documents import parse

PARTS = ("defaults", "overrides", "requirements")
# The webhook goes by the clock: whenever this runs one of them is over, and the other is not.
_ENDS = ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00+02:00")
_NOT_READY = {"key": names.TAINT_NOT_READY, "operator": "Exists", "effect": "NoExecute"}

conditions: st.SearchStrategy[Addition] = fixed(
    (at("spec", "enforcement"), "Audit"),
    (at("spec", "match", "resources"), ["nvidia.com/gpu"]),
    (at("spec", "match", "resources"), ["nvidia.com/*", "c?u"]),
    (at("spec", "match", "requests"), [{"resource": "nvidia.com/gpu", "atLeast": 2}]),
    (at("spec", "match", "resourceClaims"), False),
    (at("spec", "match", "annotationSelector"), {"matchLabels": {"a.b/c": "x"}}),
    (at("spec", "match", "volumes"), ["persistentVolumeClaim", "emptyDir"]),
    (at("spec", "match", "coordinator"), True),
    (at("spec", "match", "coordinator"), False),
    (at("spec", "match", "frameworks"), ["pytorch", "mpi"]),
    (at("spec", "match", "replicaIndexes"), [0, 2]),
    (at("spec", "match", "kinds"), ["core", "notebook"]),
    (at("spec", "match", "serviceAccounts"), ["train*", "a.b"]),
    (at("spec", "exclude"), [{"serviceAccounts": ["default"]}]),
    (at("spec", "match", "namespaceSelector"), {"matchLabels": {"tier": "batch"}}),
    (at("spec", "exclude"), [{"coordinator": True}, {"namespaces": ["wh?le"]}]),
)
settings: st.SearchStrategy[Addition] = one(*PARTS).flatmap(
    lambda part: fixed(
        (at("spec", part, "nodeSelector", names.OS_LABEL), "linux"),
        (at("spec", part, "nodeSelector", names.OS_LABEL), "windows"),
        (at("spec", part, "nodeSelector", "a.b/c_d"), ""),
        (at("spec", part, "nodeSelector", GKE_SPOT), "true"),
        *(
            (at("spec", part, field, *path), value)
            for field, values in PLAIN_VALUES.items()
            for *path, value in values.added
        ),
        (at("spec", part, "tolerations"), [{**_NOT_READY, "tolerationSeconds": 9}]),
        (at("spec", part, "tolerations"), [{"operator": "Exists"}]),
        (at("spec", part, "tolerations"), [{"key": "spot"}, {"key": "spot", "value": "true"}]),
        (
            at("spec", part, "affinity", "podAntiAffinity", REQUIRED),
            [
                {
                    "topologyKey": "zone",
                    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    "namespaceSelector": {},
                }
            ],
        ),
        (
            at("spec", part, "affinity", "nodeAffinity", PREFERRED),
            [
                {"weight": 100, "preference": {"matchExpressions": [expression]}}
                for expression in (
                    {"key": "gen", "operator": "Gt", "values": ["5"]},
                    {"key": "a.b/c_d", "operator": "DoesNotExist"},
                )
            ],
        ),
        (
            at("spec", part, "topologySpreadConstraints"),
            [
                {
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "maxSkew": 3,
                    "minDomains": 2,
                    "nodeAffinityPolicy": "Ignore",
                    "labelSelector": {"matchLabels": {"app": "x"}},
                }
            ],
        ),
    )
)


@st.composite
def policy_documents(draw: st.DrawFn, most: int = 4) -> list[Json]:
    """PlacementPolicy documents, each valid; whether they are a set beside each other is open."""
    documents: list[Json] = draw(policy_lists(most=most))
    for document in documents:
        for addition in draw(st.lists(st.one_of(settings, settings, conditions), max_size=3)):
            added(document, addition)
        if document["spec"].get("enforcement") == "Audit":
            document["spec"].pop("rollout", None)  # the two together are an error
    return documents


@st.composite
def excepted_documents(draw: st.DrawFn) -> list[Json]:
    """Such documents, and beside some of them exceptions that are in force or have ended."""
    documents: list[Json] = draw(policy_documents())
    for number in range(draw(one(0, 0, 1, 2))):
        exception: Json = draw(exceptions(f"e{number}", len(documents)))
        exception["spec"]["until"] = draw(one(*_ENDS))
        documents.append(exception)
    return documents


def without_faults(documents: Sequence[Json]) -> bool:
    """Whether a webhook that already serves takes this set, which is beside the laws' classes."""
    text = "\n---\n".join(map(json.dumps, [*documents, *CLASSES]))
    return not load_served(parse({"p.yaml": text.encode()})).faults
