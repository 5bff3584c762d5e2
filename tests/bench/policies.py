"""Policy sets as clusters have them: many teams' policies, of which a few match one pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from tests.bench.reviews import NAMESPACE
from tests.objects import an_object
from webhook import names

Json = dict[str, Any]

_SPOT_KEY = "example.com/capacity"
_CLASSES: tuple[Json, ...] = (
    {
        "name": "spot",
        "nodes": [
            {
                "labels": {_SPOT_KEY: "spot"},
                "taints": [{"key": _SPOT_KEY, "value": "spot", "effect": "NoSchedule"}],
            }
        ],
    },
    {"name": "on-demand", "complementOf": "spot"},
)

# The policies that match the pods of tests.bench.pods, in the order in which they are taken.
_MATCHING: tuple[Json, ...] = (
    {
        "name": "workers-on-spot",
        "priority": 100,
        "description": "Workers run on spot, and nowhere else.",
        "match": {"namespaces": [NAMESPACE], "kinds": ["experiment", "job"], "roles": ["worker"]},
        "overrides": {"capacity": [{"class": "spot", "mode": "Constrain"}]},
    },
    {
        "name": "experiments-pool",
        "match": {"kinds": ["experiment"], "resources": ["nvidia.com/gpu"]},
        "defaults": {
            "nodeSelector": {"pool": "experiments", "kubernetes.io/arch": "amd64"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "securityContext": {"runAsNonRoot": True, "fsGroup": 1000},
        },
    },
    {
        "name": "research-vision",
        "priority": 10,
        "match": {
            "namespaceSelector": {"matchLabels": {"team": "research"}},
            "podSelector": {"matchExpressions": [{"key": "debug", "operator": "DoesNotExist"}]},
            "frameworks": ["tensorflow", "pytorch"],
        },
        "overrides": {
            "annotations": {"example.com/cost-centre": "research"},
            "tolerations": [{"key": "team", "value": "research", "effect": "NoSchedule"}],
        },
    },
)

# What the others match on, by their number: half of them are a team's own.
_OTHER_MATCHES: tuple[Callable[[int], Json], ...] = (
    lambda n: {"namespaces": [f"team-{n}"]},
    lambda n: {"namespaces": [f"team-{n}", f"team-{n}-dev"], "kinds": ["experiment", "job"]},
    lambda n: {"namespaces": [f"team-{n}-*"], "roles": ["worker"]},
    lambda n: {"namespaceSelector": {"matchLabels": {"team": f"team-{n}"}}},
    lambda n: {"podSelector": {"matchLabels": {"project": f"project-{n}"}}, "kinds": ["job"]},
    lambda n: {
        "namespaceSelector": {
            "matchExpressions": [{"key": "tier", "operator": "In", "values": [f"tier-{n}", "gold"]}]
        }
    },
    lambda n: {"kinds": ["notebook"], "resources": [f"example.com/accelerator-{n}"]},
    lambda n: {
        "roles": ["ps", "master"],
        "podSelector": {"matchExpressions": [{"key": f"quota-{n}", "operator": "Exists"}]},
    },
    lambda n: {
        "podSelector": {
            "matchExpressions": [{"key": "project", "operator": "In", "values": [f"project-{n}"]}]
        },
        "volumes": ["persistentVolumeClaim"],
    },
    # No value that an index could know, but only that the label must be there.
    lambda n: {
        "kinds": ["experiment"],
        "podSelector": {"matchExpressions": [{"key": f"legacy-{n}", "operator": "Exists"}]},
    },
)
_OTHER_WISHES: tuple[Callable[[int], Json], ...] = (
    lambda n: {"defaults": {"nodeSelector": {"pool": f"pool-{n}"}}},
    lambda _: {"overrides": {"capacity": [{"class": "spot", "mode": "Constrain"}]}},
    lambda n: {"requirements": {"nodeSelector": {"example.com/zone": f"zone-{n}"}}},
    lambda n: {"overrides": {"tolerations": [{"key": f"team-{n}", "operator": "Exists"}]}},
    lambda _: {"overrides": {"capacity": [{"class": "spot", "mode": "Prevent"}]}},
)


def files(count: int, matching: int) -> dict[str, bytes]:
    """`count` policies in a file each, `matching` (at most 3) of them for our pods; the classes."""
    policies = list(_MATCHING[: min(matching, count)])
    for number in range(count - len(policies)):
        match = _OTHER_MATCHES[number % len(_OTHER_MATCHES)](number)
        # So that each match comes with each setting.
        settings = _OTHER_WISHES[number // len(_OTHER_MATCHES) % len(_OTHER_WISHES)](number)
        name = f"other-{number:04}"
        policies.append({"name": name, "priority": number % 7, "match": match, **settings})
    return {
        **{f"class-{c['name']}.yaml": _document("CapacityClass", c) for c in _CLASSES},
        **{f"{policy['name']}.yaml": _document("PlacementPolicy", policy) for policy in policies},
    }


def _document(kind: str, content: Json) -> bytes:
    # JSON is YAML.
    return orjson.dumps(
        an_object(
            names.API_VERSION,
            kind,
            content["name"],
            {key: value for key, value in content.items() if key != "name"},
        )
    )
