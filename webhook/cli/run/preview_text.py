"""What `fairlead run preview` prints for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.cli.explain_text import field_rows, fields_title, warning_lines
from webhook.cli.layout import table
from webhook.cli.run import placement_text
from webhook.cli.verdict import coloured, verdict
from webhook.cli.yaml_out import yaml_line
from webhook.placement import nodes as nodes_of
from webhook.placement import pod as pods
from webhook.placement.trace import apart
from webhook.run.rendezvous.framework import FILES
from webhook.workloads.template import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.run.previewed import Group
    from webhook.cli.run.run_files import Planned
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan

# A longer value is cut in its middle: TF_CONFIG ends with the replica's own place.
_VALUE: Final = 80
_END: Final = 40
_OWN: Final = (names.PREFIX, names.MANAGED_BY, names.DEFAULT_CONTAINER)


def lines(planned: Planned, groups: Sequence[Group], nodes: Sequence[Node] | None) -> Iterator[str]:
    """The preview of one run, line by line."""
    plan = planned.plan
    count = sum(len(group.indexes) for group in groups)
    framework = f" on {plan.run.spec.framework}" if plan.run.spec.framework else ""
    yield (
        click.style(f"Run/{plan.run.name} in {plan.run.namespace}: ", bold=True)
        + f"{plan.run.spec.kind}{framework}, {count} pod{'s' if count > 1 else ''}"
    )
    yield from table([["from", planned.place], *_objects(plan)], 2)
    for group in groups:
        yield ""
        yield from _group(group, nodes)


def subject(group: Group) -> str:
    """Which replicas they are: worker 0-1, 3-6."""
    if group.plan.run.spec.serving:
        return "the Deployment's pod"
    return f"{group.role} {ranges(group.indexes)}"


def _objects(plan: Plan) -> Iterator[list[str]]:
    """What is made beside the pods."""
    run, service = plan.run, plan.service()
    ports = ", ".join(_port(port) for port in service["spec"].get("ports", ()))
    if run.spec.serving:
        yield ["Deployment", f"{run.name}, of one pod, which is recreated"]
        yield ["Service", f"{run.name}, {ports}"]
        yield ["address", str(plan.needs.address)]
        return
    yield ["Service", f"{run.name}, headless, {ports or 'without ports'}"]
    if config_map := plan.config_map():
        files = ", ".join(config_map["data"])
        yield ["ConfigMap", f"{config_map['metadata']['name']}: {files}, at {FILES}"]
    if plan.keys_secret:
        yield ["Secret", f"{plan.keys_secret}: SSH keys, at {plan.shared.ssh_keys_at}"]


def _port(port: JsonObject) -> str:
    target = port.get("targetPort", port["port"])
    return f"port {port['port']}" + (f" to {target}" if target != port["port"] else "")


def _group(group: Group, nodes: Sequence[Node] | None) -> Iterator[str]:
    decision = group.decision
    head = subject(group)
    if len(group.indexes) > 1:
        head += f" ({len(group.indexes)} pods)"
    said = coloured(decision, verdict(decision)) if decision else "as the run asks"
    yield "  " + click.style(f"{head}: ", bold=True) + said
    yield from table([*_rows(group, nodes)], 4)
    sections = [("Environment", _environment(group))]
    if decision and decision.trace:
        sections.insert(0, (fields_title(decision), field_rows(decision.trace)))
    for title, rows in sections:
        if rows:
            yield ""
            yield "    " + click.style(title, bold=True)
            yield from table(rows, 6)
    yield from (line and f"  {line}" for line in warning_lines(group.warnings))


def _rows(group: Group, nodes: Sequence[Node] | None) -> Iterator[list[str]]:
    """The main container and the placement that the pods would have."""
    if group.decision and not group.allowed:
        yield ["because", group.decision.reason.removeprefix("fairlead: ")]
    pod = group.patched(group.pod)
    main = group.template_cache.main
    yield ["container", f"{main['name']}, {main.get('image')}"]
    if main.get("resources"):
        yield ["resources", yaml_line(main["resources"])]
    metadata = pod["metadata"]
    for field in ("labels", "annotations"):
        own = {k: v for k, v in metadata.get(field, {}).items() if not k.startswith(_OWN)}
        if own:
            yield [field, yaml_line(own)]
    if capacity := metadata["annotations"].get(names.CAPACITY):
        yield ["capacity", capacity]
    yield from placement_text.rows(pod["spec"])
    if nodes is not None:
        survey = nodes_of.survey(pods.read(pod), nodes)
        left = str(len(survey.admitted)) if survey.admitted else click.style("0", fg="red")
        yield ["nodes", f"{left} of {survey.total} admit it"]


def _environment(group: Group) -> list[list[str]]:
    """The variables of the first pod, and of the last where they differ."""
    first, last = (group.told(index) for index in (group.indexes[0], group.indexes[-1]))
    rows = []
    for name, value in first.env.items():
        if name in group.template_cache.own:
            rows.append([name, "the container's own is kept"])
            continue
        rows.append([name, _short(value)])
        other = last.env[name]
        if other != value:
            shown = _short(other)
            if shown == _short(value):
                rows[-1][1], shown = apart(value, other, _VALUE)
            rows.append(["", f"{shown} (of {group.role} {group.indexes[-1]})"])
    main = group.template_cache.main
    if first.command and not (main.get("command") or main.get("args")):
        rows.append(["command", " ".join(first.command)])
    return rows


def _short(value: str) -> str:
    if len(value) <= _VALUE:
        return value
    return f"{value[: _VALUE - _END]}…{value[-_END:]}"
