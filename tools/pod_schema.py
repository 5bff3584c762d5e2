"""Makes webhook/pod_schema/kubernetes.json from the OpenAPI document of a Kubernetes API server.

    kubectl get --raw /openapi/v3/api/v1 | python -m tools.pod_schema

The API server is one of the newest Kubernetes that Fairlead supports: `fairlead sandbox` has one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

TARGET: Final = Path(__file__).parent.parent / "webhook" / "pod_schema" / "kubernetes.json"
_ROOTS: Final = ("io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.PodTemplateSpec")
# Types that are not mappings with fields, and types whose content no author writes.
_PLAIN: Final = {
    "io.k8s.api.core.v1.PodStatus": "object",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "object",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "string",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}

Json = dict[str, Any]


def compact(document: Json) -> Json:
    """Return the types of pods and pod templates, as webhook.pod_schema.field_checks reads them."""
    schemas: Json = document["components"]["schemas"]
    types: dict[str, Json] = {}
    left = list(_ROOTS)
    while left:
        name = left.pop()
        if _short(name) in types:
            continue
        schema = schemas[name]
        required = set(schema.get("required", ()))
        fields = types[_short(name)] = {}
        for field, field_schema in sorted(schema["properties"].items()):
            fields[f"{field}!" if field in required else field] = _kind(field_schema, left)
    type_names = {name.rpartition(".")[2] for name in schemas if _short(name) in types}
    if len(type_names) != len(types):
        raise ValueError("two types have the same short name")
    version = document["info"]["version"].removeprefix("v")
    return {"kubernetes": version, "types": dict(sorted(types.items()))}


def text(compacted: Json) -> str:
    """As it is stored: a line for each type, so that a diff shows what a release brought."""
    types = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in compacted["types"].items()
    )
    return f'{{"kubernetes": {json.dumps(compacted["kubernetes"])}, "types": {{\n{types}\n}}}}\n'


def _kind(schema: Json, left: list[str]) -> str:
    """Return a type's name, "[]X" for a list, "{}X" for a mapping, "=a|b" for one of these
    words."""
    if "allOf" in schema:
        (schema,) = schema["allOf"]
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in _PLAIN:
            left.append(name)
        return _PLAIN.get(name) or _short(name)
    if "enum" in schema:
        return f"={'|'.join(sorted(schema['enum']))}"
    match schema["type"]:
        case "array":
            return f"[]{_kind(schema['items'], left)}"
        case "object" if "additionalProperties" in schema:
            return f"{{}}{_kind(schema['additionalProperties'], left)}"
    plain: str = schema["type"]
    return plain


def _short(name: str) -> str:
    return name.rpartition(".")[2]


if __name__ == "__main__":
    TARGET.write_text(text(compact(json.load(sys.stdin))))
