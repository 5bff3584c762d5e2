"""The JSON schemas of the chart's values; those of pods' fields are Kubernetes' own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from webhook.pod_schema.field_checks import schema as kubernetes_schema

Json = dict[str, Any]
_REFERENCE: Final = "#/definitions/"

TEXT: Final[Json] = {"type": "string"}
FLAG: Final[Json] = {"type": "boolean"}
TEXTS: Final[Json] = {"type": "array", "items": TEXT}
PAIRS: Final[Json] = {"type": "object", "additionalProperties": TEXT}
PORT: Final[Json] = {"type": "integer", "minimum": 1, "maximum": 65535}
# By the labels with these keys, selectors and programs find Fairlead's objects.
LABELS: Final[Json] = {
    **PAIRS,
    "properties": {
        "app.kubernetes.io/name": {"enum": ["fairlead"]},
        "app.kubernetes.io/part-of": {"enum": ["fairlead"]},
        "app.kubernetes.io/component": False,
    },
}
_NUMBER_OR_TEXT: Final[Json] = {"type": ["integer", "string"]}
# v1.NetworkPolicyPort and v1.NetworkPolicyPeer.
NETWORK_PORTS: Final[Json] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["port"],
        "additionalProperties": False,
        "properties": {
            "port": _NUMBER_OR_TEXT,
            "endPort": PORT,
            "protocol": {"enum": ["TCP", "UDP", "SCTP"]},
        },
    },
}
NETWORK_PEERS: Final[Json] = {
    "type": "array",
    "items": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            "ipBlock": {
                "type": "object",
                "required": ["cidr"],
                "additionalProperties": False,
                "properties": {
                    "cidr": {"type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]{1,3}$"},
                    "except": TEXTS,
                },
            },
            "podSelector": {"$ref": f"{_REFERENCE}LabelSelector"},
            "namespaceSelector": {"$ref": f"{_REFERENCE}LabelSelector"},
        },
    },
}
# apps/v1.DeploymentStrategy.
STRATEGY: Final[Json] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["Recreate", "RollingUpdate"]},
        "rollingUpdate": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"maxSurge": _NUMBER_OR_TEXT, "maxUnavailable": _NUMBER_OR_TEXT},
        },
    },
}
_SCALARS: Final[dict[str, Json]] = {
    "string": TEXT,
    "boolean": FLAG,
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "int-or-string": _NUMBER_OR_TEXT,
    "quantity": {"type": ["string", "number"]},
    "object": {"type": "object"},
}


def one_of(*words: str) -> Json:
    return {"enum": list(words)}


def list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def field_of(kind: str, name: str) -> Json:
    """The schema of a field of a Kubernetes type; types that it has are references."""
    fields = kubernetes_schema().types[kind]
    return _schema_of(fields.get(name) or fields[f"{name}!"])


def definitions(schema: object) -> dict[str, Json]:
    """The Kubernetes types that a schema refers to, and those that these refer to, by name."""
    found: dict[str, Json] = {}
    waiting = [*_references(schema)]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found[kind] = _definition(kind)
            waiting += _references(found[kind])
    return dict(sorted(found.items()))


def _definition(kind: str) -> Json:
    fields = kubernetes_schema().types[kind]
    required = [name[:-1] for name in fields if name.endswith("!")]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "additionalProperties": False,
        "properties": {name.rstrip("!"): _schema_of(of) for name, of in fields.items()},
    }


def _schema_of(kind: str) -> Json:
    """The notation of webhook/pod_schema/kubernetes.json as a JSON schema."""
    if kind.startswith("[]"):
        return list_of(_schema_of(kind[2:]))
    if kind.startswith("{}"):
        return {"type": "object", "additionalProperties": _schema_of(kind[2:])}
    if kind.startswith("="):
        return one_of(*kind[1:].split("|"))
    return _SCALARS.get(kind) or {"$ref": f"{_REFERENCE}{kind}"}


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(_REFERENCE)
        for each in schema.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)
