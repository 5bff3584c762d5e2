"""A Kubernetes object with the place that it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.api_paths import kubectl_name
from webhook.policy import yaml_tree
from webhook.shortening import one_line

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path

# The file name in messages for an object from an API server, instead of file:line:column.
ANSWERED: Final = "cluster"


@dataclass(frozen=True, slots=True)
class Object:
    """One object. Messages identify it by its title and its place.

    `default_namespace` is that of an object that names none.
    """

    file: str
    value: JsonObject
    _node: yaml_tree.Node | None = field(default=None, repr=False, compare=False)
    default_namespace: str = ""

    @property
    def kind(self) -> str:
        return str(self.value["kind"])

    @property
    def is_own_run(self) -> bool:
        """True if it is a Fairlead Run, whose pods do not come from a single template."""
        version = str(self.value.get("apiVersion"))
        return self.kind == names.RUN_KIND and version.startswith(names.PREFIX)

    @property
    def metadata(self) -> JsonObject:
        """Its metadata; empty if absent or invalid."""
        metadata = self.value.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def is_labelled(self) -> bool:
        """True if its own labels name a run; its pods get labels only from their template."""
        labels = self.metadata.get("labels")
        return isinstance(labels, dict) and names.RUN in labels

    @property
    def name(self) -> str:
        """Its name; with generateName, the prefix and a star."""
        name, prefix = self.metadata.get("name"), self.metadata.get("generateName")
        if isinstance(name, str) and name:
            return name
        return f"{prefix}*" if isinstance(prefix, str) and prefix else "(no name)"

    @property
    def namespace(self) -> str:
        namespace = self.metadata.get("namespace")
        return namespace if isinstance(namespace, str) and namespace else self.default_namespace

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def reference(self) -> str:
        """The object as kubectl names it: pod/a, job.batch/train."""
        group = str(self.value.get("apiVersion")).rpartition("/")[0]
        return one_line(kubectl_name(group, self.kind, self.name))

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        """Return file:line:column of a path in it, or of the nearest parent that exists.

        `at_key`: the position of the field's name instead of its value.
        """
        if self._node is None:
            return self.file
        line, column = yaml_tree.locate(self._node, path, at_key=at_key)
        return f"{self.file}:{line}:{column}"


def from_answer(version: str, kind: str, value: JsonObject) -> Object:
    """Return an object from an API server's answer; in a list it has no kind of its own."""
    return Object(ANSWERED, {**value, "apiVersion": version, "kind": kind})
