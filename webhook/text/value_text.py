"""A placement and the values of its fields as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook.placement.nodes import format_requirement
from webhook.placement.pod import PREFERRED, REQUIRED, REQUIRED_NODES
from webhook.run.environment import SPEC
from webhook.shortening import apart, cut
from webhook.text.yaml_out import yaml_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.shapes import JsonObject, Term

_MAX_CHARACTERS: Final = 200
_KNOWN: Final = frozenset({"key", "operator", "value", "effect", "tolerationSeconds"})


def placement_rows(spec: Mapping[str, Any]) -> Iterator[list[str]]:
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
        yield ["or" if position else "required nodes", _term(term, "field ")]
    for position, preference in enumerate(node.get(PREFERRED) or ()):
        text = _term(preference.get("preference") or {}, "field ")
        yield ["" if position else "preferred nodes", f"{text} (weight {preference.get('weight')})"]
    for kind, lists in affinity.items():
        if kind in ("podAffinity", "podAntiAffinity"):
            for name, items in (lists or {}).items():
                short = f"{kind}.{name.removesuffix('DuringSchedulingIgnoredDuringExecution')}"
                yield from _listed(short, map(yaml_line, items if isinstance(items, list) else ()))
        elif kind != "nodeAffinity":
            yield [kind, yaml_line(lists)]


def _term(term: JsonObject | Term, of_fields: str = "") -> str:
    """Return a term of node affinity, with `of_fields` before what is about fields."""
    texts = [format_requirement(requirement) for requirement in term.get("matchExpressions") or ()]
    texts += [
        f"{of_fields}{format_requirement(requirement)}"
        for requirement in term.get("matchFields") or ()
    ]
    return " and ".join(texts) or "no node"


def field_text(field: str, value: Any) -> str:
    """Return the field with its value, cut; tolerations include their key."""
    text = _whole(field, value)
    return _with_name(field, value, cut(text, _MAX_CHARACTERS))


def setting_text(setting: PlacementSetting) -> str:
    """Return the value of a setting; empty if the reason of its trace entry has it."""
    value = setting.listed_value
    if value is None or isinstance(value, str):
        return value or ""
    return _whole(setting.field, value)


def both_texts(field: str, has: Any, would: Any) -> tuple[str, str]:
    """Two different values of a field, cut so that the texts differ.

    Items that only one of two lists has come first.
    """
    text, other = _whole(field, _own_first(has, would)), _whole(field, _own_first(would, has))
    if text == other:
        # Equal texts may have values that differ in members with defaults.
        text, other = _json(has), _json(would)
    return apart(text, other, _MAX_CHARACTERS)


def both_fields(field: str, has: Any, would: Any) -> tuple[str, str]:
    text, other = both_texts(field, has, would)
    return _with_name(field, has, text), _with_name(field, would, other)


def _with_name(field: str, value: Any, text: str) -> str:
    holder = "tolerations" if field.startswith("tolerations[") and value is not None else field
    return f"{holder}: {text}"


def _own_first(value: Any, other: Any) -> Any:
    if not isinstance(value, list) or not isinstance(other, list):
        return value
    return sorted(value, key=lambda element: element in other)


def _json(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _whole(field: str, value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value)
    if field.startswith("tolerations["):
        return "; ".join(map(toleration_text, value))
    if field == REQUIRED_NODES:
        return " or ".join(map(_term, value))
    return yaml_line(_by_key(value))


def _by_key(value: Any) -> Any:
    if isinstance(value, list):
        return [_by_key(element) for element in value]
    if isinstance(value, dict):
        return {key: _by_key(value[key]) for key in sorted(value)}
    return value
