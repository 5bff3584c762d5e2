"""The values that a conjunction of expressions allows for one node label.

The six operators are those of v1.NodeSelectorOperator, with the scheduler's reading (package
nodeaffinity and labels.Requirement): NotIn and DoesNotExist hold where the label is missing; Gt and
Lt need a label that parses as an int64.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.shapes import Requirement, Term

LIST_OPERATORS = ("In", "NotIn")
BARE_OPERATORS = ("Exists", "DoesNotExist")
NUMBER_OPERATORS = ("Gt", "Lt")
MAX_INT64 = 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)


def int64(text: str) -> int | None:
    """`text` as Go's strconv.ParseInt(text, 10, 64) reads it, or None."""
    # Texts longer than any int64 are rejected first: Python's own limit would raise.
    if len(text) > 64 or not _INTEGER.match(text):
        return None
    number = int(text)
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


def holds(requirement: Requirement, value: str | None) -> bool:
    """Return whether one expression matches a node whose label has `value`; None: no such label.

    An operator that Kubernetes does not know matches no node, as in the scheduler.
    """
    operator = requirement.get("operator")
    values = requirement.get("values") or []
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            number = None if value is None else int64(value)
            bound = int64(values[0]) if len(values) == 1 else None
            if number is None or bound is None:
                return False
            return number > bound if operator == "Gt" else number < bound
    return False


def expressions(selector: Mapping[str, Any]) -> Sequence[Any]:
    """Return a label selector as a list of expressions."""
    pairs = (selector.get("matchLabels") or {}).items()
    exact = [{"key": key, "operator": "In", "values": [value]} for key, value in pairs]
    return [*exact, *(selector.get("matchExpressions") or ())]


def selects(selected: Mapping[str, Any], selector: str, labels: Mapping[str, str]) -> bool:
    """Return True if this selector of an entry, or of a binding, matches such labels."""
    return all(
        holds(expression, labels.get(expression["key"]))
        for expression in expressions(selected.get(selector) or {})
    )


def takes(operator: object, count: int) -> bool:
    """Return whether the operator takes this number of values; False for an unknown one.

    Source: ValidateNodeSelectorRequirement of k8s.io/kubernetes/pkg/apis/core/validation.
    """
    if operator in LIST_OPERATORS:
        return count > 0
    if operator in NUMBER_OPERATORS:
        return count == 1
    return operator in BARE_OPERATORS and not count


def equal(key: str, value: str) -> Requirement:
    """Return the requirement that a label has this value."""
    return {"key": key, "operator": "In", "values": [value]}


def satisfiable(requirements: Iterable[Requirement]) -> bool:
    """Return whether a value of one label, or its absence, meets all expressions on that label.

    Expressions with an unknown operator count as satisfiable, and are kept. The work is linear in
    the number of values, because a pod's author chooses how many there are.
    """
    listed: set[str] | None = None
    excluded: set[str] = set()
    # A label's value begins with a letter or a digit, so that no integer in it is negative.
    low, high = 0, MAX_INT64
    present = absent = numeric = False
    for r in requirements:
        values = r.get("values") or []
        match r.get("operator"):
            case "In":
                listed = set(values) if listed is None else listed.intersection(values)
            case "NotIn":
                excluded.update(values)
            case "Exists":
                present = True
            case "DoesNotExist":
                absent = True
            case "Gt" | "Lt" as operator:
                numeric = True
                bound = int64(values[0]) if len(values) == 1 else None
                if bound is None:
                    return False
                low = max(low, bound + 1) if operator == "Gt" else low
                high = min(high, bound - 1) if operator == "Lt" else high
    if listed is None and not present and not numeric:
        return True  # a node without the label meets NotIn and DoesNotExist
    if absent:
        return False
    if listed is None:
        # A NotIn excludes finitely many spellings, and both texts and integers ("7", "07", ...)
        # have endlessly many, so that only the range can be empty.
        return low <= high
    left = listed - excluded
    return any(_within(low, value, high) for value in left) if numeric else bool(left)


def _within(low: int, value: str, high: int) -> bool:
    number = int64(value)
    return number is not None and low <= number <= high


_NEGATED = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}


def negated(requirement: Requirement) -> Requirement:
    """Return the expression that holds exactly where this one does not.

    Raises KeyError for Gt and Lt: no operator expresses their negation (less or equal, or not a
    number).
    """
    operator = _NEGATED[requirement["operator"]]
    result: Requirement = {"key": requirement["key"], "operator": operator}
    if requirement.get("values"):
        result["values"] = requirement["values"]
    return result


def listed_values(term: Term, key: str) -> list[str]:
    """Return the values of a label that a term lists and allows."""
    group = [r for r in term.get("matchExpressions") or () if r.get("key") == key]
    listed = [r.get("values") or () for r in group if r.get("operator") == "In"]
    values = dict.fromkeys(chain.from_iterable(listed))
    return [value for value in values if all(holds(r, value) for r in group)]
