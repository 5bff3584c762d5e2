"""The pod schema is made from an OpenAPI document as an API server serves it."""

from __future__ import annotations

import json
from typing import Any

from tools.pod_schema import compact, text


def document(**schemas: Any) -> dict[str, Any]:
    """An OpenAPI document with these types of core/v1, and Pod and PodTemplateSpec."""
    prefix = "io.k8s.api.core.v1."
    return {
        "info": {"title": "Kubernetes", "version": "v1.99.0"},
        "components": {"schemas": {f"{prefix}{name}": each for name, each in schemas.items()}},
    }


def to(name: str) -> dict[str, Any]:
    """A reference to one of these types, as Kubernetes writes it."""
    return {"allOf": [{"$ref": f"#/components/schemas/io.k8s.api.core.v1.{name}"}], "default": {}}


QUANTITY = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}


def test_each_type_has_its_fields_with_their_kinds() -> None:
    """Those that pods do not need are left out; what is required has a mark."""
    fields = {
        "names": {"type": "array", "items": {"type": "string"}},
        "parts": {"type": "array", "items": to("Part")},
        "limits": {"type": "object", "additionalProperties": QUANTITY},
        "policy": {"type": "string", "enum": ["Never", "Always"]},
        "status": to("PodStatus"),
    }
    made = compact(
        document(
            Pod={"properties": fields},
            PodTemplateSpec={"properties": {"part": to("Part")}, "required": ["part"]},
            Part={"properties": {"self": to("Part"), "on": {"type": "boolean"}}},
            Service={"properties": {}},
        )
    )
    assert made == {
        "kubernetes": "1.99.0",
        "types": {
            "Part": {"on": "boolean", "self": "Part"},
            "Pod": {
                "limits": "{}quantity",
                "names": "[]string",
                "parts": "[]Part",
                "policy": "=Always|Never",
                "status": "object",
            },
            "PodTemplateSpec": {"part!": "Part"},
        },
    }
    assert json.loads(text(made)) == made
