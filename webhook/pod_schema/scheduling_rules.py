"""Rules of the API server for scheduling fields and labels of a pod.

Source: pkg/apis/core/validation of Kubernetes 1.36, among it ValidateTolerations,
validateNodeSelectorTerm, validateTopologySpreadConstraints and ValidatePodSpec. Values of a wrong
type are skipped: webhook.pod_schema.field_checks reports them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.placement.fields import BY_NAME
from webhook.placement.pod import REQUIRED
from webhook.placement.schema.syntax import label_value_fault, qualified_name_fault
from webhook.pod_schema.field_checks import Fault, mappings
from webhook.pod_schema.object_rules import operator_fault
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.pod_schema.field_checks import Path

_LONGEST_DEADLINE: Final = 2**31 - 1
_SYSTEMS: Final = ("linux", "windows")


def faults(spec: Mapping[str, Any], *, images: bool = True) -> Iterator[Fault]:
    """Yield the faults of a pod's spec, paths relative to it. `images`: containers need one."""
    yield from labels(spec.get("nodeSelector"), ("nodeSelector",))
    for path, toleration in mappings(spec.get("tolerations"), ("tolerations",)):
        yield from _toleration(toleration, path)
    affinity = spec.get("affinity")
    node = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    required = node.get(REQUIRED) if isinstance(node, dict) else None
    if isinstance(required, dict):
        yield from _terms(required, ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"))
    for path, constraint in mappings(
        spec.get("topologySpreadConstraints"), ("topologySpreadConstraints",)
    ):
        yield from _spread(constraint, path)
    if images:
        yield from _images(spec)
    yield from _whole_pod(spec)


def labels(given: Any, path: Path) -> Iterator[Fault]:
    """Yield the faults in keys and values of labels, or of a nodeSelector."""
    for key, value in given.items() if isinstance(given, dict) else ():
        if why := qualified_name_fault(str(key)):
            yield Fault(
                (*path, key), f"{quoted(str(key))} is not a label's key: {why}", at_key=True
            )
        if isinstance(value, str) and (why := label_value_fault(value)):
            yield Fault((*path, key), f"{quoted(value)} is not a label's value: {why}")


def _toleration(toleration: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if isinstance(key, str) and key and (why := qualified_name_fault(key)):
        yield Fault((*path, "key"), f"{quoted(key)} is not a taint's key: {why}")
    if not key and operator != "Exists":
        yield Fault((*path, "operator"), "without a key it must be Exists")
    if operator == "Exists" and toleration.get("value"):
        yield Fault((*path, "value"), "requires operator Equal; remove it, or the operator Exists")
    value = toleration.get("value")
    if operator == "Equal" and isinstance(value, str) and (why := label_value_fault(value)):
        yield Fault((*path, "value"), f"{quoted(value)} is not a taint's value: {why}")
    seconds, effect = toleration.get("tolerationSeconds"), toleration.get("effect")
    if seconds is not None and effect != "NoExecute":
        yield Fault((*path, "tolerationSeconds"), "requires effect NoExecute: add it")


def _terms(required: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    if required.get("nodeSelectorTerms") in (None, []):
        yield Fault(path, "is empty: want one term or more")
    for at, term in mappings(required.get("nodeSelectorTerms"), path):
        for field in ("matchExpressions", "matchFields"):
            for here, expression in mappings(term.get(field), (*at, field)):
                yield from _expression(expression, here)


def _expression(expression: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    operator, values = expression.get("operator"), expression.get("values") or []
    count = len(values) if isinstance(values, list) else 1
    if why := operator_fault(operator, count):
        yield Fault((*path, "values"), why)
    elif operator in ("Gt", "Lt") and count != 1:
        yield Fault((*path, "values"), f"{operator} needs exactly one value, not {count}")


def _spread(constraint: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    skew = constraint.get("maxSkew")
    if isinstance(skew, int) and skew < 1:
        yield Fault((*path, "maxSkew"), f"{skew} is too small: want 1 or more")
    if constraint.get("topologyKey") == "":
        yield Fault((*path, "topologyKey"), "is empty: want the key of a label of nodes")


def _images(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for field in ("initContainers", "containers"):
        for path, container in mappings(spec.get(field), (field,)):
            if not container.get("image"):
                yield Fault((*path, "image"), "is required")


def _whole_pod(spec: Mapping[str, Any]) -> Iterator[Fault]:
    if spec.get("containers") == []:
        yield Fault(("containers",), "is empty: want one container or more")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= _LONGEST_DEADLINE:
        yield Fault(("activeDeadlineSeconds",), f"{deadline} is not 1 to {_LONGEST_DEADLINE}")
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        text = (
            f"{grace} is negative, and Kubernetes uses 1; write the number of seconds that you want"
        )
        yield Fault(("terminationGracePeriodSeconds",), text, "warning")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield Fault(
            ("nodeName",), "cannot be set together with schedulingGates; remove one of the two"
        )
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        text = "cannot be set together with hostPID; remove one of the two"
        yield Fault(("shareProcessNamespace",), text)
    system = (spec.get("os") or {}).get("name") if isinstance(spec.get("os"), dict) else None
    context = spec.get("securityContext")
    for key, value in context.items() if isinstance(context, dict) else ():
        other = BY_NAME["securityContext"].system_of(str(key))
        if value is not None and system in _SYSTEMS and other not in ("", system):
            yield Fault(("securityContext", key), f"is for {other}, and os.name is {system}")
