"""A policy's match and exclude blocks in CEL, as `webhook.policy.conditions` compiles them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.exported import cel
from webhook.exported.cel import Piece, every, text, var
from webhook.policy.conditions import given_fields
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.exported.wanted import Enforced
    from webhook.placement.schema.selectors import LabelSelector
    from webhook.policy.conditions import MatchField
    from webhook.policy.match_model import Match

# Some digit but 0 before any exponent or unit, as policy.subject has it.
_SOME: Final = r"'^[+]?[0.]*[1-9]'"


def pieces(policies: Sequence[Enforced]) -> Piece:
    """A variable for each policy: whether it is for the pod.

    Of a DaemonSet's pods, requirements hold for those that their own labels mark.
    """
    variables = {}
    for at, policy in enumerate(policies):
        holds = block(policy.match)
        for excluded in policy.exclude:
            holds += f" && !({block(excluded)})"
        spared = (
            f"{var('daemon_set')} && !{var('marked')}" if policy.requires else var("daemon_set")
        )
        variables[f"p{at}"] = f"!({spared}) && {holds}"
    return Piece(variables)


def block(match: Match) -> str:
    """Whether every condition of the block holds."""
    return every(_condition(field, value) for field, value in given_fields(match))


def _condition(field: MatchField, value: Any) -> str:
    match field.form:
        case "name":
            pattern = "|".join(map(_glob, value))
            return f"{field.cel}.matches({text(f'^({pattern})$')})"
        case "labels":
            return selected(value, field.cel)
        case "value":
            return f"{field.cel} in {cel.texts(value)}"
        case "flag":
            return field.cel if value else f"!{field.cel}"
        case "values":
            return _VALUES[field.name](value)


def _glob(pattern: str) -> str:
    """A glob as RE2 takes it. All else that may stand in one stands for itself there."""
    return "".join({"*": ".*", "?": ".", ".": r"\."}.get(letter, letter) for letter in pattern)


def _requests(resources: Sequence[str]) -> str:
    asked = cel.texts(resources)
    containers = "[object.spec.containers, object.spec.?initContainers.orValue([])].flatten()"
    of_pod = _requests_of("object.spec", asked)
    return f"({containers}.exists(c, {_requests_of('c', asked)}) || {of_pod})"


def _requests_of(holder: str, asked: str) -> str:
    amounts = [f"{holder}.?resources.?{part}.orValue({{}})" for part in ("requests", "limits")]
    return " || ".join(
        f"{each}.exists(k, k in {asked} && string({each}[k]).matches({_SOME}))" for each in amounts
    )


def _has_volume(sources: Sequence[str]) -> str:
    has = " || ".join(f"has(v.{source})" for source in sources)
    return f"object.spec.?volumes.orValue([]).exists(v, {has})"


_VALUES: Final[Mapping[str, Callable[[Sequence[str]], str]]] = {
    "resources": _requests,
    "volumes": _has_volume,
}


def selected(selector: LabelSelector, labels: str) -> str:
    """Whether labels meet the selector."""
    found = []
    for condition in compile_selector(selector).conditions:
        key = text(condition.key)
        match condition.operator:
            case "In":
                held = f"{key} in {labels} && {labels}[{key}] in {cel.texts(condition.values)}"
            case "NotIn":
                held = f"!({key} in {labels} && {labels}[{key}] in {cel.texts(condition.values)})"
            case "Exists":
                held = f"{key} in {labels}"
            case "DoesNotExist":
                held = f"!({key} in {labels})"
        found.append(f"({held})")
    return every(found)
