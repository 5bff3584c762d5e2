"""The placement fields of a pod, parsed and typed, and the limits of their size.

Only fields that placement reads or writes are parsed; the rest of the pod is not changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from webhook.errors import InvalidPod
from webhook.placement.fields import OF_PODS, Shape
from webhook.placement.node_affinity import MAX_REQUIREMENTS, MAX_TERMS, MAX_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.placement.fields import Field
    from webhook.placement.shapes import Json, JsonObject, Term, Toleration


_Reader: TypeAlias = "Callable[[JsonObject, str, str], Json]"

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# The lists of affinity other than required node affinity, as (kind, list), by their short names.
AFFINITY_LISTS = {
    "affinity.nodeAffinity.preferred": ("nodeAffinity", PREFERRED),
    "affinity.podAffinity.required": ("podAffinity", REQUIRED),
    "affinity.podAffinity.preferred": ("podAffinity", PREFERRED),
    "affinity.podAntiAffinity.required": ("podAntiAffinity", REQUIRED),
    "affinity.podAntiAffinity.preferred": ("podAntiAffinity", PREFERRED),
}
# Those that the scheduler must enforce, all about other pods.
REQUIRED_LISTS = frozenset(
    name for name, (_, list_name) in AFFINITY_LISTS.items() if list_name == REQUIRED
)
PREFERRED_NODES = "affinity.nodeAffinity.preferred"
REQUIRED_NODES: Final = "affinity.nodeAffinity.required"
# The maximum of each, before and after placement: a placed pod may be sent again.
# docs/benchmarks.md has what they cost, docs/security/network.md the largest sensible pod.
# Required node affinity is bounded as node_affinity bounds what it computes.
MAX_ENTRIES: Final = 1024
# Terms, requirements of a term and values of a requirement that are together below every limit.
_ENTRIES_UNCHECKED: Final = 16

_TERMS: Final = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


class PodPlacement(NamedTuple):
    """The fields of a pod that decide where and how it runs.

    First the attributes that rows of `placement.fields` name. `required` is None if the pod has no
    required node affinity. `lists` holds the non-empty lists of AFFINITY_LISTS.
    Do not change values in place: they are shared with the pod that was read. (A named
    tuple, since `_replace`, which every decision calls three times, costs a tenth of a
    dataclass's.)
    """

    labels: dict[str, str]
    annotations: dict[str, str]
    node_selector: dict[str, str]
    tolerations: list[Toleration]
    topology_spread: list[JsonObject]
    security_context: JsonObject
    node_name: str
    priority_class_name: str
    scheduler_name: str
    runtime_class_name: str
    termination_grace_period_seconds: int
    required: list[Term] | None
    lists: dict[str, list[JsonObject]]
    operating_system: str


def parse_pod(pod: JsonObject) -> PodPlacement:
    """Return the placement of a v1.Pod. Raises InvalidPod with the path of a field of the wrong
    type.
    """
    for name in ("metadata", "spec"):
        if not isinstance(pod.get(name), dict):
            raise InvalidPod(name, "an object", pod.get(name))
    metadata: JsonObject = pod["metadata"]
    spec: JsonObject = pod["spec"]
    affinity = _object(spec, "affinity", "spec.affinity")
    required: list[Term] | None = None
    lists: dict[str, list[JsonObject]] = {}
    if affinity:
        required = _required(affinity)
        lists = _affinity_lists(affinity)
    system = _string(_object(spec, "os", "spec.os"), "name", "spec.os.name")
    values = [
        read_field(spec if of_spec else metadata, name, path)
        for read_field, of_spec, name, path in _READERS
    ]
    return PodPlacement._make((*values, required, lists, system))


def scheduling_gates(pod: JsonObject) -> frozenset[str]:
    """Return the names of a v1.Pod's scheduling gates. Raises InvalidPod as `read` does."""
    gates = _objects(pod["spec"], "schedulingGates", "spec.schedulingGates")
    return frozenset(
        _string(gate, "name", f"spec.schedulingGates[{at}].name") for at, gate in enumerate(gates)
    )


def _object(holder: JsonObject, key: str, path: str) -> JsonObject:
    value = holder.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidPod(path, "an object", value)
    return value


def _objects(holder: JsonObject, key: str, path: str) -> list[JsonObject]:
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidPod(path, "a list", value)
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise InvalidPod(f"{path}[{index}]", "an object", item)
    return value


def _strings(holder: JsonObject, key: str, path: str) -> dict[str, str]:
    value = _object(holder, key, path)
    for name, text in value.items():
        if text.__class__ is not str:
            raise InvalidPod(f"{path}[{name}]", "a string", text)
    return value


def _string(holder: JsonObject, key: str, path: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidPod(path, "a string", value)
    return value


def _integer(unset: int) -> _Reader:
    def read_integer(holder: JsonObject, key: str, path: str) -> int:
        value = holder.get(key)
        if value is None:
            return unset
        if value.__class__ is not int:
            raise InvalidPod(path, "an integer", value)
        return value

    return read_integer


_TOLERATION_STRINGS = ("key", "operator", "value", "effect")


def _tolerations(spec: JsonObject, key: str, path: str) -> list[JsonObject]:
    result = _objects(spec, key, path)
    for index, toleration in enumerate(result):
        for member in _TOLERATION_STRINGS:
            if toleration.get(member, "").__class__ is not str and toleration[member] is not None:
                raise InvalidPod(f"{path}[{index}].{member}", "a string", toleration[member])
        seconds = toleration.get("tolerationSeconds")
        if seconds is not None and seconds.__class__ is not int:
            raise InvalidPod(f"{path}[{index}].tolerationSeconds", "an integer", seconds)
    return result


def _reader_of(field: Field) -> _Reader:
    if field.shape is Shape.SCALAR:
        return _string if isinstance(field.unset, str) else _integer(field.unset)
    if field.shape is Shape.LIST:
        return _tolerations if field.name == "tolerations" else _objects
    return _object if field.name == "securityContext" else _strings


# Of each attribute that a row names: how it is read, whether of the spec, the name, and the path.
_READERS: Final = [
    (_reader_of(field), field.holder == "spec", field.name, f"{field.holder}.{field.name}")
    for attribute in PodPlacement._fields
    for field in OF_PODS
    if field.attribute == attribute
]


def _required(affinity: JsonObject) -> list[Term] | None:
    node_affinity = _object(affinity, "nodeAffinity", "spec.affinity.nodeAffinity")
    path = f"spec.affinity.nodeAffinity.{REQUIRED}"
    required = node_affinity.get(REQUIRED)
    if required is None:
        return None
    if not isinstance(required, dict):
        raise InvalidPod(path, "an object", required)
    path += ".nodeSelectorTerms"
    terms = _objects(required, "nodeSelectorTerms", path)
    for index, term in enumerate(terms):
        _check_term(term, f"{path}[{index}]")
    return cast("list[Term]", terms)


def _check_term(term: JsonObject, path: str) -> None:
    for part in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(_objects(term, part, f"{path}.{part}")):
            where = f"{path}.{part}[{index}]"
            _string(requirement, "key", f"{where}.key")
            _string(requirement, "operator", f"{where}.operator")
            values: Any = requirement.get("values")
            if values is None:
                continue
            if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
                raise InvalidPod(f"{where}.values", "a list of strings", values)


def _affinity_lists(affinity: JsonObject) -> dict[str, list[JsonObject]]:
    result = {}
    for name, (kind, key) in AFFINITY_LISTS.items():
        holder = _object(affinity, kind, f"spec.affinity.{kind}")
        if kind == "nodeAffinity" or holder:
            entries = _objects(holder, key, f"spec.affinity.{kind}.{key}")
            if entries:
                result[name] = entries
    return result


def excess(pod: PodPlacement) -> str:
    """Say which part of the placement is too large, with count and limit; "" if none is."""
    # Every pod is checked twice, and few are large.
    if _is_small(pod):
        return ""
    for path, what, count, most in _counted(pod):
        if count > most:
            return f"{path}: {count} {what}; at most {most} are allowed; use fewer"
    return ""


def _is_small(pod: PodPlacement) -> bool:
    """Return whether the pod is within all limits, by a fast check."""
    if pod.lists or pod.topology_spread or len(pod.tolerations) > MAX_ENTRIES:
        return False
    for term in pod.required or ():
        if "matchFields" in term or len(term.get("matchExpressions") or ()) > _ENTRIES_UNCHECKED:
            return False
        for requirement in term.get("matchExpressions") or ():
            if len(requirement.get("values") or ()) > _ENTRIES_UNCHECKED:
                return False
    return pod.required is None or len(pod.required) <= _ENTRIES_UNCHECKED


def _counted(pod: PodPlacement) -> Iterator[tuple[str, str, int, int]]:
    yield "spec.tolerations", "tolerations", len(pod.tolerations), MAX_ENTRIES
    spread = "spec.topologySpreadConstraints"
    yield spread, "constraints", len(pod.topology_spread), MAX_ENTRIES
    for name, entries in pod.lists.items():
        yield (
            f"spec.affinity.{'.'.join(AFFINITY_LISTS[name])}",
            "entries",
            len(entries),
            MAX_ENTRIES,
        )
    if not pod.required:
        return
    yield _TERMS, "terms", len(pod.required), MAX_TERMS
    parts = [
        requirement
        for term in pod.required
        for requirements in (term.get("matchExpressions"), term.get("matchFields"))
        for requirement in requirements or ()
    ]
    yield _TERMS, "requirements", len(parts), MAX_REQUIREMENTS
    values = sum(len(requirement.get("values") or ()) for requirement in parts)
    yield _TERMS, "values", values, MAX_VALUES
