"""What a conjunction of expressions still allows one label of a node to be.

The six operators are those of v1.NodeSelectorOperator, with the scheduler's reading (package
nodeaffinity and labels.Requirement): NotIn and DoesNotExist hold where the label is missing; Gt and
Lt need a label that parses as an int64.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.placement.shapes import Requirement

MAX_INT64 = 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)


def int64(text: str) -> int | None:
    """`text` as Go's strconv.ParseInt(text, 10, 64) reads it, or None."""
    # Longer digits than any int64 are refused first: Python's own limit would raise.
    if len(text) > 64 or not _INTEGER.match(text):
        return None
    number = int(text)
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


def holds(requirement: Requirement, value: str | None) -> bool:
    """Whether one expression admits a node whose label has `value`; None: has no such label.

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


def satisfiable(requirements: Iterable[Requirement]) -> bool:
    """Whether some value of one label, or its absence, meets all expressions on that label.

    Expressions with an unknown operator are taken as satisfiable: what is not understood is kept.
    """
    known = [r for r in requirements if r.get("operator") in _OPERATORS]
    if all(holds(r, None) for r in known):
        return True
    listed = [set(r.get("values") or ()) for r in known if r["operator"] == "In"]
    if listed:
        return any(all(holds(r, v) for r in known) for v in set.intersection(*listed))
    if any(r["operator"] == "DoesNotExist" for r in known):
        return False
    # What is left are NotIn, Exists, Gt and Lt. A NotIn excludes finitely many spellings, and both
    # texts and integers ("7", "07", ...) have endlessly many, so only the range can be empty.
    low, high = 0, MAX_INT64  # a label's value begins with a letter or digit: never negative
    for r in known:
        if r["operator"] in ("Gt", "Lt"):
            values = r.get("values") or []
            bound = int64(values[0]) if len(values) == 1 else None
            if bound is None:
                return False
            if r["operator"] == "Gt":
                low = max(low, bound + 1)
            else:
                high = min(high, bound - 1)
    return low <= high


_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})
_NEGATED = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}


def negated(requirement: Requirement) -> Requirement:
    """The expression that holds exactly where this one does not.

    Raises KeyError for Gt and Lt, whose negation (less or equal, or no number) no operator says.
    """
    operator = _NEGATED[requirement["operator"]]
    result: Requirement = {"key": requirement["key"], "operator": operator}
    if requirement.get("values"):
        result["values"] = requirement["values"]
    return result
