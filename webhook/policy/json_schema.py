"""The JSON Schema of policy documents, for editors: draft 2020-12, made from the model."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from webhook.policy.model import KNOWN

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# The combined schema, beside those of the single kinds in lower case.
ALL: Final = "all"


def names() -> tuple[str, ...]:
    """What `schema` takes: each kind in lower case, and ALL."""
    return (*(kind.lower() for kind in KNOWN), ALL)


def schema(name: str) -> dict[str, Any]:
    """The schema of one kind, or with ALL of a document of any kind. KeyError for other names."""
    if name == ALL:
        return _any_kind()
    kind, model = {kind.lower(): (kind, model) for kind, model in KNOWN.items()}[name]
    return document_schema(kind, model.model_json_schema(by_alias=True))


def document_schema(kind: str, whole: dict[str, Any]) -> dict[str, Any]:
    """The schema of a kind of document, from that which pydantic makes of its model."""
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
    """A schema as a person would write it: no null, no titles made of names, nothing unsaid."""
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
