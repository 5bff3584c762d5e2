"""The JSON schemas of the chart's values.

Those of pods' fields are Kubernetes' own: which fields there are, their types and their words. The
forms that Kubernetes does not publish, such as that of a label, are those of a Run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from webhook.pod_schema.field_checks import schema as kubernetes_schema
from webhook.run.json_schema import schema as run_schema

Json = dict[str, Any]
_REFERENCE: Final = "#/definitions/"
_OF_RUNS: Final[dict[str, Json]] = run_schema()["$defs"]
# The type of a Run that has fields of this type of Kubernetes, where their names differ.
_IN_A_RUN: Final = {
    "ObjectMeta": "Environment",
    "PodSpec": "Environment",
    "PodAntiAffinity": "PodAffinity",
}
_NULL: Final = "null"


def one_of(*words: str) -> Json:
    return {"enum": list(words)}


def list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def field_of(kind: str, name: str) -> Json:
    """The schema of a field of a Kubernetes type; types that it has are references."""
    fields = kubernetes_schema().types[kind]
    of = fields.get(name) or fields[f"{name}!"]
    in_a_run = _fields_in_a_run(kind).get(name)
    # A Run's words, and the numbers among its quantities, are fewer.
    if in_a_run is None or of.startswith("=") or of.endswith("quantity"):
        return _schema_of(of)
    return _as_value(in_a_run)


def definitions(schema: object) -> dict[str, Json]:
    """The Kubernetes types that a schema refers to, and those that these refer to, by name."""
    found: dict[str, Json] = {}
    waiting = [*_references(schema)]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found[kind] = with_nulls(_definition(kind), nullable=True)
            waiting += _references(found[kind])
    return dict(sorted(found.items()))


def with_nulls(schema: Json, *, nullable: bool = False) -> Json:
    """Allow null for every field that is not required: the template drops it.

    With it, a file of values takes a key of an earlier one away. The definition of a type allows
    null, so a reference to it does, except where `type` stands beside it.
    """
    if "$ref" in schema:
        # An older draft ignores what stands beside a reference itself.
        return schema if nullable else {"type": "object", "allOf": [schema]}
    found = dict(schema)
    required = schema.get("required", ())
    for key in ("properties", "patternProperties"):
        if key in schema:
            found[key] = {
                name: each and with_nulls(each, nullable=name not in required)
                for name, each in schema[key].items()
            }
    if schema.get("additionalProperties"):
        found["additionalProperties"] = with_nulls(schema["additionalProperties"], nullable=True)
    if "items" in schema:
        found["items"] = with_nulls(schema["items"])
    if nullable and "type" in schema:
        types = schema["type"]
        found["type"] = [*([types] if isinstance(types, str) else types), _NULL]
    if nullable and "enum" in schema:
        found["enum"] = [*schema["enum"], None]
    return found


def _definition(kind: str) -> Json:
    if kind not in kubernetes_schema().types:
        return _as_value(_OF_RUNS[kind])
    fields = kubernetes_schema().types[kind]
    required = [name[:-1] for name in fields if name.endswith("!")]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "additionalProperties": False,
        "properties": {
            name: field_of(kind, name) for name in (each.rstrip("!") for each in fields)
        },
    }


def _fields_in_a_run(kind: str) -> Json:
    found: Json = _OF_RUNS.get(_IN_A_RUN.get(kind, kind), {}).get("properties", {})
    return found


def _as_value(schema: Json) -> Json:
    """A schema of a Run as one of values. Helm reports `propertyNames` at a wrong path."""
    if "$ref" in schema:
        return {"$ref": _REFERENCE + schema["$ref"].rpartition("/")[2]}
    return {
        key: _as_value(each) if isinstance(each, dict) else each
        for key, each in schema.items()
        if key not in ("description", "propertyNames")
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


def _quantity_pattern() -> str:
    (quantity,) = _OF_RUNS["Resources"]["properties"]["limits"]["patternProperties"].values()
    (pattern,) = [each["pattern"] for each in quantity["anyOf"] if "pattern" in each]
    return str(pattern)


TEXT: Final[Json] = {"type": "string"}
FLAG: Final[Json] = {"type": "boolean"}
TEXTS: Final[Json] = list_of(TEXT)
PORT: Final[Json] = {"type": "integer", "minimum": 1, "maximum": 65535}
_SCALARS: Final[dict[str, Json]] = {
    "string": TEXT,
    "boolean": FLAG,
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "int-or-string": {"type": ["integer", "string"]},
    "quantity": {"type": ["string", "number"], "pattern": _quantity_pattern()},
    "object": {"type": "object"},
}
OBJECT_NAME: Final = field_of("PodSpec", "priorityClassName")
NAME_OR_EMPTY: Final[Json] = {**OBJECT_NAME, "pattern": f"^$|{OBJECT_NAME['pattern']}"}
ANNOTATIONS: Final = field_of("ObjectMeta", "annotations")
# By the labels with these keys, selectors and programs find Fairlead's objects.
LABELS: Final[Json] = {
    **field_of("ObjectMeta", "labels"),
    "properties": {
        "app.kubernetes.io/name": {"enum": ["fairlead"]},
        "app.kubernetes.io/part-of": {"enum": ["fairlead"]},
        "app.kubernetes.io/component": False,
    },
}
_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}/(3[0-2]|[12]?[0-9])"
_IPV6: Final = "[0-9a-fA-F]{0,4}(:[0-9a-fA-F.]*){2,7}/(12[0-8]|1[01][0-9]|[1-9]?[0-9])"
_CIDR: Final[Json] = {"type": "string", "pattern": f"^({_IPV4}|{_IPV6})$"}
# v1.NetworkPolicyPort and v1.NetworkPolicyPeer.
NETWORK_PORTS: Final[Json] = {
    **list_of(
        {
            "type": "object",
            "required": ["port"],
            "additionalProperties": False,
            "properties": {
                # A name of a port otherwise (IsValidPortName).
                "port": {
                    **PORT,
                    "type": ["integer", "string"],
                    "pattern": "^[a-z0-9-]*[a-z][a-z0-9-]*$",
                    "maxLength": 15,
                },
                "endPort": PORT,
                "protocol": {"enum": ["TCP", "UDP", "SCTP"]},
            },
        }
    ),
    "minItems": 1,
}
NETWORK_PEERS: Final[Json] = list_of(
    {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            "ipBlock": {
                "type": "object",
                "required": ["cidr"],
                "additionalProperties": False,
                "properties": {"cidr": _CIDR, "except": list_of(_CIDR)},
            },
            "podSelector": {"$ref": f"{_REFERENCE}LabelSelector"},
            "namespaceSelector": {"$ref": f"{_REFERENCE}LabelSelector"},
        },
    }
)
_SHARE: Final[Json] = {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+%$"}
# apps/v1.DeploymentStrategy.
STRATEGY: Final[Json] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["Recreate", "RollingUpdate"]},
        "rollingUpdate": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"maxSurge": _SHARE, "maxUnavailable": _SHARE},
        },
    },
}
