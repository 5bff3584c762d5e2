"""The tolerations that others than its author add to a pod: a row for each plugin and controller.

Source: k8s.io/kubernetes v1.36, plugin/pkg/admission; package controller/daemon/util
(AddOrUpdateDaemonPodTolerations); kubernetes-sigs/kueue, pkg/podset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.errors import UnreadableText
from webhook.foreign_text import parse_array
from webhook.placement.pod_requests import extended_requests, is_best_effort
from webhook.placement.shapes import as_object, objects_in
from webhook.placement.tolerations import NO_EXECUTE, covers, normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.shapes import JsonObject, Toleration

EXTENDED: Final = "ExtendedResourceToleration"
RESTRICTION: Final = "PodTolerationRestriction"
# Those that an API server runs only if its admin enables them. The others always run.
OPTIONAL: Final = (EXTENDED, RESTRICTION)
_DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
_FIELDS: Final = ("key", "operator", "value", "effect")


class AnnotatedLabels(dict[str, str]):
    """A namespace's labels, and the text of its annotation with tolerations for its pods."""

    default_tolerations: str = ""

    @classmethod
    def of(cls, labels: Mapping[str, str], annotations: object) -> AnnotatedLabels:
        """Return the labels with what counts of the annotations."""
        annotated_labels = cls(labels)
        text = annotations.get(_DEFAULTS) if isinstance(annotations, dict) else None
        if isinstance(text, str):
            annotated_labels.default_tolerations = text
        return annotated_labels

    @classmethod
    def giving(cls, labels: Mapping[str, str], tolerations: object) -> AnnotatedLabels:
        """Return the labels with an annotation that gives these tolerations."""
        return cls.of(labels, {_DEFAULTS: json.dumps(tolerations)})

    def added_to(self, old_labels: Mapping[str, str]) -> AnnotatedLabels:
        """Return what a namespace that is `old_labels` has after `kubectl apply` of this one."""
        annotated_labels = AnnotatedLabels({**old_labels, **self})
        annotated_labels.default_tolerations = self.default_tolerations or default_tolerations_of(
            old_labels
        )
        return annotated_labels

    def __eq__(self, other: object) -> bool:
        """Compare both parts: caches replace what differs."""
        return dict.__eq__(self, other) is True and (
            default_tolerations_of(other) == self.default_tolerations
        )

    def __ne__(self, other: object) -> bool:
        """Return the opposite of `==`; a dict has one of its own."""
        return not self == other

    __hash__ = None  # as of every dict


def default_tolerations_of(labels: object) -> str:
    """Return the text of the annotation, where it is known."""
    return labels.default_tolerations if isinstance(labels, AnnotatedLabels) else ""


class Facts(NamedTuple):
    """What the rows depend on.

    spec:            the v1.PodSpec
    seconds:         of DefaultTolerationSeconds, by taint
    runtime_class:   the pod's v1 RuntimeClass; None if it has none, or if that is not known
    namespace:       the namespace's annotation, as AnnotatedLabels have it
    daemon_set:      a DaemonSet's controller made the pod
    flavors:         Kueue's ResourceFlavors, if one of them is in the pod
    """

    spec: Mapping[str, Any] = MappingProxyType({})
    seconds: Mapping[str, int] = MappingProxyType({})
    runtime_class: JsonObject | None = None
    namespace: str = ""
    daemon_set: bool = False
    flavors: Sequence[JsonObject] = ()


NO_FACTS: Final = Facts()


class Added(NamedTuple):
    """A toleration, who adds it, and if the author could get any by asking so, the cure."""

    toleration: Toleration
    by: str
    cure: str = ""


_Row: TypeAlias = Callable[[Facts], Iterator[Added]]


def _default_seconds(facts: Facts) -> Iterator[Added]:
    for key, seconds in facts.seconds.items():
        toleration: Toleration = {"key": key, "operator": "Exists", "effect": NO_EXECUTE}
        yield Added({**toleration, "tolerationSeconds": seconds}, "DefaultTolerationSeconds")


def _extended_resources(facts: Facts) -> Iterator[Added]:
    """One for each extended resource that is requested, even by zero."""
    for resource, amount in sorted(extended_requests(facts.spec).items()):
        cure = f"remove the request of 0 {resource}, for which the API server may add it"
        yield Added(
            {"key": resource, "operator": "Exists", "effect": "NoSchedule"},
            EXTENDED,
            "" if amount else cure,
        )


def _restriction(facts: Facts) -> Iterator[Added]:
    """Those of the namespace, and one for pods that are not BestEffort."""
    for toleration in namespace_tolerations(facts.namespace):
        yield Added(toleration, RESTRICTION)
    if not is_best_effort(facts.spec):
        pressure = "node.kubernetes.io/memory-pressure"
        yield Added({"key": pressure, "operator": "Exists", "effect": "NoSchedule"}, RESTRICTION)


def _runtime_class(facts: Facts) -> Iterator[Added]:
    scheduling = as_object(as_object(facts.runtime_class).get("scheduling"))
    for toleration in _readable(objects_in(scheduling.get("tolerations"))):
        yield Added(toleration, "RuntimeClass")


def _daemon_set(facts: Facts) -> Iterator[Added]:
    for toleration in daemon_set_tolerations(facts.spec) if facts.daemon_set else ():
        yield Added(toleration, "DaemonSet")


def _flavor(facts: Facts) -> Iterator[Added]:
    """Those of each flavor whose labels the pod selects: which one it was is not in the pod."""
    selector = as_object(facts.spec.get("nodeSelector"))
    for flavor in facts.flavors:
        spec = as_object(flavor.get("spec"))
        labels = as_object(spec.get("nodeLabels"))
        if labels and labels.items() <= selector.items():
            for toleration in _readable(objects_in(spec.get("tolerations"))):
                yield Added(toleration, "Kueue")


_ROWS: Final[Mapping[str, _Row]] = {
    "DefaultTolerationSeconds": _default_seconds,
    RESTRICTION: _restriction,
    EXTENDED: _extended_resources,
    "RuntimeClass": _runtime_class,
    "DaemonSet": _daemon_set,
    "Kueue": _flavor,
}


def added(facts: Facts, by: Iterable[str] = tuple(_ROWS)) -> list[Added]:
    """Return what these plugins and controllers, or all, may add to the pod."""
    return [addition for name in by for addition in _ROWS[name](facts)]


def is_own(toleration: Toleration, additions: Iterable[Added]) -> bool:
    """Return whether the toleration is its author's: nobody else adds it."""
    return all(normal(toleration) != normal(addition.toleration) for addition in additions)


def is_given(toleration: Toleration, additions: Iterable[Added]) -> bool:
    """Return whether it is about no other taints, and for no other time, than one that is added.

    What the author could get by asking is not given.
    """
    seconds = normal(toleration).seconds
    return any(
        not addition.cure
        and covers(addition.toleration, toleration)
        and normal(addition.toleration).seconds in (None, seconds)
        for addition in additions
    )


def cure_of(tolerations: Iterable[Toleration], additions: Iterable[Added]) -> str:
    """Return how to lose tolerations that others add; else no text."""
    every = [normal(toleration) for toleration in tolerations]
    return ", ".join(e.cure for e in additions if e.cure and normal(e.toleration) in every)


def daemon_set_tolerations(spec: Mapping[str, Any]) -> list[Toleration]:
    """Return what the DaemonSet controller adds to a pod with this v1.PodSpec."""
    host = [("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") is True else []
    return [
        {"key": f"node.kubernetes.io/{condition}", "operator": "Exists", "effect": effect}
        for condition, effect in (*_OF_DAEMON_SETS, *host)
    ]


_OF_DAEMON_SETS: Final = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def namespace_tolerations(text: str) -> list[Toleration]:
    """Return the tolerations in the namespace's annotation; without what cannot be read."""
    try:
        return _readable(objects_in(parse_array(text))) if text else []
    except UnreadableText:
        return []  # the plugin then refuses the pod


def _readable(tolerations: Iterable[JsonObject]) -> list[Toleration]:
    return [
        toleration  # type: ignore[misc]
        for toleration in tolerations
        if all(isinstance(toleration.get(name) or "", str) for name in _FIELDS)
        and (
            toleration.get("tolerationSeconds") is None
            or type(toleration["tolerationSeconds"]) is int
        )
    ]
