"""Policies from plain documents, and decisions on plain pods, for tests."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import jsonpatch

from tests.laws.strategies import CLASSES, NOW
from webhook import names
from webhook.decision.arrival import Arrival, Cluster, history_of
from webhook.decision.decision import Decision
from webhook.decision.engine import decide
from webhook.placement import capacity
from webhook.placement.plugin_tolerations import AnnotatedLabels
from webhook.policy import compile as compiling
from webhook.policy.model import CapacityClass, PlacementException, PlacementPolicy
from webhook.policy.policy_documents import PolicyDocument
from webhook.policy.policy_set import PolicySet, content, hash_of

Json = dict[str, Any]
CLUSTER = Cluster(default_priority_class="cluster-default")


def policy_set(policies: Iterable[Json], classes: Iterable[Json] = CLASSES) -> PolicySet:
    """The compiled set of the documents, among which there may be exceptions."""
    given = list(policies)
    exceptions = [
        PlacementException.model_validate(e) for e in given if e["kind"] == names.EXCEPTION_KIND
    ]
    models = [PlacementPolicy.model_validate(p) for p in given if p["kind"] == names.POLICY_KIND]
    class_models = [CapacityClass.model_validate(c) for c in classes]
    compiled = {c.name: compiling.capacity_class(c) for c in class_models if c.spec.nodes}
    for model in class_models:
        if model.spec.complement_of:
            other = compiled[model.spec.complement_of]
            compiled[model.name] = compiling.with_grace(
                capacity.complement(model.name, other), model
            )
    documents: list[PolicyDocument] = [*models, *class_models, *exceptions]
    return PolicySet(models, compiled, hash_of(map(content, documents)), exceptions)


def decided(
    pod: Json,
    policies: PolicySet,
    cluster: Cluster = CLUSTER,
    *,
    kueue: bool = False,
    user: str = "somebody",
    space: Mapping[str, str] | None = None,
) -> Decision:
    """The decision for the pod of a user in namespace ml-team, at NOW.

    kueue: its flavors go before overrides. space: more labels of the namespace.
    """
    kept = {names.KUEUE: names.KUEUE_KEEP} if kueue else {}
    more = space if isinstance(space, AnnotatedLabels) else AnnotatedLabels(space or {})
    labels = more.added_to({"tier": "batch"} | kept)
    now = datetime.fromisoformat(NOW)
    history = history_of(pod)
    return decide(Arrival(pod, "ml-team", labels, user, now, history=history), policies, cluster)


def patched(pod: Json, decision: Decision) -> Json:
    """The pod with the patch applied, by an independent implementation of RFC 6902."""
    result: Json = jsonpatch.apply_patch(copy.deepcopy(pod), copy.deepcopy(list(decision.patch)))
    return result
