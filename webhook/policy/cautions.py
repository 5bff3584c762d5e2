"""Warnings about likely mistakes in one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.placement.pod_requests import DEVICES, is_extended
from webhook.pod_schema import text_rules
from webhook.policy.conditions import FIELDS
from webhook.policy.findings import Caution, Kind
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods, unmatchable
from webhook.policy.model import (
    CapacityClass,
    NamespacedPlacementPolicy,
    PlacementException,
    PlacementPolicy,
)
from webhook.policy.subject import ADDED_VOLUME
from webhook.strict import Strict, guess, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.placement.schema.placement import PlacementModel, PolicyPlacement
    from webhook.placement.schema.scheduling import Affinity, Toleration
    from webhook.placement.schema.selectors import LabelSelectorRequirement, NodeSelectorRequirement
    from webhook.policy.findings import Path
    from webhook.policy.model import PolicySpec
    from webhook.policy.policy_documents import PolicyDocument

# Node labels that identify a single node, by who sets them.
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


# The allowed values of our labels.
_WORDS: Final = {field.label: field.words for field in FIELDS if field.words}
_DROPPED: Final = ": fill it in, or remove it; the API server drops a key without a value"


def cautions(document: PolicyDocument) -> Iterator[Caution]:
    """Yield the document's warnings, each at its path from the document's root."""
    if isinstance(document, PlacementPolicy):
        for part, placement in document.spec.parts():
            yield from _placement(placement, ("spec", part))
            yield from _empty(placement, ("spec", part))
        spec = document.spec
        if spec.match is not None:
            yield from _block(spec.match, ("spec", "match"))
        for at, block in enumerate(spec.exclude):
            yield from _block(block, ("spec", "exclude", at))
        yield from _unmatched(spec)
        yield from _forgotten_claims(spec)
    elif isinstance(document, NamespacedPlacementPolicy):
        yield from _placement(document.spec.defaults, ("spec", "defaults"))
        yield from _empty(document.spec.defaults, ("spec", "defaults"))
        if document.spec.match is not None:
            yield from _block(document.spec.match, ("spec", "match"))
        yield from _unmatched(document.policy.spec)
    elif isinstance(document, CapacityClass):
        yield from _capacity_class(document)
    elif isinstance(document, PlacementException):
        yield from _exception(document)


def _block(match: Match, at: Path) -> Iterator[Caution]:
    yield from _empty_selectors(match, at)
    yield from _unread_labels(match, at)
    yield from _token_volumes(match, at)


def _empty(placement: PlacementModel, at: Path) -> Iterator[Caution]:
    """Fields that are written and set nothing. kubectl drops a key without a value."""
    written = _written_fields(placement)
    empty = [name for name, value in written if _is_empty(value) and name not in _MEANT_EMPTY]
    for name in empty:
        what = f"{name} is empty and sets nothing{_DROPPED}"
        yield Caution((*at, name), what, Kind.EMPTY_SETTING)
    if placement.is_empty and not empty:
        yield Caution(at, f"{at[-1]} is empty and sets nothing{_DROPPED}", Kind.EMPTY_SETTING)


# Without an entry it allows nothing.
_MEANT_EMPTY: Final = frozenset({"allowedTolerations"})


def _is_empty(value: object) -> bool:
    if isinstance(value, Strict):
        return all(_is_empty(part) for _, part in _written_fields(value))
    return value in ([], {})


def _empty_selectors(match: Match, at: Path) -> Iterator[Caution]:
    if not match.model_fields_set:
        what = f"match is empty and takes in the pods of every run{_DROPPED}"
        yield Caution(at, what, Kind.EMPTY_SETTING)
    for name, selector in _written_fields(match):
        for field, value in _written_fields(selector) if isinstance(selector, Strict) else ():
            if not value:
                yield Caution(
                    (*at, name, field),
                    f"{field} is empty and leaves nothing out{_DROPPED}",
                    Kind.EMPTY_SETTING,
                )


def _unread_labels(match: Match, at: Path) -> Iterator[Caution]:
    """Unknown values of our labels: a pod with such a value counts as having none."""
    selector = match.pod_selector
    written: list[tuple[Path, str, str]] = [
        (("matchLabels", key), key, value)
        for key, value in ((selector and selector.match_labels) or {}).items()
    ]
    for position, expression in enumerate((selector and selector.match_expressions) or ()):
        written += [
            (("matchExpressions", position, "values", index), expression.key, value)
            for index, value in enumerate(expression.values or ())
        ]
    for path, key, value in written:
        words = _WORDS.get(key)
        if words and value.lower() not in words:
            what = f"{key} {quoted(value)} is not one of {', '.join(words)}"
            yield Caution((*at, "podSelector", *path), what + guess(value.lower(), words))


def _token_volumes(match: Match, at: Path) -> Iterator[Caution]:
    for index, volume in enumerate(match.volumes or ()):
        if volume == ADDED_VOLUME:
            yield Caution(
                (*at, "volumes", index),
                f"{volume} matches nearly every pod: the API server adds such a volume with the "
                "token of the service account, unless automountServiceAccountToken is false",
            )


def _written_fields(model: Strict) -> Iterator[tuple[str, object]]:
    """Yield the fields that a document writes, by their names in it."""
    for name, field in type(model).model_fields.items():
        if name in model.model_fields_set:
            yield field.serialization_alias or name, getattr(model, name)


def _placement(placement: PolicyPlacement, at: Path) -> Iterator[Caution]:
    for key in placement.node_selector or ():
        yield from _single_node(key, (*at, "nodeSelector", key))
    for index, entry in enumerate(placement.node_selector_from or ()):
        yield from _single_node(entry.key, (*at, "nodeSelectorFrom", index, "key"))
    for index, toleration in enumerate(placement.tolerations or ()):
        yield from _toleration(toleration, (*at, "tolerations", index))
    for key in placement.annotations or ():
        if container := text_rules.confined_container(key):
            what = f"the API server refuses pods without a container {quoted(container)}"
            yield Caution((*at, "annotations", key), what)
    if placement.affinity is not None:
        yield from _affinity(placement.affinity, (*at, "affinity"))


def _toleration(toleration: Toleration, at: Path) -> Iterator[Caution]:
    if toleration.key is None:
        effect = f"{toleration.effect} " if toleration.effect else ""
        yield Caution(
            at,
            f"tolerates every {effect}taint, so these pods may run on all nodes; give a key "
            "to tolerate one taint",
        )


def _affinity(affinity: Affinity, at: Path) -> Iterator[Caution]:
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
                yield Caution(
                    (*terms, index, "matchFields", position),
                    f"{expression.key} identifies a single node, so this may exclude all others",
                )


def _expressions(
    expressions: Sequence[NodeSelectorRequirement | LabelSelectorRequirement] | None, at: Path
) -> Iterator[Caution]:
    for index, expression in enumerate(expressions or ()):
        if expression.operator == "In":
            yield from _single_node(expression.key, (*at, index, "key"))


def _capacity_class(document: CapacityClass) -> Iterator[Caution]:
    for index, shape in enumerate(document.spec.nodes or ()):
        at = ("spec", "nodes", index)
        for key in shape.labels or ():
            yield from _single_node(key, (*at, "labels", key))
        yield from _expressions(shape.match_expressions, (*at, "matchExpressions"))


def _exception(document: PlacementException) -> Iterator[Caution]:
    match = document.spec.match
    yield from _block(match, ("spec", "match"))
    if mismatch := unmatchable(match):
        yield _matches_nothing(mismatch.at, f"the exception matches no pod: {mismatch.why}")
    everywhere = any(set(glob) == {"*"} for glob in match.namespaces or ())
    if everywhere and match.model_copy(update={"namespaces": None}).is_empty:
        yield Caution(("spec", "match"), "matches the pods of every run, wherever they are")
    elif match.namespace_selector is None and (everywhere or not match.namespaces):
        yield Caution(
            ("spec", "match"),
            "matches by fields that the author of any pod can set, in every namespace; add "
            "namespaces or a namespaceSelector to restrict it",
        )


def _single_node(key: str, at: Path) -> Iterator[Caution]:
    if key in SINGLE_NODE_LABELS:
        yield Caution(
            at,
            f"{key} has another value on each node, and so may eliminate all nodes but one",
        )


def _unmatched(spec: PolicySpec) -> Iterator[Caution]:
    """Yield the policy matches no pod, is enforced for none, or a block of it excludes none."""
    match = spec.match or Match()
    mismatch = unmatchable(match, spec.exclude)
    if mismatch:
        yield _matches_nothing(mismatch.at, f"the policy matches no pod: {mismatch.why}")
        return
    for at, block in enumerate(spec.exclude):
        if unmet := MatchedPods(block).unmet():
            field, why = unmet
            yield _matches_nothing(("exclude", at, field), f"the block excludes no pod: {why}")
    if spec.rollout:
        rollout = MatchedPods(Match(namespaces=spec.rollout.namespaces))
        if rollout.is_disjoint(MatchedPods(match)):
            what = "the policy is enforced for no pod: it matches in other namespaces only"
            yield _matches_nothing(("rollout", "namespaces"), what)


def _forgotten_claims(spec: PolicySpec) -> Iterator[Caution]:
    """Yield each exclusion by a device's resource that leaves pods in which claim such devices."""
    limits_nodes = any(
        part.capacity or part.split or part.node_selector or part.affinity
        for _, part in spec.parts()
    )
    if not limits_nodes or (spec.match and spec.match.resource_claims is not None):
        return
    if any(block.resource_claims for block in spec.exclude):
        return
    for at, block in enumerate(spec.exclude):
        asked = [
            *(("resources", name) for name in block.resources or ()),
            *(("requests", wanted.resource) for wanted in block.requests or ()),
        ]
        if device := next(((field, name) for field, name in asked if is_extended(name)), None):
            field, name = device
            yield Caution(
                ("spec", "exclude", at, field),
                f"pods may ask for such devices as {name} by resourceClaims, or as "
                f"{DEVICES}NAME of a DeviceClass, and are not excluded: add {{resourceClaims: "
                f'true}} and {{resources: ["{DEVICES}*"]}} to exclude; if pods with claims are '
                "meant, give match.resourceClaims",
            )


def _matches_nothing(at: Path, message: str) -> Caution:
    return Caution(("spec", *at), message, Kind.MATCHES_NOTHING)
