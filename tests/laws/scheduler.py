"""An independent model of the scheduler's node rules: labels, fields and taints.

Written from the documentation of v1.NodeSelector and v1.Toleration, and shares no code with the
engine on purpose. tests/agreement/test_model.py holds it against the real kube-scheduler.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

Node = dict[str, Any]
Pod = dict[str, Any]


def _number(text: str) -> int | None:
    sign = text[:1] in ("+", "-")
    digits = text[1:] if sign else text
    if not digits or not all(c in "0123456789" for c in digits):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def expression_holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    """One matchExpressions entry against a node's labels."""
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or []
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    if operator in ("Gt", "Lt") and present:
        have, want = _number(labels[key]), _number(values[0])
        if have is None or want is None:
            return False
        return have > want if operator == "Gt" else have < want
    return False


def term_holds(term: dict[str, Any], node: Node) -> bool:
    """One node selector term; a term without requirements matches nothing."""
    expressions = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    if not expressions and not fields:
        return False
    named = {"metadata.name": node["metadata"]["name"]}
    labels = node["metadata"].get("labels") or {}
    return all(expression_holds(e, labels) for e in expressions) and all(
        expression_holds(f, named) for f in fields
    )


def selector_holds(pod: Pod, node: Node, *, without: frozenset[str] = frozenset()) -> bool:
    """The pod's nodeSelector, but for some keys."""
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    return all(labels.get(k) == v for k, v in selector.items() if k not in without)


def affinity_holds(pod: Pod, node: Node) -> bool:
    """The pod's required node affinity."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(term_holds(term, node) for term in required["nodeSelectorTerms"])


def labels_admit(pod: Pod, node: Node, *, without: frozenset[str] = frozenset()) -> bool:
    """Whether the node's labels admit the pod."""
    return selector_holds(pod, node, without=without) and affinity_holds(pod, node)


def topologies_admit(pod: Pod, node: Node) -> bool:
    """Whether the node is in some domain of each topology by which the pod must be placed."""
    spread = pod["spec"].get("topologySpreadConstraints") or []
    asked = [each for each in spread if each["whenUnsatisfiable"] == "DoNotSchedule"]
    affinity = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    asked += affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []
    return {each["topologyKey"] for each in asked} <= {*(node["metadata"].get("labels") or {})}


def tolerated(pod: Pod, taint: dict[str, str]) -> bool:
    """Whether some toleration of the pod admits it past the taint."""
    for toleration in pod["spec"].get("tolerations") or []:
        effect = toleration.get("effect")
        if effect and effect != taint["effect"]:
            continue
        if toleration.get("key"):
            if toleration["key"] != taint["key"]:
                continue
        elif toleration.get("operator") != "Exists":
            continue
        operator = toleration.get("operator") or "Equal"
        if operator == "Exists":
            return True
        if operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def taints_admit(pod: Pod, node: Node) -> bool:
    """Whether the pod tolerates every taint of the node that keeps pods off."""
    taints = (node.get("spec") or {}).get("taints") or []
    return all(
        tolerated(pod, taint) for taint in taints if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def admits(pod: Pod, node: Node) -> bool:
    """Whether the scheduler may put the pod onto the node, as far as labels and taints go."""
    return labels_admit(pod, node) and topologies_admit(pod, node) and taints_admit(pod, node)


def every_node(keys: dict[str, list[str]], names: list[str]) -> Iterator[Node]:
    """Every node there can be whose labels have, or lack, these keys with these values."""
    choices = [[None, *values] for values in keys.values()]
    for values in itertools.product(*choices):
        labels = {k: v for k, v in zip(keys, values, strict=True) if v is not None}
        for name in names:
            yield {"metadata": {"name": name, "labels": labels}, "spec": {}}
