"""A policy's match and exclude blocks in CEL, as `webhook.policy.conditions` compiles them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.exported import cel
from webhook.exported.cel import Piece, every, text, var
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.exported.wanted import Enforced
    from webhook.placement.schema.selectors import LabelSelector
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
    return every(_conditions(match))


def _conditions(match: Match) -> Iterator[str]:
    if match.namespaces:
        pattern = "|".join(map(_glob, match.namespaces))
        yield f"request.namespace.matches({text(f'^({pattern})$')})"
    if match.namespace_selector is not None:
        yield selected(match.namespace_selector, var("namespace_labels"))
    if match.pod_selector is not None:
        yield selected(match.pod_selector, var("own_labels"))
    for name, words in (
        ("kind", match.kinds),
        ("framework", match.frameworks),
        ("role", match.roles),
    ):
        if words:
            yield f"{var(name)} in {cel.texts(words)}"
    if match.replica_indexes:
        yield f"{var('index')} in [{', '.join(map(str, match.replica_indexes))}]"
    if match.coordinator is not None:
        yield var("coordinator") if match.coordinator else f"!{var('coordinator')}"
    if match.resources:
        asked = cel.texts(match.resources)
        amounts = "c.?resources.?{0}.orValue({{}})"
        some = "{0}.exists(k, k in {1} && string({0}[k]).matches({2}))"
        held = " || ".join(
            some.format(amounts.format(part), asked, _SOME) for part in ("requests", "limits")
        )
        containers = "[object.spec.containers, object.spec.?initContainers.orValue([])].flatten()"
        pod = " || ".join(
            some.format(f"object.spec.?resources.?{part}.orValue({{}})", asked, _SOME)
            for part in ("requests", "limits")
        )
        yield f"({containers}.exists(c, {held}) || {pod})"
    if match.volumes:
        has = " || ".join(f"has(v.{source})" for source in match.volumes)
        yield f"object.spec.?volumes.orValue([]).exists(v, {has})"


def _glob(pattern: str) -> str:
    """A glob as RE2 takes it. All else that may stand in one stands for itself there."""
    return "".join({"*": ".*", "?": "."}.get(letter, letter) for letter in pattern)


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
