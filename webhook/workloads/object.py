"""One Kubernetes object, with the place that it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.policy import nodes

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path

# What stands for file:line:column of an object that an API server answered.
ANSWERED: Final = "cluster"


@dataclass(frozen=True, slots=True)
class Object:
    """One object. In messages it goes by its title, and by its place."""

    file: str
    value: JsonObject
    _node: nodes.Node | None = field(default=None, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """What it is: Job."""
        return str(self.value["kind"])

    @property
    def is_own_run(self) -> bool:
        """Whether it is a Run of ours, whose pods no one template makes."""
        version = str(self.value.get("apiVersion"))
        return self.kind == names.RUN_KIND and version.startswith(names.PREFIX)

    @property
    def metadata(self) -> JsonObject:
        """Its metadata; empty if there is none of the right shape."""
        found = self.value.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def is_labelled(self) -> bool:
        """Whether its own labels name a run, which its pods get only from their template."""
        labels = self.metadata.get("labels")
        return isinstance(labels, dict) and names.RUN in labels

    @property
    def name(self) -> str:
        """Its name; if the API server is to make one, that with a star at its end."""
        name, prefix = self.metadata.get("name"), self.metadata.get("generateName")
        if isinstance(name, str) and name:
            return name
        return f"{prefix}*" if isinstance(prefix, str) and prefix else "(no name)"

    @property
    def namespace(self) -> str:
        """The namespace that it gives; empty if it gives none."""
        found = self.metadata.get("namespace")
        return found if isinstance(found, str) else ""

    @property
    def title(self) -> str:
        """Kind and name: Job/train."""
        return f"{self.kind}/{self.name}"

    def place(self, path: Path = (), *, at_key: bool = False) -> str:
        """file:line:column of a path in it, or of the nearest parent that is there.

        `at_key`: of the field's name, where its value stands beside it.
        """
        if self._node is None:
            return self.file
        line, column = nodes.locate(self._node, path, at_key=at_key)
        return f"{self.file}:{line}:{column}"


def answered(version: str, kind: str, value: JsonObject) -> Object:
    """An object as an API server answered it; within a list it does not say what it is."""
    return Object(ANSWERED, {**value, "apiVersion": version, "kind": kind})
