"""The decisions on a planned Run's pods, equal ones grouped, as text, JSON and YAML."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.evaluation.answer import answer_of_all, nodes_of
from webhook.evaluation.replicas import Replicas, evaluate_template
from webhook.evaluation.room import with_room
from webhook.frameworks.framework import FILES, ReplicaEnv
from webhook.run.backends.engine_pods import PodReader
from webhook.run.backends.engines import find_engine
from webhook.run.effective_settings import effective_settings, setting_rows
from webhook.shortening import apart, count_text
from webhook.sources.kind_model import UNKNOWN
from webhook.text.explanation import field_rows, fields_title, first_line, warning_lines
from webhook.text.layout import aligned, section, titled
from webhook.text.value_text import placement_rows
from webhook.text.yaml_out import yaml_line
from webhook.workloads.template import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.decision.decision import Decision
    from webhook.evaluation.world import World
    from webhook.placement.shapes import JsonObject
    from webhook.run.pod_template_cache import PodTemplateCache
    from webhook.run_client.run_files import Planned

# A longer value is cut in its middle: TF_CONFIG ends with the replica's own place.
_VALUE: Final = 80
_END: Final = 40
_OWN: Final = (names.PREFIX, names.MANAGED_BY, names.DEFAULT_CONTAINER)


@dataclass(frozen=True)
class Group:
    """Replicas of one role with the same template and the same decision.

    decision: None without policies
    """

    planned: Planned
    replicas: Replicas
    decision: Decision | None

    @cached_property
    def pod(self) -> JsonObject:
        """The first of them, as it would be."""
        return self.pod_at(self.replicas.indexes[0])

    @cached_property
    def indexes(self) -> Sequence[int]:
        """Their indexes in their role."""
        return self.replicas.template.numbers_of(self.replicas.all_indexes)

    @cached_property
    def _reader(self) -> PodReader:
        run = self.planned.run
        return PodReader(run.name, run.spec.roles, find_engine(run))

    @cached_property
    def role(self) -> str:
        """Their role in the Run."""
        part = self.replicas.template.part
        return part if self.planned.plan else self._reader.role(self.pod) or part

    @property
    def template_cache(self) -> PodTemplateCache | None:
        """What they share; None if another engine creates them."""
        plan = self.planned.plan
        return plan.template_cache(self.role, self.indexes[0]) if plan else None

    @property
    def main(self) -> JsonObject:
        """Their main container."""
        if shared := self.template_cache:
            return shared.main
        containers: list[JsonObject] = self.pod["spec"]["containers"]
        name = self._reader.main_container(self.pod)
        return next(container for container in containers if container["name"] == name)

    @property
    def reasons(self) -> Sequence[str]:
        """Why they are not admitted; empty if they are, as far as that is known."""
        if self.decision is None or self.replicas.admitted:
            return ()
        return self.replicas.refusals or [self.decision.reason]

    def replica_env(self, index: int) -> ReplicaEnv:
        """Return the environment of one of them; empty if another engine sets it."""
        plan = self.planned.plan
        return plan.replica_env(self.role, index) if plan else ReplicaEnv()

    def pod_at(self, index: int) -> JsonObject:
        """Return one of them with the patch applied, without labels whose values are unknown."""
        pod = self.replicas.template.pod(index)
        if self.decision:
            pod = self.replicas.evaluation.as_written(pod)
        labels = pod["metadata"].get("labels", {})
        known_labels = {key: value for key, value in labels.items() if value != UNKNOWN}
        return (
            pod
            if known_labels == labels
            else {**pod, "metadata": {**pod["metadata"], "labels": known_labels}}
        )


def groups(planned: Planned, world: World, *, judged: bool = True) -> list[Group]:
    """Return the pods of a run, in the framework's order, equal ones grouped.

    `judged`: False if policies are unknown.
    """
    decided = [
        replicas
        for template in planned.templates(world.policies.sources)
        for replicas in evaluate_template(world, template, planned.run.namespace)
    ]
    return [
        Group(planned, replicas, replicas.decision if judged else None)
        for replicas in with_room(decided)
    ]


def answer_of_run(groups: Sequence[Group]) -> str:
    """Return what happens to the pods of a run, in one sentence."""
    if all(group.decision for group in groups):
        return answer_of_all([group.replicas for group in groups])
    count = sum(len(group.indexes) for group in groups)
    return f"{count_text(count, 'pod')} as the Run requests; policies unknown"


def lines(planned: Planned, groups: Sequence[Group]) -> Iterator[str]:
    """Yield the preview of one run, line by line."""
    run = planned.run
    yield from titled(f"Run/{run.name} in {run.namespace}", answer_of_run(groups))
    framework = f" on {run.spec.framework}" if run.spec.framework else ""
    count = sum(len(group.indexes) for group in groups)
    kind = f"{run.spec.kind}{framework}, {count_text(count, 'pod')}"
    rows = [["kind", kind], *setting_rows(effective_settings(run))]
    yield from aligned([["from", planned.place], *rows, *_objects(planned)], 2)
    for group in groups:
        yield ""
        yield from _group_lines(group, alone=len(groups) == 1)


def subject(group: Group) -> str:
    """Return which replicas they are: worker 0-1, 3-6."""
    if group.planned.run.spec.serving:
        return "the Deployment's pod"
    return f"{group.role} {ranges(group.indexes)}"


def _objects(planned: Planned) -> Iterator[list[str]]:
    run, plan = planned.run, planned.plan
    if plan is None:
        engine = find_engine(run)
        if engine and planned.made:
            yield [engine.kind, f"{run.name}, from which {engine.operator} creates the pods"]
        return
    service = plan.service()
    pairs = [
        (port["port"], port.get("targetPort", port["port"]))
        for port in service["spec"].get("ports", ())
    ]
    ports = ", ".join(f"port {port}" + (f" to {to}" if to != port else "") for port, to in pairs)
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


def _group_lines(group: Group, *, alone: bool) -> Iterator[str]:
    """Yield what the pods would be; `alone`: the answer about the run is that about them."""
    decision = group.decision
    head = subject(group)
    if len(group.indexes) > 1:
        head += f" ({len(group.indexes)} pods)"
    if alone:
        yield "  " + click.style(head, bold=True)
    else:
        # The answer about the run has the room.
        replicas = replace(group.replicas, shows_room=False)
        first = first_line(replicas, head) if decision else titled(head, _as_requested(group))
        yield from (f"  {line}" for line in first)
    yield from aligned([*_rows(group)], 4)
    if decision:
        yield from section(fields_title(decision), field_rows(decision.trace), 4)
    yield from section("Environment", _environment(group), 4)
    warnings = warning_lines(group.replicas.warnings if decision else ())
    yield from (line and f"  {line}" for line in warnings)


def _rows(group: Group) -> Iterator[list[str]]:
    """Yield the main container and the placement that the pods would have."""
    pod, main = group.pod, group.main
    yield ["container", f"{main['name']}, {main.get('image')}"]
    if main.get("resources"):
        yield ["resources", yaml_line(main["resources"])]
    metadata = pod["metadata"]
    last = group.pod_at(group.replicas.all_indexes[-1])["metadata"]
    for member in ("labels", "annotations"):
        pod_entries = _own(metadata.get(member, {}))
        if pod_entries:
            yield [member, yaml_line(pod_entries)]
        others = _own(last.get(member, {})).items()
        if other := {key: value for key, value in others if pod_entries.get(key) != value}:
            yield ["", f"{yaml_line(other)} (of {group.role} {group.indexes[-1]})"]
    if capacity := metadata.get("annotations", {}).get(names.CAPACITY):
        yield ["capacity", capacity]
    yield from placement_rows(pod["spec"])


def _as_requested(group: Group) -> str:
    return f"as the Run requests; {nodes_of(group.replicas.evaluation.nodes)}"


def _own(members: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in members.items() if not key.startswith(_OWN)}


def _environment(group: Group) -> list[list[str]]:
    """Return the variables of the first pod, and of the last where they differ."""
    first, last = (group.replica_env(index) for index in (group.indexes[0], group.indexes[-1]))
    rows, shared = [], group.template_cache
    for name, value in first.env.items():
        if shared and name in shared.own_variables:
            rows.append([name, "the container's own is kept"])
            continue
        rows.append([name, _short(value)])
        other = last.env[name]
        if other != value:
            shown = _short(other)
            if shown == _short(value):
                rows[-1][1], shown = apart(value, other, _VALUE)
            rows.append(["", f"{shown} (of {group.role} {group.indexes[-1]})"])
    main = group.main
    if first.command and not (main.get("command") or main.get("args")):
        rows.append(["command", " ".join(first.command)])
    return rows


def _short(value: str) -> str:
    if len(value) <= _VALUE:
        return value
    return f"{value[: _VALUE - _END]}…{value[-_END:]}"


def manifests(planned: Planned, groups: Sequence[Group]) -> Iterator[JsonObject]:
    """Yield all objects with the patches applied, in the order of creation, without rejected pods.

    The Secret is left out, because its keys are generated at creation. The object of a delegated
    Run is as the controller creates it; its pods have no names, which the engine chooses.
    """
    plan = planned.plan
    if planned.made:
        yield planned.made.value
    if plan:
        if config_map := plan.config_map():
            yield config_map
        yield plan.service()
        if plan.run.spec.serving:
            yield plan.deployment()
    for group in groups:
        if not group.reasons:
            yield from map(group.pod_at, group.replicas.all_indexes)
