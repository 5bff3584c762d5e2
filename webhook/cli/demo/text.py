"""The text of the demo, with placements as short lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from webhook.admission.arrival import DEFAULT_TOLERATION_SECONDS
from webhook.cli.layout import table, width, wrapped
from webhook.identity import identify
from webhook.placement import pod as pods

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from webhook.cli.demo.examples import AdmittedExample, DemoRun
    from webhook.placement.shapes import JsonObject, Requirement, Term, Toleration
    from webhook.policy.policy_set import Policy

_LABEL: Final = 9
_START: Final = 12
_FIELD: Final = 14
_SIGNS: Final = {"+": "green", "-": "red"}
_RESULTS: Final = {
    "placed": ("placed", "green"),
    "unchanged": ("unchanged", "cyan"),
    "left-alone": ("left alone", "yellow"),
    "rejected": ("rejected", "red"),
    "not-a-run": ("not part of a run", "bright_black"),
}
_OUTCOMES: Final = {"set": "green", "rejected": "red", "removed": "yellow", "dropped": "yellow"}
_NODE_CONDITIONS: Final = "node.kubernetes.io/"


class Line(NamedTuple):
    """One item of a field: ("tolerations", "nvidia.com/gpu:NoSchedule")."""

    field: str
    text: str


def placement_lines(pod: JsonObject) -> tuple[Line, ...]:
    """Return the placement fields of a v1.Pod, without the API server's defaults."""
    return tuple(_lines(pods.parse_pod(pod)))


def summarize(pod: JsonObject) -> str:
    """Return the placement of a v1.Pod in a few words: keys without their prefix."""
    placement = pods.parse_pod(pod)
    words = [f"{_short(key)}={value}" for key, value in placement.node_selector.items()]
    terms = placement.required or ()
    if any(term.get("matchFields") for term in terms):
        words.append("a node by its name")
    elif terms:
        words.append(f"one of {len(terms)} terms" if len(terms) > 1 else _term(terms[0]))
    words += [
        f"tolerates {_short(toleration.get('key') or 'everything')}"
        for toleration in placement.tolerations
        if not (toleration.get("key") or "").startswith(_NODE_CONDITIONS)
    ]
    return ", ".join(words) or "nothing"


def _short(key: str) -> str:
    return key.rpartition("/")[2]


def _lines(placement: pods.PodPlacement) -> Iterator[Line]:
    for key, value in placement.node_selector.items():
        yield Line("nodeSelector", f"{key}={value}")
    terms = placement.required or ()
    for number, term in enumerate(terms, 1):
        either = f"{number} of {len(terms)}: " if len(terms) > 1 else ""
        yield Line("nodeAffinity", f"{either}{_term(term)}")
    for text in _tolerations(placement.tolerations):
        yield Line("tolerations", text)
    for name, entries in placement.lists.items():
        for entry in entries:
            yield Line(name.removeprefix("affinity."), _compact(entry))
    for constraint in placement.topology_spread:
        yield Line("topologySpread", _compact(constraint))
    if placement.priority_class_name:
        yield Line("priorityClass", placement.priority_class_name)


def _term(term: Term) -> str:
    requirements = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
    return " and ".join(map(_requirement, requirements)) or "nothing, which matches no node"


def _requirement(requirement: Requirement) -> str:
    values = requirement.get("values")
    listed = f" [{', '.join(values)}]" if values else ""
    return f"{requirement.get('key')} {requirement.get('operator')}{listed}"


def _tolerations(tolerations: Sequence[Toleration]) -> Iterator[str]:
    conditions = []
    for toleration in tolerations:
        key = toleration.get("key") or ""
        seconds = toleration.get("tolerationSeconds")
        if seconds is not None and seconds == DEFAULT_TOLERATION_SECONDS.get(key):
            continue
        if key.startswith(_NODE_CONDITIONS) and toleration.get("operator") == "Exists":
            conditions.append(key.removeprefix(_NODE_CONDITIONS))
            continue
        value = f"={toleration['value']}" if toleration.get("value") else ""
        effect = f":{toleration['effect']}" if toleration.get("effect") else ""
        yield f"{key or 'every taint'}{value}{effect}"
    if conditions:
        yield f"node conditions: {', '.join(conditions)}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def title(text: str, paragraph: str) -> Iterator[str]:
    """Yield the first lines."""
    yield click.style(text, bold=True)
    yield from wrapped(paragraph, 0)


def policies(found: Sequence[Policy]) -> Iterator[str]:
    """Yield the names and descriptions of the policies."""
    labels = ["policies", *[""] * (len(found) - 1)]
    rows = [[label, one.name, one.description] for label, one in zip(labels, found, strict=True)]
    return table(rows, 0)


def example(shown: AdmittedExample, number: int) -> Iterator[str]:
    """Yield one example: before, after and the reasons."""
    yield _heading(number, shown.example.title, shown.example.name, *_RESULTS[shown.result])
    if shown.answer.pod is None:
        yield from _block("before", shown.before)
        yield from _coloured("after", f"rejected. {shown.answer.message}", "red")
    elif shown.before == shown.after:
        yield from _block("before", shown.before)
        yield _labelled("after", click.style("the same", dim=True))
    else:
        yield from _block("before", shown.before, {*shown.before} - {*shown.after}, "-")
        yield from _block("after", shown.after, {*shown.after} - {*shown.before}, "+")
    yield from _why(shown)


def run(shown: DemoRun, number: int) -> Iterator[str]:
    """Yield the Run's pods, each with its rank and its policies."""
    yield _heading(number, shown.title, shown.name, "preview", "cyan")
    label = "pods"
    rows = [
        [
            member.shown.example.name,
            f"rank {member.rank} of {member.size}",
            f"by {', '.join(member.policies)}",
        ]
        for member in shown.members
    ]
    for line in table(rows, _START):
        yield f"{label:{_START}}{line[_START:]}"
        label = ""


def agreement(count: int) -> Iterator[str]:
    """Yield that the engine gave the webhook's answers offline, too."""
    yield from wrapped(
        f"The engine gives all {count} answers offline, too: `fairlead mutate` and `fairlead "
        "explain` predict what the webhook does.",
        0,
    )


def hints(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the next commands to try, each with what it does."""
    yield click.style("Try next", bold=True)
    longest = max(len(command) for command, _ in found)
    for command, does in found:
        yield f"  {click.style(command.ljust(longest), fg='cyan')}  {does}"


def _heading(number: int, title: str, name: str, badge: str, colour: str) -> str:
    start, end = f"{number}  {title} ", f" {name}  "
    rule = click.style("─" * (width() - len(start) - len(end) - len(badge)), dim=True)
    return click.style(start, bold=True) + rule + end + click.style(badge, fg=colour, bold=True)


def _block(
    label: str, lines: Sequence[Line], changed: Collection[Line] = (), sign: str = " "
) -> Iterator[str]:
    """Yield the lines; those in `changed` have a sign and its colour."""
    if not lines:
        yield _labelled(label, click.style("no placement fields", dim=True))
    for line in lines:
        mark = sign if line in changed else " "
        start = f"{mark} {line.field:{_FIELD}} "
        for part in wrapped(line.text, _LABEL + 1 + len(start)):
            yield f"{label:{_LABEL}} {click.style(start + part, fg=_SIGNS.get(mark))}"
            label, start = "", " " * len(start)


def _why(shown: AdmittedExample) -> Iterator[str]:
    """Yield the entries in the form of `fairlead explain`."""
    rows = [
        [
            click.style(entry.outcome, fg=_OUTCOMES.get(entry.outcome)),
            f"{entry.policy}, {entry.part}" if entry.policy else "the pod itself",
            f"{entry.field}: {entry.reason}",
        ]
        for entry in shown.why
    ]
    label = "why"
    for line in table(rows, _START):
        yield f"{label:{_START}}{line[_START:]}"
        label = ""
    if not rows:
        reason = (
            shown.reason
            or "it has none of the labels that identify a run; `fairlead sources` lists them"
        )
        yield _labelled("why", reason)
    for warning in shown.answer.warnings:
        yield from _coloured("Warning:", warning, "yellow")


def _coloured(label: str, text: str, colour: str) -> Iterator[str]:
    for part in wrapped(text, _START):
        yield _labelled(label, click.style(part, fg=colour))
        label = ""


def _labelled(label: str, text: str) -> str:
    return f"{label:{_START}}{text}"


def _member(pod: JsonObject) -> str:
    """Return the pod's run and role."""
    metadata = pod["metadata"]
    identity = identify(metadata.get("labels") or {}, metadata.get("annotations") or {}, {})
    if identity is None:
        return "none"
    return f"{identity.run}/{identity.role}" if identity.role else identity.run
