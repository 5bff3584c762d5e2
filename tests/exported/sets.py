"""Policy sets that can be exported, over the little world of labels that the laws' pods live in."""

from __future__ import annotations

import json

from tests.laws.strategies import CLASSES, Json, document
from tests.objects import required_affinity

_ALL_CLASSES = "\n---\n".join(map(json.dumps, CLASSES))
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_GPU = {"key": "gpu", "operator": "Exists"}
_UNREACHABLE = "node.kubernetes.io/unreachable"


def text(*specs: Json) -> str:
    """Policies p0, p1, ..., beside the classes of the little world."""
    policies = [document("PlacementPolicy", f"p{n}", spec) for n, spec in enumerate(specs)]
    return "\n---\n".join([*map(json.dumps, policies), _ALL_CLASSES])


def required(*terms: list[Json]) -> Json:
    """Required node affinity of these terms."""
    found = [{"matchExpressions": expressions} for expressions in terms]
    return required_affinity(*found)


WORKERS = {"match": {"roles": ["worker"]}}
SETS = (
    # Keys of maps: who wins, IsNull, labels that stay.
    text(
        {
            "priority": 9,
            **WORKERS,
            "overrides": {
                "nodeSelector": {"pool": "a", "kubernetes.io/arch": "amd64"},
                "labels": {"team": "x"},
                "annotations": {"note": "x", "a.b/c_d": 'ü "~1" \u2028'},
                "securityContext": {"runAsUser": 7, "windowsOptions": {"runAsUserName": "u"}},
            },
        },
        {
            "match": {"podSelector": {"matchLabels": {"stage": "prod"}}},
            "requirements": {"nodeSelector": {"pool": "b"}, "labels": {"team": "y"}},
            "defaults": {"annotations": {"note": "y"}, "schedulerName": "own"},
        },
        {
            "defaults": {
                "patchStrategy": "IsNull",
                "nodeSelector": {"zone": "a", "pool": "b"},
                "securityContext": {"runAsNonRoot": True, "runAsUser": 9},
                "priorityClassName": "low",
            }
        },
    ),
    # Scalars and requirements that contradict each other.
    text(
        {"match": {"coordinator": True}, "requirements": {"priorityClassName": "high"}},
        {**WORKERS, "overrides": {"priorityClassName": "low", "runtimeClassName": "sandboxed"}},
        {
            "match": {"namespaces": ["whole-*"]},
            "requirements": {"annotations": {"note": "x"}, "schedulerName": "own"},
        },
        {
            "match": {
                "podSelector": {"matchExpressions": [{"key": "stage", "operator": "Exists"}]}
            },
            "requirements": {"annotations": {"note": "y"}},
        },
    ),
    # Maxima: what is above them is lost, and with it what it would have won.
    text(
        {**WORKERS, "priority": 3, "requirements": {"terminationGracePeriodSeconds": 40}},
        {
            "match": {"podSelector": {"matchLabels": {"stage": "prod"}}},
            "priority": 2,
            "requirements": {"terminationGracePeriodSeconds": 5},
            "overrides": {"terminationGracePeriodSeconds": 60},
        },
        {
            "match": {"coordinator": True},
            "priority": 1,
            "overrides": {"terminationGracePeriodSeconds": 20},
            "defaults": {"terminationGracePeriodSeconds": 0},
        },
        {"defaults": {"terminationGracePeriodSeconds": 5}},
    ),
    # Capacity: every mode, classes of several shapes, defaults beneath overrides.
    text(
        {
            "priority": 2,
            **WORKERS,
            "overrides": {
                "capacity": [
                    {"class": "old", "mode": "Prevent"},
                    {"class": "spot", "mode": "Allow"},
                ]
            },
        },
        {
            "match": {"podSelector": {"matchLabels": {"stage": "debug"}}},
            "overrides": {"capacity": [{"class": "spot", "mode": "Constrain"}]},
        },
        {"defaults": {"capacity": [{"class": "spot", "mode": "Prefer", "weight": 7}]}},
    ),
    text(
        {**WORKERS, "overrides": {"capacity": [{"class": "pool-b", "mode": "Constrain"}]}},
        {
            "match": {"coordinator": True},
            "overrides": {"capacity": [{"class": "pool-b", "mode": "Prevent"}]},
        },
        {"defaults": {"capacity": [{"class": "spot", "mode": "None"}]}},
    ),
    text(
        {
            "match": {"coordinator": False},
            "overrides": {"capacity": [{"class": "spot", "mode": "Prevent"}]},
        },
        {"defaults": {"capacity": [{"class": "old", "mode": "Constrain"}]}},
    ),
    text({"overrides": {"capacity": [{"class": "old", "mode": "Constrain"}]}}),
    text(
        {
            "overrides": {
                "capacity": [
                    {"class": "spot", "mode": "Constrain"},
                    {"class": "pool-b", "mode": "Prefer", "weight": 80},
                ]
            }
        }
    ),
    # Required node affinity of every part, with two terms, beside keys of the selector.
    text(
        {
            **WORKERS,
            "requirements": {
                "affinity": required(
                    [{"key": "zone", "operator": "In", "values": ["a"]}],
                    [{"key": "zone", "operator": "In", "values": ["b"]}],
                )
            },
        },
        {
            "match": {"podSelector": {"matchLabels": {"stage": "prod"}}},
            "overrides": {
                "affinity": required([{"key": "gen", "operator": "Gt", "values": ["1"]}]),
                "nodeSelector": {"gen": "7"},
            },
        },
        {"defaults": {"nodeSelector": {"pool": "a", "zone": "a"}}, "match": {"roles": ["master"]}},
        {
            "defaults": {
                "affinity": required(
                    [{"key": "spot", "operator": "DoesNotExist"}],
                    [{"key": "spot", "operator": "NotIn", "values": ["true"]}],
                )
            }
        },
    ),
    # Tolerations: coverage, the API server's own, what goes first.
    text(
        {
            "priority": 5,
            **WORKERS,
            "overrides": {
                "tolerations": [
                    {
                        "key": "gpu",
                        "effect": "NoExecute",
                        "operator": "Exists",
                        "tolerationSeconds": 9,
                    },
                    {"key": "gpu", "effect": "NoExecute", "value": "true", "tolerationSeconds": 30},
                    {"key": "spot", "operator": "Equal", "value": "true"},
                ]
            },
        },
        {
            "match": {"coordinator": True},
            "overrides": {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]},
        },
        {
            "requirements": {"tolerations": [_GPU]},
            "match": {"podSelector": {"matchLabels": {"stage": "debug"}}},
        },
        {
            "defaults": {
                "tolerations": [
                    {"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
                    {
                        "key": _UNREACHABLE,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 5,
                    },
                ]
            }
        },
    ),
    text(
        {"overrides": {"capacity": [{"class": "spot", "mode": "Prevent"}]}, **WORKERS},
        {"defaults": {"patchStrategy": "IsNull", "tolerations": [_GPU]}},
        {
            "match": {"coordinator": True},
            "defaults": {
                "capacity": [{"class": "old", "mode": "Allow"}],
                "tolerations": [{"key": "maintenance", "operator": "Exists"}],
            },
        },
    ),
    # Lists and topology spread.
    text(
        {
            "overrides": {
                "affinity": {
                    "podAntiAffinity": {
                        PREFERRED: [
                            {
                                "weight": 10,
                                "podAffinityTerm": {
                                    "topologyKey": "zone",
                                    "labelSelector": {"matchLabels": {"app": "x"}},
                                },
                            }
                        ]
                    },
                    "nodeAffinity": {
                        PREFERRED: [
                            {
                                "weight": 50,
                                "preference": {
                                    "matchExpressions": [
                                        {"key": "pool", "operator": "In", "values": ["a"]}
                                    ]
                                },
                            }
                        ]
                    },
                },
                "topologySpreadConstraints": [
                    {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2}
                ],
            },
            **WORKERS,
        },
        {
            "defaults": {
                "affinity": {
                    "podAffinity": {
                        PREFERRED: [
                            {
                                "weight": 1,
                                "podAffinityTerm": {
                                    "topologyKey": "zone",
                                    "labelSelector": {"matchLabels": {"app": "y"}},
                                },
                            }
                        ],
                        REQUIRED: [
                            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "y"}}}
                        ],
                    }
                },
                "topologySpreadConstraints": [
                    {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 5},
                    {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1},
                ],
            }
        },
    ),
    # Every condition by which pods are chosen.
    text(
        {"match": {"kinds": ["notebook", "core"]}, "overrides": {"labels": {"c": "kind"}}},
        {
            "match": {"frameworks": ["pytorch", "mpi", "spark", "ray"]},
            "overrides": {"labels": {"d": "f"}},
        },
        {"match": {"replicaIndexes": [0, 2]}, "overrides": {"annotations": {"i": "02"}}},
        {"match": {"coordinator": True}, "overrides": {"annotations": {"leads": "yes"}}},
        {"match": {"resources": ["nvidia.com/gpu"]}, "overrides": {"tolerations": [_GPU]}},
        {
            "match": {"volumes": ["persistentVolumeClaim", "emptyDir"]},
            "exclude": [{"namespaces": ["wh?le-*"]}, {"coordinator": True}],
            "overrides": {"annotations": {"v": "yes"}},
        },
        {
            "match": {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]
                },
                "roles": ["worker", "ps", "launcher", "driver", "head"],
            },
            "overrides": {"annotations": {"n": "yes"}},
        },
        {
            "match": {"serviceAccounts": ["default", "a.b", "train?r"]},
            "exclude": [{"serviceAccounts": ["trainer"], "roles": ["master"]}],
            "overrides": {"annotations": {"account": "yes"}},
        },
        {"enforcement": "Audit", "overrides": {"annotations": {"never": "seen"}}},
    ),
    # As many policies as a cluster may have: what an evaluation costs must stay within bounds.
    text(
        {"priority": 99, "overrides": {"capacity": [{"class": "old", "mode": "Prevent"}]}},
        {
            "priority": 98,
            "overrides": {
                "affinity": required(
                    *([{"key": "disk", "operator": "In", "values": [f"d{n}"]}] for n in range(4))
                )
            },
        },
        *(
            {
                "priority": n,
                "match": {"namespaces": [f"team-{n}-*", "ml-*"], "roles": ["worker", "master"]},
                "exclude": [{"podSelector": {"matchLabels": {"stage": f"s{n}"}}}],
                "defaults": {
                    "nodeSelector": {"kubernetes.io/arch": "amd64", f"k{n}": "v"},
                    "tolerations": [{"key": f"t{n}", "operator": "Exists", "effect": "NoSchedule"}],
                },
                "overrides": {"annotations": {f"a{n}": "b", "note": str(n)}},
                "requirements": {"nodeSelector": {f"r{n}": "v"}},
            }
            for n in range(18)
        ),
    ),
)
