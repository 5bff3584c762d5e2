"""Output of `fairlead preview`."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.cli.output import print_result, print_text, say
from webhook.evaluation.answer import answer_of, outcome_text
from webhook.evaluation.result import result_of
from webhook.evaluation.templates import templates_of
from webhook.evaluation.undecided import undecided_selector
from webhook.placement.pod import PodPlacement, parse_pod
from webhook.questions.decisions import decisions
from webhook.text.changes import changes, visible_metadata
from webhook.text.documents import as_one
from webhook.text.explanation import exception_lines
from webhook.text.layout import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.placement.shapes import JsonObject
    from webhook.questions.offline import Offline
    from webhook.workloads.object import Object

_HEAD: Final = ("namespace", "object", "pods", "answer")


def show(offline: Offline, decided: Sequence[Replicas], output: str) -> bool:
    """Print what `output` names; warnings, notes and rejections go to stderr.

    Return whether every object that should be printed was printed.
    """
    if output in ("name", "text", "patch"):
        print_result(
            output,
            json=lambda: {"pods": [result_of(replicas).document() for replicas in decided]},
            text=lambda: table(_HEAD, [*map(_row, decided)]),
            names=lambda: [replicas.template.source.reference for replicas in decided],
        )
    for number, replicas in enumerate(decided):
        if output == "diff" and number:
            click.echo()
        for word, line, colour in _aside(replicas, answered=output in ("diff", "text")):
            say(word, f"{replicas.subject}: {line}", colour)
        # A unified diff of each template or pod, below a line with its result.
        print_text(output, changes(replicas) if output == "diff" else ())
    return output not in ("yaml", "json") or _print_objects(offline, decided, output)


def _row(replicas: Replicas) -> tuple[str, str, str, str]:
    source = replicas.template.source
    return replicas.arrival.namespace, source.title, replicas.pods, answer_of(replicas)


def _aside(replicas: Replicas, *, answered: bool) -> Iterator[tuple[str, str, str]]:
    """Yield what stderr has beside a result: a word for its kind, a line, and a colour.

    `answered`: the result itself has the answer.
    """
    decision = replicas.decision
    for line in exception_lines(decision, replicas.arrival.now):
        yield "note", line, "yellow"
    for line in replicas.warnings:
        yield "warning", line, "yellow"
    if answered:
        return
    if decision.result == "not-sent":
        yield "warning", decision.reason, "yellow"
    for line in replicas.refusals:
        yield "refused", line, "red"
    if not decision.allowed:
        yield "rejected", decision.reason, "red"


def _print_objects(offline: Offline, decided: Sequence[Replicas], output: str) -> bool:
    """Print all objects as yaml or json, with their templates as the pods would be.

    Leaves out objects whose pods would be rejected, and those whose printed form the webhook
    would reject or change; return whether there are none of these.
    """
    kept: list[JsonObject] = []
    rejected: list[str] = []
    withheld = False
    for source in offline.objects:
        groups = [group for group in decided if group.template.source is source]
        if not all(group.admitted for group in groups):
            rejected.append(source.title)
        elif (value := _mutated(offline, source, groups)) is not None:
            kept.append(value)
        else:
            withheld = True
    if rejected:
        titles = ", ".join(rejected)
        say("note", f"not printed, because its pods would be rejected: {titles}", "yellow")
    print_result(output, json=lambda: as_one(kept), yaml=lambda: kept)
    return not withheld


def _mutated(offline: Offline, source: Object, groups: Sequence[Replicas]) -> JsonObject | None:
    """Return the object with the templates of its changed pods; None after an error was printed.

    The result is evaluated again: an object of which the webhook would make something else is not
    printed.
    """
    source_templates = [template for template in offline.templates if template.source is source]
    evaluated = [group.template for group in groups]
    if any(template not in evaluated for template in source_templates):
        return None
    for unknown in filter(None, map(undecided_selector, groups)):
        say("error", f"not printed: {source.title}: {unknown.reason}; {unknown.remedy}")
        return None
    value = copy.deepcopy(source.value)
    for template in source_templates:
        alike = [group for group in groups if group.template is template]
        if len({_printed(group) for group in alike}) > 1:
            _withhold(source, alike)
            return None
        value = template.put(value, alike[0].mutated())
    if isinstance(metadata := value.get("metadata"), dict):
        value["metadata"] = visible_metadata(metadata)
    printed = replace(source, value=value)
    templates = templates_of(printed, offline.objects, offline.policies.sources)
    again = decisions(replace(offline, objects=[printed], templates=templates))
    wanted = [_stored(group) for group in groups]
    changed = [
        group
        for group in again
        if group.decision.result == "rejected"
        or (group.decision.result == "placed" and _stored(group) not in wanted)
    ]
    if changed:
        _withhold(source, changed)
    return None if changed else value


def _withhold(source: Object, groups: Sequence[Replicas]) -> None:
    cause = (
        "no field of it expresses what policies set"
        if any(group.template.built for group in groups)
        else "its pods would differ from each other, and one template cannot express that"
    )
    becomes = "; ".join(f"{group.pods or 'its pod'}: {outcome_text(group)}" for group in groups)
    say("error", f"not printed: {source.title}: {cause}: {becomes}. -o patch prints each of them")


def _stored(replicas: Replicas) -> PodPlacement:
    """Return their placement, without what says who set it.

    A taint has one key, so the order of tolerations of different keys does not matter.
    """
    placement = parse_pod(replicas.evaluation.stored())._replace(annotations={})
    if not all(toleration.get("key") for toleration in placement.tolerations):
        return placement
    return placement._replace(
        tolerations=sorted(placement.tolerations, key=lambda toleration: toleration["key"])
    )


def _printed(replicas: Replicas) -> str:
    """Their printed template as text, without the placement annotation."""
    template = replicas.mutated()
    metadata = template.get("metadata") or {}
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key != names.PLACEMENT
    }
    return json.dumps([{**metadata, "annotations": annotations}, template["spec"]], sort_keys=True)
