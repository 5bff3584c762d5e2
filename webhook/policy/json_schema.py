"""The JSON Schema of policy documents, for editors, and the reference page made from it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic.json_schema import models_json_schema

from webhook.policy.policy_documents import KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# The combined schema, beside those of the single kinds in lower case.
ALL: Final = "all"
_REFERENCE: Final = "#/$defs/"
# Words of a cell of a table. tools/words.py fails above 30.
_CELL: Final = 28


def names() -> tuple[str, ...]:
    """Return the arguments of `schema`: each kind in lower case, and ALL."""
    return (*(kind.lower() for kind in KNOWN), ALL)


def schema(name: str) -> dict[str, Any]:
    """Return the schema of one kind, or with ALL of a document of any kind. KeyError for other
    names.
    """
    if name == ALL:
        return _any_kind()
    kind, model = {kind.lower(): (kind, model) for kind, model in KNOWN.items()}[name]
    return document_schema(kind, model.model_json_schema(by_alias=True))


def document_schema(kind: str, whole: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a kind of document, from pydantic's schema of its model."""
    return {"$schema": DIALECT, "title": f"Fairlead {kind}", **_plain(whole)}


def _any_kind() -> dict[str, Any]:
    references, definitions = models_json_schema(
        [(model, "validation") for model in KNOWN.values()], by_alias=True
    )
    return {
        "$schema": DIALECT,
        "title": "Fairlead policy document",
        "oneOf": [references[model, "validation"] for model in KNOWN.values()],
        **_plain(definitions),
    }


def _plain(node: Any) -> Any:
    """Return a schema as a person would write it: without null, and without titles made from
    names."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    # A document has no nulls: what is None in Python is left out there.
    match node.get("anyOf"):
        case [value, {"type": "null"}]:
            node = {**value, **{key: node[key] for key in node if key not in ("anyOf", "default")}}
        case [*values, {"type": "null"}]:
            node = {key: node[key] for key in node if key != "default"} | {"anyOf": values}
    plain = {
        key: {name: _plain(child) for name, child in value.items()}
        if key in ("properties", "patternProperties", "$defs")
        else _plain(value)
        for key, value in node.items()
        if key != "title"
    }
    if "patternProperties" in plain:
        plain.setdefault("additionalProperties", False)
    return plain


def page(kind: str) -> str:
    """Return the page of a kind: every field with its type and meaning. KeyError for unknown
    kinds."""
    return page_of(kind, schema(kind.lower()))


def page_of(kind: str, whole: dict[str, Any]) -> str:
    """Return the page of the kind that has this schema."""
    definitions: dict[str, Any] = whole["$defs"]
    command = f"fairlead generate schema {kind.lower()} -o markdown"
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
    """Return every page by the name of its file."""
    return {f"{kind.lower()}.md": page(kind) for kind in KNOWN}


class Row(NamedTuple):
    """A row of a reference table.

    cells: all columns before the last; the last has `about` and then `default`
    """

    name: str
    cells: str
    about: str
    default: str = ""


def table(head: str, rows: Iterable[Row]) -> list[str]:
    """Return the lines of a table, and below it the sentences that are too many for a cell."""
    lines, below = [f"| {head} |", "|---" * (head.count("|") + 1) + "|"], []
    for row in rows:
        sentences = re.split(r"(?<=\.)\s+", row.about)
        kept = len(sentences)
        while kept > 1 and len(" ".join((*sentences[:kept], row.default)).split()) > _CELL:
            kept -= 1
        lead, rest = " ".join(sentences[:kept]), " ".join(sentences[kept:])
        more = " More below." if rest else ""
        lines.append(f"| {row.cells} | {lead}{row.default}{more} |")
        below += [f"- {row.name}: {rest}"] if rest else []
    return [*lines, "", *below] if below else lines


def _table(definition: dict[str, Any]) -> list[str]:
    return table("field | type | meaning", _rows(definition))


def _rows(definition: dict[str, Any]) -> Iterator[Row]:
    required = definition.get("required", ())
    for name, field in definition["properties"].items():
        # Fields of any type are those that the API server writes.
        if type_ := _type(field):
            must = "**required.** " if name in required else ""
            default = (
                f" Default: `{_format_value(field['default'])}`." if "default" in field else ""
            )
            yield Row(f"`{name}`", f"`{name}` | {type_}", f"{must}{field['description']}", default)


def _type(field: dict[str, Any]) -> str:
    match field:
        case {"$ref": str(reference)}:
            name = reference.removeprefix(_REFERENCE)
            return f"[{name}](#{name.lower()})"
        case {"const": value}:
            return f"`{_format_value(value)}`"
        case {"enum": values}:
            return ", ".join(f"`{_format_value(value)}`" for value in values)
        case {"anyOf": [*kinds]}:
            return " or ".join(map(_type, kinds))
        case {"type": "null"}:
            return "`null`"
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object"}:
            return _mapping(field)
        case {"type": "integer"}:
            return f"whole number{_range(field)}"
        case {"type": "number"}:
            return f"number{_range(field)}"
        case {"type": "boolean"}:
            return "`true`, `false`"
        case {"type": "string"}:
            return "text"
    return ""


def _mapping(field: dict[str, Any]) -> str:
    if "properties" in field:
        return f"mapping with {', '.join(f'`{part}`' for part in field['properties'])}"
    values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
    value_schema = values[0] or {"type": "string"}
    return f"map of text to {'anything' if value_schema is True else _type(value_schema)}"


def _format_value(value: object) -> str:
    """Return a value in the form of a document."""
    return value if isinstance(value, str) else json.dumps(value)


def _range(field: dict[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    # Limits of 32 and 64 bits do not help a reader.
    if most is not None and most < 2**31 - 1:
        return f", {least} to {most}"
    return f", {least} or more" if least is not None and least > -(2**31) else ""


def _reachable(start: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """Return the definitions that a schema refers to, in the order of first reference."""
    definition_names: list[str] = []
    for name in _references(start["properties"]):
        if name not in definition_names:
            definition_names.append(name)
            definition_names += [
                below
                for below in _reachable(definitions[name], definitions)
                if below not in definition_names
            ]
    return list(dict.fromkeys(definition_names))


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            return [node["$ref"].removeprefix(_REFERENCE)]
        return [name for child in node.values() for name in _references(child)]
    if isinstance(node, list):
        return [name for child in node for name in _references(child)]
    return []
