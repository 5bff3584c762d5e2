"""Read Kubernetes objects from files, folders and standard input, with their places.

From a file with Namespaces and PriorityClasses it makes the facts that decisions need.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook import names
from webhook.errors import NotSynced, UnreadableInput
from webhook.evaluation.plugins import READ_OBJECTS, PluginInputs, inputs_among
from webhook.evaluation.selecting_objects import is_selecting
from webhook.placement.plugin_tolerations import AnnotatedLabels
from webhook.policy import yaml_tree
from webhook.policy.findings import path_text
from webhook.policy.yaml_text import Unreadable, trees
from webhook.policy.yaml_tree import Disputed, ScalarValue
from webhook.server.folder import read_folder
from webhook.shortening import count_text
from webhook.workloads.object import Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


_DASH: Final = "-"
STDIN: Final = "<stdin>"
# Files by which a folder is the source of other objects, and what prints these.
_SOURCES: Final = {
    **dict.fromkeys(
        ("kustomization.yaml", "kustomization.yml", "Kustomization"), "kubectl kustomize"
    ),
    "Chart.yaml": "helm template",
}
_SUFFIXES: Final = (".yaml", ".yml", ".json")
# JSON of this length comes from a program, such as kubectl: line numbers do not help in it, and
# without them it is parsed in a fiftieth of the time.
_LONG: Final = 2**21
_YAML_1_1_TRUE: Final = ("y", "yes", "on")
_CLUSTER_KINDS: Final = ("Namespace", *READ_OBJECTS)


def read_files(paths: Iterable[Path], *, plain: bool = False) -> dict[str, bytes]:
    """Return the content of all files at the paths, as folders of policies are read.

    `-` is standard input. `plain`: no folder may have a kustomization or a chart, from which other
    documents are made; one of policies may list its files in it. Raises UnreadableInput.
    """
    files: dict[str, bytes] = {}
    for path in paths:
        if plain and (made := [*_made(path)]):
            raise UnreadableInput(made)
        stdin = str(path) == _DASH
        files |= {STDIN: sys.stdin.buffer.read()} if stdin else read_folder(path)
    return files


def read_objects(paths: Iterable[Path], passed: list[str] | None = None) -> list[Object]:
    """Return every object of the files, in order; the items of a List are objects of their own.

    `-` is standard input. Folders are read with all folders in them, files that end in .yaml, .yml
    or .json, by name; none of them may have a kustomization or a chart, from which other objects
    are made. Raises UnreadableInput with every problem, each with its place; with `passed` they are
    put there instead, and everything else is read.
    """
    objects: list[Object] = []
    problems: list[str] = [] if passed is None else passed
    for path in paths:
        if made := [*_made(path)]:
            problems += made
            continue
        for file in _files(path):
            try:
                stdin = str(file) == _DASH
                content = sys.stdin.buffer.read() if stdin else file.read_bytes()
            except OSError as error:
                problems.append(f"{file}: {error.strerror}")
            else:
                objects += objects_in(STDIN if stdin else str(file), content, problems)
    if problems and passed is None:
        raise UnreadableInput(problems)
    return objects


def count_kinds(kinds: Iterable[str]) -> str:
    """Return the number of objects by kind: 2 ConfigMaps, 1 Service."""
    return ", ".join(count_text(count, kind) for kind, count in Counter(kinds).items())


def _made(path: Path) -> Iterator[str]:
    """Yield a problem for each folder whose files are not the objects that it stands for."""
    if str(path) == _DASH:
        return
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if (command := _SOURCES.get(file.name)) and file.is_file():
            yield (
                f"{file}: the objects are made from this folder; give them on standard input: "
                f"{command} {file.parent} | fairlead …, with - for the file"
            )


def _files(path: Path) -> list[Path]:
    if str(path) == _DASH or not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def objects_in(file: str, content: bytes, problems: list[str]) -> Iterator[Object]:
    """Yield the objects in the content of a file; what cannot be read is among the problems."""
    if len(content) > _LONG and content.lstrip()[:1] == b"{":
        try:
            yield from _expanded(file, orjson.loads(content), None, problems)
        except orjson.JSONDecodeError:
            pass  # read as YAML its error has a place
        else:
            return
    try:
        for tree in trees(content.decode("utf-8-sig")):
            if tree.faults:
                problems += [_problem(file, fault.place, fault.message) for fault in tree.faults]
            elif (value := yaml_tree.value(tree.root, _settled)) is not None:
                yield from _expanded(file, value, tree.root, problems)
    except UnicodeDecodeError:
        problems.append(f"{file}: this is not UTF-8; save the file as UTF-8")
    except Unreadable as error:
        problems.append(_problem(file, error.place, str(error)))


def _problem(file: str, place: yaml_tree.Place, message: str) -> str:
    return f"{file}:{place[0]}:{place[1]}: {message}"


def _expanded(
    file: str, value: Any, node: yaml_tree.Node | None, problems: list[str], kind: str = ""
) -> Iterator[Object]:
    """Yield the object, or if it is a List, its items, which take its kind if they have none."""
    if isinstance(value, dict) and kind:
        value = {"kind": kind, **value}
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        place = Object(file, {}, node).place(("kind",))
        problems.append(f"{place}: want a Kubernetes object, with apiVersion and kind")
        return
    items = value.get("items")
    if not (value["kind"].endswith("List") and isinstance(items, list)):
        yield Object(file, value, node)
        return
    for at, item in enumerate(items):
        below = None if node is None else yaml_tree.find(node, ("items", at))
        yield from _expanded(file, item, below, problems, value["kind"].removesuffix("List"))


def _settled(disputed: ScalarValue) -> bool | int | float | str | None:
    """Return a scalar as kubectl reads it: by YAML 1.1, as sigs.k8s.io/yaml has it."""
    if not isinstance(disputed, Disputed):
        return disputed
    if disputed.meaning == "a boolean":
        return disputed.text.lower() in _YAML_1_1_TRUE
    text = disputed.text.replace("_", "")
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
    for read in (lambda: int(text, 8 if octal else 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    return disputed.text


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """Labels by namespace, and the default PriorityClass, as read once."""

    path: Path
    namespaces: Mapping[str, Mapping[str, str]]
    default_priority_class: str | None

    def peek(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, None if the file does not have it."""
        return self.namespaces.get(name)

    async def labels(self, name: str) -> Mapping[str, str]:
        """As `peek`, but raises NotSynced for an unknown namespace: labels are never guessed."""
        labels = self.namespaces.get(name)
        if labels is None:
            raise NotSynced(f"namespace {name}: {self.path} does not have it; add it there")
        return labels

    async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:  # noqa: ARG002
        """As `labels`: a file has nothing newer."""
        return await self.labels(name)


def read_cluster_file(path: Path) -> ClusterFile:
    """Return what the webhook needs of the objects of a file. Raises UnreadableInput."""
    objects = read_cluster_objects(path)
    return ClusterFile(path, namespaces_among(objects), default_priority_class(objects))


def read_cluster_objects(path: Path) -> list[Object]:
    """Read what `kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml` prints.

    YAML or JSON, one document or several, single objects or Lists. Raises UnreadableInput with
    every problem.
    """
    problems: list[str] = []
    objects = read_objects([path], problems)
    for manifest in objects:
        if manifest.kind not in _CLUSTER_KINDS or not manifest.metadata.get("name"):
            kinds = ", ".join(_CLUSTER_KINDS)
            problems.append(
                f"{manifest.place()}: want objects of {kinds} with their names, not "
                f"{manifest.title}"
            )
        elif manifest.kind == "Namespace":
            problems += [
                f"{manifest.place(('metadata', 'labels', key))}: {manifest.title}: "
                f"{path_text(('metadata', 'labels', key))}: want text, not {json.dumps(value)}; "
                "put it in quotes"
                for key, value in _labels(manifest)
                if not isinstance(value, str)
            ]
    if problems:
        raise UnreadableInput(problems)
    return objects


def namespaces_among(objects: Iterable[Object]) -> dict[str, AnnotatedLabels]:
    """Return the labels of the Namespaces among the objects, by name.

    Every namespace carries its own name as a label, as in a cluster.
    """
    return {
        manifest.name: AnnotatedLabels.of(
            {
                names.NAMESPACE_NAME: manifest.name,
                **{key: value for key, value in _labels(manifest) if isinstance(value, str)},
            },
            manifest.metadata.get("annotations"),
        )
        for manifest in objects
        if manifest.kind == "Namespace" and manifest.value.get("apiVersion", "v1") == "v1"
    }


def labels_in(path: Path) -> dict[str, AnnotatedLabels]:
    """Return the labels of a file's Namespaces, by name. Raises UnreadableInput."""
    return namespaces_among(read_cluster_objects(path))


def plugin_inputs(objects: Sequence[Object]) -> PluginInputs:
    """Return what PluginInputs has among objects; without any LimitRange, they are unknown."""
    return inputs_among(
        {**manifest.value, "metadata": {**manifest.metadata, "namespace": manifest.namespace}}
        for manifest in objects
        if manifest.kind in READ_OBJECTS or is_selecting(manifest.value)
    )


def default_priority_class(objects: Iterable[Object]) -> str | None:
    """Return the name of the globalDefault PriorityClass; of several the one of the lowest
    value."""
    # As the Priority admission plugin does.
    defaults = [
        (value if isinstance(value := manifest.value.get("value"), int) else 0, manifest.name)
        for manifest in objects
        if manifest.kind == "PriorityClass" and manifest.value.get("globalDefault") is True
    ]
    return min(defaults)[1] if defaults else None


def _labels(namespace: Object) -> Iterable[tuple[str, Any]]:
    labels = namespace.metadata.get("labels")
    return labels.items() if isinstance(labels, dict) else ()
