"""What policies change in a pod template, as a unified diff."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

from webhook.policy.findings import path_text
from webhook.text.explanation import cure, first_line
from webhook.text.layout import wrapped
from webhook.text.yaml_out import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.evaluation.replicas import Replicas
    from webhook.placement.shapes import JsonObject


def changes(replicas: Replicas) -> Iterator[str]:
    """Yield what happens to the pods, and a unified diff of their template."""
    yield from first_line(replicas)
    if replicas.decision.result == "not-a-run":
        yield from (f"  {line}" for line in wrapped(cure(replicas.template), 2))
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff_lines(replicas):
        yield click.style(line, fg=colours.get(line[:1])) if line[:1] in colours else line


def diff_lines(replicas: Replicas) -> Iterator[str]:
    """Yield a unified diff of the pods' template, before and after; nothing if nothing changes."""
    if replicas.decision.result != "placed":
        return
    template = replicas.template
    name = template.source.title
    if not template.is_pod:
        name += f" {path_text(template.path)}"
    yield from difflib.unified_diff(
        _lines(template.template), _lines(replicas.mutated()), name, name, lineterm=""
    )


def _lines(template: JsonObject) -> list[str]:
    shown = {key: value for key, value in template.items() if key != "status"}
    if isinstance(metadata := shown.get("metadata"), dict):
        shown["metadata"] = visible_metadata(metadata)
    return yaml_text(shown).splitlines()


def visible_metadata(metadata: JsonObject) -> JsonObject:
    # The API server sets it: irrelevant in a diff, and rejected when applied.
    return {key: value for key, value in metadata.items() if key != "managedFields"}
