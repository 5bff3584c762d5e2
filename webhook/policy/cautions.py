"""What a document may say, yet seldom means: warnings that concern one document alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.placement.schema.base import Problem
from webhook.policy.exception_model import PlacementException
from webhook.policy.model import CapacityClass, PlacementPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.placement.schema import (
        Affinity,
        LabelSelectorRequirement,
        NodeSelectorRequirement,
        PlacementModel,
        Toleration,
    )
    from webhook.policy.findings import Path
    from webhook.policy.model import PolicyDocument

# Node labels that tell one node from all others, by who sets them.
SINGLE_NODE_LABELS: Final = frozenset(
    {
        names.HOSTNAME_LABEL,  # the kubelet
        "node.kubernetes.io/instance-id",
        "alpha.eksctl.io/instance-id",  # eksctl
        "ibm-cloud.kubernetes.io/worker-id",  # IBM Cloud
        "ibm-cloud.kubernetes.io/internal-ip",
        "openebs.io/nodename",  # OpenEBS
        "topology.topolvm.io/node",  # TopoLVM
        "topology.hostpath.csi/node",  # the hostpath CSI driver
    }
)


def cautions(document: PolicyDocument) -> Iterator[Problem]:
    """The document's warnings, each at its path from the document's root."""
    if isinstance(document, PlacementPolicy):
        for part, placement in document.spec.parts():
            yield from _placement(placement, ("spec", part))
    elif isinstance(document, CapacityClass):
        yield from _capacity_class(document)
    elif isinstance(document, PlacementException):
        yield from _exception(document)


def _placement(placement: PlacementModel, at: Path) -> Iterator[Problem]:
    for key in placement.node_selector or ():
        yield from _single_node(key, (*at, "nodeSelector", key))
    for index, toleration in enumerate(placement.tolerations or ()):
        yield from _toleration(toleration, (*at, "tolerations", index))
    if placement.affinity is not None:
        yield from _affinity(placement.affinity, (*at, "affinity"))


def _toleration(toleration: Toleration, at: Path) -> Iterator[Problem]:
    if toleration.key is None:
        effect = f"{toleration.effect} " if toleration.effect else ""
        yield Problem(
            at,
            f"tolerates every {effect}taint, and so may open all nodes to these pods; "
            "give a key if you mean one taint",
        )


def _affinity(affinity: Affinity, at: Path) -> Iterator[Problem]:
    node = affinity.node_affinity
    required = node.required_during_scheduling_ignored_during_execution if node else None
    if required is None:
        return
    terms = (
        *at,
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    )
    for index, term in enumerate(required.node_selector_terms):
        yield from _expressions(term.match_expressions, (*terms, index, "matchExpressions"))
        for position, expression in enumerate(term.match_fields or ()):
            if expression.operator == "In":
                yield Problem(
                    (*terms, index, "matchFields", position),
                    f"{expression.key} is one node's alone, and so may eliminate all others",
                )


def _expressions(
    expressions: Sequence[NodeSelectorRequirement | LabelSelectorRequirement] | None, at: Path
) -> Iterator[Problem]:
    for index, expression in enumerate(expressions or ()):
        if expression.operator == "In":
            yield from _single_node(expression.key, (*at, index, "key"))


def _capacity_class(document: CapacityClass) -> Iterator[Problem]:
    for index, shape in enumerate(document.spec.nodes or ()):
        at = ("spec", "nodes", index)
        for key in shape.labels or ():
            yield from _single_node(key, (*at, "labels", key))
        yield from _expressions(shape.match_expressions, (*at, "matchExpressions"))


def _exception(document: PlacementException) -> Iterator[Problem]:
    match = document.spec.match
    everywhere = any(set(glob) == {"*"} for glob in match.namespaces or ())
    if everywhere and match.model_copy(update={"namespaces": None}).is_empty:
        yield Problem(("spec", "match"), "matches the pods of every run, wherever they are")
    elif match.namespace_selector is None and (everywhere or not match.namespaces):
        yield Problem(
            ("spec", "match"),
            "matches by what the author of any pod may write, in every namespace; name namespaces, "
            "or give a namespaceSelector, to say who may",
        )


def _single_node(key: str, at: Path) -> Iterator[Problem]:
    if key in SINGLE_NODE_LABELS:
        yield Problem(
            at,
            f"{key} has another value on each node, and so may eliminate all nodes but one",
        )
