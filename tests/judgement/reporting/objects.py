"""Objects of a cluster as values, for the tests of what is reported of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.objects import an_object
from webhook import names
from webhook.judgement.set_judgement import Objects, SetJudgement
from webhook.judgement.together.warnings import UNBOUNDED
from webhook.policy.status_model import MODELS, ObjectStatus, ObservedObject

KINDS = {resource: kind for kind, resource in names.POLICY_RESOURCES.items()}
POOL: dict[str, Any] = {"defaults": {"nodeSelector": {"pool": "a"}}}
SPOT: dict[str, Any] = {"nodes": [{"labels": {"lifecycle": "spot"}}]}
ON_SPOT: dict[str, Any] = {"overrides": {"capacity": [{"class": "spot", "mode": "Constrain"}]}}


def judged_objects(objects: Mapping[str, bytes]) -> SetJudgement:
    """All that is said of the objects, on a day in March."""
    return Objects().judge(objects, UNBOUNDED, datetime(2026, 3, 1, 12, tzinfo=UTC))


def seen(
    resource: str,
    name: str,
    spec: dict[str, Any],
    *,
    uid: str = "",
    generation: int = 1,
    status: ObjectStatus | None = None,
) -> ObservedObject:
    """One object; without a uid it has one of its own name."""
    whole = an_object(names.API_VERSION, KINDS[resource], name, spec)
    known = status or MODELS[resource]()
    return ObservedObject(
        resource, name, uid or f"uid-{name}", generation, orjson.dumps(whole), known
    )


def policy(name: str, spec: dict[str, Any] = POOL, **more: Any) -> ObservedObject:
    return seen(names.PLACEMENT_POLICIES, name, spec, **more)


def capacity_class(name: str, spec: dict[str, Any] = SPOT, **more: Any) -> ObservedObject:
    return seen(names.CAPACITY_CLASSES, name, spec, **more)


def exception(name: str, until: str, **more: Any) -> ObservedObject:
    """An exception from all policies, until then."""
    match = {"namespaces": ["lab"]}
    spec = {"policies": ["*"], "match": match, "until": until, "reason": "To look into it."}
    return seen(names.PLACEMENT_EXCEPTIONS, name, spec, **more)


def by_place(*objects: ObservedObject) -> dict[str, ObservedObject]:
    """The objects as a cluster holds them."""
    return {each.place: each for each in objects}
