"""The reference of policy documents as Markdown, made from their JSON Schema."""

from __future__ import annotations

import json
from typing import Any, Final

from webhook.policy.json_schema import schema
from webhook.policy.model import KNOWN

_REFERENCE: Final = "#/$defs/"


def page(kind: str) -> str:
    """The page of a kind: every field with its type and meaning. KeyError for unknown kinds."""
    return page_of(kind, schema(kind.lower()))


def page_of(kind: str, whole: dict[str, Any]) -> str:
    """The page of the kind that has this schema."""
    definitions: dict[str, Any] = whole["$defs"]
    command = f"fairlead schema {kind.lower()} -o markdown"
    lines = [
        f"# {kind}",
        "",
        f"<!-- Made by `{command}`; do not edit. -->",
        "",
        whole["description"],
        "",
        *_table(whole),
    ]
    for name in _reachable(whole, definitions):
        lines += ["", f"## {name}", "", definitions[name]["description"], ""]
        lines += _table(definitions[name])
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    return {f"{kind.lower()}.md": page(kind) for kind in KNOWN}


def _table(definition: dict[str, Any]) -> list[str]:
    required = definition.get("required", ())
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for name, field in definition["properties"].items():
        # Fields of any type are those that the API server writes.
        if type_ := _type(field):
            must = "**required.** " if name in required else ""
            default = f" Default: `{_written(field['default'])}`." if "default" in field else ""
            rows.append(f"| `{name}` | {type_} | {must}{field['description']}{default} |")
    return rows


def _type(field: dict[str, Any]) -> str:
    match field:
        case {"$ref": str(reference)}:
            name = reference.removeprefix(_REFERENCE)
            return f"[{name}](#{name.lower()})"
        case {"const": value}:
            return f"`{_written(value)}`"
        case {"enum": values}:
            return ", ".join(f"`{_written(value)}`" for value in values)
        case {"anyOf": [*kinds]}:
            return " or ".join(map(_type, kinds))
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object"}:
            return _mapping(field)
        case {"type": "integer"}:
            return f"whole number{_range(field)}"
        case {"type": "boolean"}:
            return "`true`, `false`"
        case {"type": "string"}:
            return "text"
    return ""


def _mapping(field: dict[str, Any]) -> str:
    if "properties" in field:
        return f"mapping with {', '.join(f'`{part}`' for part in field['properties'])}"
    values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
    return f"map of text to {_type(values[0]) if values[0] else 'text'}"


def _written(value: object) -> str:
    """A value as it stands in a document."""
    return value if isinstance(value, str) else json.dumps(value)


def _range(field: dict[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    # Limits of 32 and 64 bits say nothing to a reader.
    if most is not None and most < 2**31 - 1:
        return f", {least} to {most}"
    return f", {least} or more" if least is not None and least > -(2**31) else ""


def _reachable(start: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """The definitions that a schema leads to, in the order in which a reader meets them."""
    found: list[str] = []
    for name in _references(start["properties"]):
        if name not in found:
            found.append(name)
            found += [
                below for below in _reachable(definitions[name], definitions) if below not in found
            ]
    return list(dict.fromkeys(found))


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            return [node["$ref"].removeprefix(_REFERENCE)]
        return [name for child in node.values() for name in _references(child)]
    if isinstance(node, list):
        return [name for child in node for name in _references(child)]
    return []
