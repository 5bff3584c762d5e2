"""A pod's placement as rows that one can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cli.yaml_out import yaml_line
from webhook.placement.nodes import written
from webhook.placement.pod import PREFERRED, REQUIRED
from webhook.run.environment import SPEC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.placement.shapes import JsonObject

_KNOWN: Final = frozenset({"key", "operator", "value", "effect", "tolerationSeconds"})


def rows(spec: Mapping[str, Any]) -> Iterator[list[str]]:
    """Rows of a field and its value; of a list one for each item."""
    for field in SPEC:
        value = spec.get(field)
        if not value:
            continue
        match field:
            case "nodeSelector":
                yield [field, ", ".join(f"{key}={text}" for key, text in value.items())]
            case "tolerations":
                yield from _listed(field, map(toleration_text, value))
            case "affinity":
                yield from _affinity(value)
            case _:
                items = value if isinstance(value, list) else [value]
                yield from _listed(field, map(yaml_line, items))


def toleration_text(toleration: JsonObject) -> str:
    """As `kubectl describe` writes it: `key=value:Effect`, `key:Effect op=Exists for 30s`."""
    operator = toleration.get("operator") or "Equal"
    if operator not in ("Equal", "Exists") or not _KNOWN.issuperset(toleration):
        return yaml_line(toleration)
    key, value, effect = (toleration.get(part) for part in ("key", "value", "effect"))
    text = (
        (key or "every taint") + (f"={value}" if value else "") + (f":{effect}" if effect else "")
    )
    if key and operator == "Exists":
        text += " op=Exists"
    seconds = toleration.get("tolerationSeconds")
    return text if seconds is None else f"{text} for {seconds}s"


def _listed(field: str, items: Iterator[str]) -> Iterator[list[str]]:
    for position, item in enumerate(items):
        yield ["" if position else field, item]


def _affinity(affinity: JsonObject) -> Iterator[list[str]]:
    node = affinity.get("nodeAffinity") or {}
    terms = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for position, term in enumerate(terms):
        yield ["or" if position else "required nodes", _term(term)]
    for position, each in enumerate(node.get(PREFERRED) or ()):
        text = f"{_term(each.get('preference') or {})} (weight {each.get('weight')})"
        yield ["" if position else "preferred nodes", text]
    for kind, lists in affinity.items():
        if kind in ("podAffinity", "podAntiAffinity"):
            for name, items in (lists or {}).items():
                short = f"{kind}.{name.removesuffix('DuringSchedulingIgnoredDuringExecution')}"
                yield from _listed(short, map(yaml_line, items if isinstance(items, list) else ()))
        elif kind != "nodeAffinity":
            yield [kind, yaml_line(lists)]


def _term(term: JsonObject) -> str:
    found = [written(each) for each in term.get("matchExpressions") or ()]
    found += [f"field {written(each)}" for each in term.get("matchFields") or ()]
    return " and ".join(found) or "no node"
