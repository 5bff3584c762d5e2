"""A CustomResourceDefinition as an object, from names, columns and a schema."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from webhook import names

Json = dict[str, Any]
TEXT: Final = {"type": "string"}


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
        """The column as it stands in a definition."""
        column: Json = {"name": self.header, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": 1} if self.wide else column


def definition(called: Called, columns: tuple[Column, ...], schema: Json) -> Json:
    """The definition, as `kubectl apply` takes it (apiextensions.k8s.io/v1).

    schema: of the whole object, structural; its status is a subresource.
    """
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
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
