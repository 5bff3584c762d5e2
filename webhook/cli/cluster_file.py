"""What a decision needs to know of a cluster, from a file instead of an API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from webhook.errors import NotSynced, UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """Labels by namespace, and the default PriorityClass. It stays what it was when it was read."""

    path: Path
    namespaces: Mapping[str, Mapping[str, str]]
    default_priority_class: str | None

    def peek(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace, None if the file does not have it."""
        return self.namespaces.get(name)

    async def labels(self, name: str) -> Mapping[str, str]:
        """As `peek`, but raises NotSynced: labels that nobody knows are never guessed."""
        found = self.namespaces.get(name)
        if found is None:
            raise NotSynced(f"namespace {name}: {self.path} does not have it; add it there")
        return found

    async def live(self, name: str, *, anew: bool = False) -> Mapping[str, str]:  # noqa: ARG002
        """As `labels`: a file has nothing newer."""
        return await self.labels(name)


def read_cluster_file(path: Path) -> ClusterFile:
    """Read Namespace and PriorityClass objects, as `kubectl get ns,priorityclass -o yaml` prints.

    YAML or JSON, one document or several, single objects or Lists. Every namespace carries its
    own name as a label, as in a cluster. Raises UnreadableInput with every problem.
    """
    try:
        documents = [*yaml.safe_load_all(path.read_bytes())]
    except OSError as error:
        raise UnreadableInput([f"{path}: {error.strerror}"]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises ValueError for a date that there is not.
        raise UnreadableInput([f"{path}: not YAML: {error}"]) from error
    namespaces: dict[str, dict[str, str]] = {}
    defaults: dict[str, int] = {}
    problems: list[str] = []
    for number, seen in enumerate(_objects(documents), start=1):
        kind, name = seen.get("kind"), _member(seen, "metadata").get("name")
        if kind not in ("Namespace", "PriorityClass") or not isinstance(name, str):
            problems.append(
                f"{path}: object {number} is {kind} {name}; want Namespaces and PriorityClasses"
            )
        elif kind == "Namespace":
            labels = _member(_member(seen, "metadata"), "labels")
            if not all(isinstance(text, str) for pair in labels.items() for text in pair):
                problems.append(
                    f"{path}: namespace {name}: a label that is no text; put it in quotes"
                )
            namespaces[name] = {"kubernetes.io/metadata.name": name, **labels}
        elif seen.get("globalDefault") is True:
            value = seen.get("value")
            defaults[name] = value if isinstance(value, int) else 0
    if problems:
        raise UnreadableInput(problems)
    # Of several the Priority admission plugin takes the lowest value.
    default = min(defaults, key=lambda name: (defaults[name], name), default=None)
    return ClusterFile(path, namespaces, default)


def _objects(documents: list[Any]) -> Iterator[dict[str, Any]]:
    for document in documents:
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            yield from _objects(document["items"])
        elif document is not None:
            yield document if isinstance(document, dict) else {}


def _member(holder: dict[str, Any], key: str) -> dict[str, Any]:
    found = holder.get(key)
    return found if isinstance(found, dict) else {}
