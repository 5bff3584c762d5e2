"""A CustomResourceDefinition: from names, columns and JSON Schema to the object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.placement.schema.syntax import MAX_LISTED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.crd.rules import Rule

Json = dict[str, Any]

# Kept unchanged ("Specifying a structural schema", Kubernetes' documentation).
_KEPT_KEYWORDS: Final = (
    "description",
    "type",
    "format",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)
# What rules say (`anyOf`, `if`), or what a schema of Kubernetes says without words: unknown fields
# are refused or dropped.
_DROPPED: Final = (
    "title",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "propertyNames",
)
_SENTENCES: Final = re.compile(r"(?<=[.!])\s+(?=[A-Z`*])")
_RULES: Final = "x-kubernetes-validations"
_MOST_EXACT: Final = 2**53
_HANDLED: Final = ("$ref", "const", "exclusiveMaximum", "items", "properties", "patternProperties")
# The API server keeps fields that the schema does not have, instead of dropping them.
KEEPS_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
# Without a type: rules that compare such values compare all of them. Of an object with unknown
# fields they see no more than how many there are (apiserver/pkg/cel/common, unstructuredMap.Equal).
_OPAQUE: Final = {KEEPS_UNKNOWN: True}
TEXT: Final = {"type": "string"}
# By class and field: what is added to the field's schema.
Lists: TypeAlias = "Mapping[tuple[str, str], dict[str, Any]]"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Structural:
    """Turns the parts of one JSON Schema with `$defs` into structural schemas.

    `rules` are added by the name of the definition that they are about, or for the value of one
    field, the items of a list, the values of a mapping, by that name and the field's
    ("Class.field"); `lists` are added by both names. Below the definition `shallow` there are no
    rules for those in `too_deep`. With `keeps_unknown`, every object keeps unknown fields.
    Raises ValueError for what a structural schema has no word for, and where a rule about a form
    stands for another pattern than the schema's.
    """

    def __init__(
        self,
        definitions: Mapping[str, Json],
        rules: Mapping[str, tuple[Rule, ...]],
        lists: Mapping[tuple[str, str], Json],
        shallow: str = "",
        too_deep: Collection[str] = (),
        *,
        keeps_unknown: bool = False,
    ) -> None:
        self._definitions = definitions
        self._rules = rules
        self._lists = lists
        self._shallow = shallow
        self._too_deep = too_deep
        self._keeps_unknown = keeps_unknown

    def definition(self, name: str) -> Json:
        """Return the object of that name, all that it refers to written out."""
        if name == self._shallow:
            rules = {key: self._rules[key] for key in self._rules if key not in self._too_deep}
            return Structural(self._definitions, rules, self._lists).definition(name)
        schema = self._schema(self._definitions[name])
        for field, value in schema.get("properties", {}).items():
            value.update(self._lists.get((name, field), {}))
            node = value.get("items") or value.get("additionalProperties") or value
            self._rule(node, f"{name}.{field}")
        self._rule(schema, name)
        return schema

    def _rule(self, schema: Json, name: str) -> None:
        rules = self._rules.get(name, ())
        for rule in rules:
            if rule.form:
                if schema.pop("pattern", None) != rule.form:
                    raise ValueError(f"{name} has another pattern than the rule about its form")
                schema.pop("format", None)
        if rules:
            schema[_RULES] = [*schema.get(_RULES, ()), *(rule.schema() for rule in rules)]

    def _schema(self, node: Json) -> Json:
        node = _without_null(node)
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            # The field's description says more than that of its type.
            return {**self.definition(name), **_kept_keywords(node)}
        if integer_or_text := _integer_or_text(node):
            return integer_or_text
        if alternatives := _alternatives(node):
            return alternatives
        schema = _kept_keywords(node)
        unknown = set(node) - {*_KEPT_KEYWORDS, *_DROPPED, *_HANDLED}
        if unknown:
            raise ValueError(f"a structural schema has no {', '.join(sorted(unknown))}: {node}")
        if "const" in node:
            schema["enum"] = [node["const"]]
        if "exclusiveMaximum" in node:
            schema["maximum"] = node["exclusiveMaximum"] - 1
        if "items" in node:
            schema["items"] = self._schema(node["items"])
        if "properties" in node:
            schema["properties"] = {
                field: self._schema(value) for field, value in node["properties"].items()
            }
            if self._keeps_unknown:
                schema[KEEPS_UNKNOWN] = True
        elif node.get("type") == "object":
            # The form of the keys has no word in a structural schema.
            values = [*node.get("patternProperties", {}).values()] or [node["additionalProperties"]]
            if values == [True]:
                return {key: schema[key] for key in schema if key != "type"} | _OPAQUE
            schema["additionalProperties"] = self._schema(values[0])
        return schema


def _kept_keywords(node: Json) -> Json:
    taken: Json = {key: node[key] for key in _KEPT_KEYWORDS if key in node}
    # The API server reads a limit as a float, and refuses every number where it is not exact.
    if abs(taken.get("maximum", 0)) > _MOST_EXACT:
        del taken["maximum"]
    return taken


def _without_null(node: Json) -> Json:
    """Return the schema of a field without null, which in Python means that it is left out."""
    match node.get("anyOf"):
        case [value, {"type": "null"}]:
            outer = {key: node[key] for key in node if key not in ("anyOf", "default")}
            return _without_null({**value, **outer})
        case [*values, {"type": "null"}]:
            outer = {key: node[key] for key in node if key != "default"}
            return {**outer, "anyOf": values}
    if "default" in node and node["default"] is None:
        return {key: value for key, value in node.items() if key != "default"}
    return node


def _integer_or_text(node: Json) -> Json | None:
    types = [alternative.get("type") for alternative in node.get("anyOf", ())]
    if types != ["integer", "string"]:
        return None
    limits: Json = {}
    for alternative in node["anyOf"]:
        limits |= {
            key: alternative[key] for key in ("minimum", "maximum", "pattern") if key in alternative
        }
        if "enum" in alternative:
            limits["pattern"] = f"^({'|'.join(alternative['enum'])})$"
    described = {key: node[key] for key in ("description",) if key in node}
    return {**described, "x-kubernetes-int-or-string": True, **limits}


def _alternatives(node: Json) -> Json | None:
    """Return the enumerations of texts as one; a value of several types as one without a type."""
    alternatives = node.get("anyOf")
    if not alternatives or "type" in node:
        return None
    words = [
        word
        for alternative in alternatives
        for word in alternative.get("enum") or [alternative.get("const")]
    ]
    texts = all(isinstance(word, str) for word in words)
    return {"type": "string", "enum": words} if texts else dict(_OPAQUE)


class Called(NamedTuple):
    """What a kind is called: `scope` is Namespaced or Cluster, the rest as people type it."""

    kind: str
    plural: str
    scope: str
    short: str
    categories: tuple[str, ...]

    @property
    def resource(self) -> str:
        """The resource with its group, which is the definition's name too."""
        return f"{self.plural}.{names.GROUP}"


class Column(NamedTuple):
    """A column of `kubectl get`: `wide` ones are shown with `-o wide` alone."""

    header: str
    type: str
    path: str
    wide: bool = False

    def schema(self) -> Json:
        """Return the column as a definition has it."""
        column: Json = {"name": self.header, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": 1} if self.wide else column


def definition(called: Called, columns: tuple[Column, ...], schema: Json) -> Json:
    """Return the definition, as `kubectl apply` takes it (apiextensions.k8s.io/v1).

    schema: of the whole object, structural; its status is a subresource. Of its descriptions the
        first sentences are kept: kubectl carries a definition in an annotation of limited size.
    """
    reference = (
        f"`fairlead generate schema {called.kind.lower()} -o markdown` explains every field."
    )
    described = {**schema, "description": f"{first_sentence(schema['description'])} {reference}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": called.resource},
        "spec": {
            "group": names.GROUP,
            "scope": called.scope,
            "names": {
                "kind": called.kind,
                "listKind": f"{called.kind}List",
                "plural": called.plural,
                "singular": called.kind.lower(),
                "shortNames": [called.short],
                "categories": list(called.categories),
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.schema() for column in columns],
                    "schema": {"openAPIV3Schema": _concise(described)},
                }
            ],
        },
    }


def first_sentence(text: str) -> str:
    """Return the first sentence of a text.

    >>> first_sentence("A node of v1.30, such as a.b. It is there.")
    'A node of v1.30, such as a.b.'
    """
    return _SENTENCES.split(text, maxsplit=1)[0]


def _concise(schema: Json) -> Json:
    """Return a schema with one sentence for each field; its items have none of their own."""
    result = {**schema}
    if "properties" in schema:
        result["properties"] = {
            field: {**_concise(child), **_sentence(child)}
            for field, child in schema["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if key in schema:
            child = _concise(schema[key])
            result[key] = {name: value for name, value in child.items() if name != "description"}
    return result


def _sentence(schema: Json) -> Json:
    text = schema.get("description")
    return {"description": first_sentence(text)} if text else {}


def list_by_keys(most: int, *keys: str) -> dict[str, Any]:
    """Return a list of which no two items have the same values under the keys; 0: of any length."""
    as_map = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {**as_map, "maxItems": most} if most else as_map


def placement_lists(*classes: str) -> Lists:
    """Return the lists of the placement schema, of which `classes` have the fields of a
    placement."""
    of_each = {
        "tolerations": {"maxItems": MAX_LISTED},
        "topologySpreadConstraints": list_by_keys(MAX_LISTED, "topologyKey", "whenUnsatisfiable"),
        "capacity": list_by_keys(MAX_LISTED, "class"),
    }
    return {
        **{(name, field): of_each[field] for name in classes for field in of_each},
        ("PodSecurityContext", "sysctls"): list_by_keys(MAX_LISTED, "name"),
        ("NodeSelector", "nodeSelectorTerms"): {"maxItems": MAX_LISTED},
        ("NodeAffinity", _PREFERRED): {"maxItems": MAX_LISTED},
        ("NodeSelectorTerm", "matchExpressions"): {"maxItems": MAX_LISTED},
        ("NodeSelectorTerm", "matchFields"): {"maxItems": MAX_LISTED},
        ("PodAffinity", _REQUIRED): {"maxItems": MAX_LISTED},
        ("PodAffinity", _PREFERRED): {"maxItems": MAX_LISTED},
        ("LabelSelector", "matchExpressions"): {"maxItems": MAX_LISTED},
    }
