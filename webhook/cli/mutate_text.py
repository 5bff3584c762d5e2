"""What `fairlead mutate` prints of decisions."""

from __future__ import annotations

import copy
import difflib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from webhook import names
from webhook.cli import excepted
from webhook.cli.decisions import decisions
from webhook.cli.layout import table
from webhook.cli.verdict import coloured, cure, took_part, verdict
from webhook.cli.yaml_out import yaml_documents, yaml_text
from webhook.placement import nodes as nodes_of
from webhook.placement import pod as pods
from webhook.workloads.find import pod_templates
from webhook.workloads.object import Object
from webhook.workloads.template import at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.cli.offline import Offline
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject

# Set by the API server; noise in a diff, and refused in what is applied.
_NOT_SHOWN = ("managedFields",)


class Printer:
    """Prints decisions; warnings, notes and rejections go to stderr."""

    def __init__(
        self, offline: Offline, decided: Sequence[Replicas], nodes: Sequence[Node] | None
    ) -> None:
        self._offline = offline
        self._decided = decided
        self._nodes = nodes
        # Whether an object was not printed that should have been.
        self.withheld = False

    def diff(self) -> None:
        """A unified diff of each template or pod, under a line that says what becomes of it."""
        for number, each in enumerate(self._decided):
            if number:
                click.echo()
            said = coloured(each.decision, verdict(each.decision))
            click.echo(click.style(f"{each.subject}: ", bold=True) + said)
            if each.decision.result == "not-a-run":
                click.echo(f"  {cure(each.template)}")
            if self._nodes is not None:
                click.echo(f"  {self._left(each, self._nodes)}")
            self._aside(each)
            for line in _diff(each):
                click.echo(line)

    def names(self) -> None:
        """One line for each kind of pods."""
        rows = []
        for each in self._decided:
            row = [each.subject, coloured(each.decision, each.decision.result)]
            if self._nodes is not None:
                row.append(self._left(each, self._nodes))
            rows.append([*row, ", ".join(took_part(each.decision))])
        for line in table(rows, 0):
            click.echo(line)
        for each in self._decided:
            self._aside(each)

    def patches(self) -> None:
        """The JSON Patch of each pod, as one JSON list."""
        found = [self._patch(each) for each in self._decided]
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        for each in self._decided:
            self._aside(each)

    def objects(self, *, as_json: bool) -> None:
        """All objects, with their templates as the pods would be.

        Left out are those whose pods would be rejected, and those that the webhook would refuse or
        change as they would be printed.
        """
        for each in self._decided:
            self._aside(each)
        kept: list[JsonObject] = []
        rejected: list[str] = []
        for source in self._offline.objects:
            groups = [each for each in self._decided if each.template.source is source]
            if not all(each.decision.allowed for each in groups):
                rejected.append(source.title)
            elif self._is_whole(source, groups) and (value := self._mutated(source, groups)):
                kept.append(value)
            else:
                self.withheld = True
        if rejected:
            titles = ", ".join(rejected)
            _tell("note", "yellow", f"not printed, for its pods would be rejected: {titles}")
        if not as_json:
            click.echo(yaml_documents(kept), nl=False)
            return
        whole = {"apiVersion": "v1", "kind": "List", "items": kept} if len(kept) != 1 else kept[0]
        click.echo(json.dumps(whole, indent=2, ensure_ascii=False))

    def _is_whole(self, source: Object, groups: Sequence[Replicas]) -> bool:
        """Whether all templates of an object were decided on; of another its error was told."""
        decided = [each.template for each in groups]
        return all(
            template in decided for template in self._offline.templates if template.source is source
        )

    def _mutated(self, source: Object, groups: Sequence[Replicas]) -> JsonObject | None:
        """The object as its pods would be, or None, after the error was told.

        It is decided on once more: what the webhook would not leave as it is, is not printed.
        """
        value = copy.deepcopy(source.value)
        for template in self._offline.templates:
            if template.source is source:
                alike = [each for each in groups if each.template is template]
                if len({_printed(each) for each in alike}) > 1:
                    self._withhold(source, alike)
                    return None
                value = _replaced(value, alike[0])
        if isinstance(metadata := value.get("metadata"), dict):
            value["metadata"] = _shown(metadata)
        printed = Object(source.file, value)
        templates = pod_templates(printed)
        again = decisions(replace(self._offline, objects=[printed], templates=templates))
        changed = [each for each in again if each.decision.result in ("placed", "rejected")]
        if changed:
            self._withhold(source, changed)
        return None if changed else value

    def _withhold(self, source: Object, groups: Sequence[Replicas]) -> None:
        becomes = "; ".join(
            f"{each.pods or 'its pod'}: {each.decision.reason or verdict(each.decision)}"
            for each in groups
        )
        _tell(
            "error",
            "red",
            f"not printed: {source.title}: one template cannot be what all of its pods would be, "
            f"and the webhook would refuse or change some: {becomes}. -o patch prints each of them",
        )

    def _aside(self, replicas: Replicas) -> None:
        for line in excepted.notes(replicas.decision, replicas.arrival.now):
            _tell("note", "yellow", f"{replicas.subject}: {line}")
        for line in replicas.warnings:
            _tell("warning", "yellow", f"{replicas.subject}: {line}")
        if replicas.decision.result == "not-sent":
            _tell("warning", "yellow", f"{replicas.subject}: {replicas.decision.reason}")
        if not replicas.decision.allowed:
            _tell("rejected", "red", f"{replicas.subject}: {replicas.decision.reason}")

    def _left(self, replicas: Replicas, nodes: Sequence[Node]) -> str:
        before = nodes_of.survey(pods.read(replicas.arrival.pod), nodes)
        if replicas.decision.placement is None or not replicas.decision.allowed:
            return f"nodes: {len(before.admitted)} of {before.total}"
        after = nodes_of.survey(replicas.decision.placement, nodes)
        left = str(len(after.admitted)) if after.admitted else click.style("0", fg="red")
        return f"nodes: before {len(before.admitted)}, after {left} of {after.total}"

    def _patch(self, replicas: Replicas) -> JsonObject:
        result: JsonObject = {
            "object": replicas.template.source.title,
            "namespace": replicas.arrival.namespace,
            "pods": replicas.pods,
            "result": replicas.decision.result,
            "patch": list(replicas.decision.patch),
        }
        if replicas.decision.reason:
            result["reason"] = replicas.decision.reason
        if self._nodes is not None:
            placement = replicas.decision.placement or pods.read(replicas.arrival.pod)
            result["nodes"] = list(nodes_of.survey(placement, self._nodes).admitted)
        return result


def _tell(word: str, colour: str, text: str) -> None:
    click.secho(f"{word}: ", fg=colour, bold=True, nl=False, err=True)
    click.echo(text, err=True)


def _diff(replicas: Replicas) -> Iterator[str]:
    if replicas.decision.result != "placed":
        return
    template = replicas.template
    name = template.source.title
    if not template.is_pod:
        name += f" {template.labels_path.removesuffix('.metadata.labels')}"
    lines = difflib.unified_diff(
        _lines(template.template), _lines(replicas.mutated()), name, name, lineterm=""
    )
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        yield click.style(line, fg=colours.get(line[:1])) if line[:1] in colours else line


def _lines(template: JsonObject) -> list[str]:
    shown = {key: value for key, value in template.items() if key != "status"}
    if isinstance(metadata := shown.get("metadata"), dict):
        shown["metadata"] = _shown(metadata)
    return yaml_text(shown).splitlines()


def _shown(metadata: JsonObject) -> JsonObject:
    return {key: value for key, value in metadata.items() if key not in _NOT_SHOWN}


def _printed(replicas: Replicas) -> str:
    """The template that is printed for them, as text, without our own annotation."""
    template = replicas.mutated()
    metadata = template.get("metadata") or {}
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key != names.PLACEMENT
    }
    return json.dumps([{**metadata, "annotations": annotations}, template["spec"]], sort_keys=True)


def _replaced(value: JsonObject, replicas: Replicas) -> Any:
    """The object with the replicas' template in it."""
    path = replicas.template.path
    mutated = replicas.mutated()
    if not path:
        return mutated
    at(value, path[:-1])[path[-1]] = mutated
    return value
