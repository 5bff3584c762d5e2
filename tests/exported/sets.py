"""Policy sets that can be exported, over the little world of labels that the laws' pods live in."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fast_yaml import load_yaml
from tests.laws.strategies import CLASSES, Json, document
from tests.objects import required_affinity

_ALL_CLASSES = "\n---\n".join(map(json.dumps, CLASSES))


def text(*specs: Json) -> str:
    """Policies p0, p1, ..., beside the classes of the little world."""
    policies = [document("PlacementPolicy", f"p{n}", spec) for n, spec in enumerate(specs)]
    return "\n---\n".join([*map(json.dumps, policies), _ALL_CLASSES])


def required(*terms: list[Json]) -> Json:
    """Required node affinity of these terms."""
    found = [{"matchExpressions": expressions} for expressions in terms]
    return required_affinity(*found)


SETS = (
    *(text(*specs) for specs in load_yaml((Path(__file__).parent / "sets.yaml").read_text())),
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
