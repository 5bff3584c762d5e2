"""The decisions on a planned Run's pods, equal ones grouped, as text, JSON and YAML.

Longer than 300 lines: the groups, and the three forms in which they are printed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click
import jsonpatch

from webhook import names
from webhook.admission.audit import report
from webhook.cli.decisions import MAX_REPLICAS, same
from webhook.cli.explain_report import field_rows, fields_title, warning_lines
from webhook.cli.explanation import coloured, verdict
from webhook.cli.layout import table
from webhook.cli.live.value_text import placement_rows
from webhook.cli.yaml_out import yaml_line
from webhook.placement import nodes as nodes_of
from webhook.placement import pod as pods
from webhook.placement.pod_requests import requests
from webhook.placement.runtime_class import unread_class
from webhook.run.backends.engine_pods import PodReader
from webhook.run.backends.engines import find_engine
from webhook.run.effective_settings import effective_settings, setting_rows, settings_document
from webhook.run.rendezvous.framework import FILES, ReplicaEnv
from webhook.shortening import apart
from webhook.sources import SHIPPED
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.find import pod_templates
from webhook.workloads.template import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.admission.decision import Decision
    from webhook.cli.run.run_files import Planned
    from webhook.evaluation.world import Evaluation, World
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.run.model import Run
    from webhook.run.plan import Plan
    from webhook.run.pod_template_cache import PodTemplateCache
    from webhook.workloads.template import PodTemplate

# A longer value is cut in its middle: TF_CONFIG ends with the replica's own place.
_VALUE: Final = 80
_END: Final = 40
_OWN: Final = (names.PREFIX, names.MANAGED_BY, names.DEFAULT_CONTAINER)


@dataclass(slots=True)
class Group:
    """Replicas of one role with the same template and the same decision.

    pod: the first of them, as the webhook gets it; evaluation: None without policies.
    plan, template_cache: None if another engine creates the pods, and `make` returns one by index.
    """

    run: Run
    role: str
    main: JsonObject
    pod: JsonObject
    evaluation: Evaluation | None
    make: Callable[[int], JsonObject]
    plan: Plan | None = None
    template_cache: PodTemplateCache | None = None
    indexes: list[int] = field(default_factory=list)

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings that their author gets."""
        return self.evaluation.warnings if self.evaluation else ()

    @property
    def decision(self) -> Decision | None:
        """The decision on the first of them."""
        return self.evaluation.decision if self.evaluation else None

    @property
    def allowed(self) -> bool:
        """Whether they are admitted, as far as that is known."""
        return self.evaluation is None or self.evaluation.allowed

    @property
    def reasons(self) -> Sequence[str]:
        """Why they are not admitted."""
        if self.evaluation is None or self.allowed:
            return ()
        return self.evaluation.refusals or [self.evaluation.decision.reason]

    def replica_env(self, index: int) -> ReplicaEnv:
        """The environment of one of them; empty if another engine sets it."""
        return self.plan.replica_env(self.role, index) if self.plan else ReplicaEnv()

    def pods(self) -> Iterator[JsonObject]:
        """All of them, with the patch applied."""
        for index in self.indexes:
            yield self.patched(self.make(index))

    def patched(self, pod: JsonObject) -> JsonObject:
        """One of them with the patch applied, without labels whose values are unknown."""
        if self.decision is not None and self.decision.patch:
            patch = copy.deepcopy(list(self.decision.patch))
            pod = jsonpatch.apply_patch(copy.deepcopy(pod), patch)
        labels = pod["metadata"].get("labels", {})
        known = {key: value for key, value in labels.items() if value != UNKNOWN}
        return pod if known == labels else {**pod, "metadata": {**pod["metadata"], "labels": known}}


def groups(planned: Planned, world: World | None) -> list[Group]:
    """The pods of a run, in the framework's order, equal ones grouped.

    Equal replicas after the thousandth are treated like the last one before: policies distinguish
    replicas by index, and no policy lists a thousand.
    """
    found: list[Group] = []
    plan = planned.plan
    if plan is None:
        for template in engine_templates(planned, world):
            found += _engine_groups(planned.run, template, world)
        return found
    for role, count in plan.gang.counts.items():
        own: list[Group] = []
        last: Group | None = None
        for index in range(count):
            usual = (role, index) not in plan.special
            if index >= MAX_REPLICAS and usual and last is not None:
                last.indexes.append(index)
                continue
            group = _group(own, plan, role, index, world)
            group.indexes.append(index)
            last = group if usual else last
        found += own
    return found


def engine_templates(planned: Planned, world: World | None) -> Sequence[PodTemplate]:
    """The pod templates of the object that a delegated Run becomes; none of another Run."""
    if planned.made is None:
        return ()
    return pod_templates(planned.made, sources=world.policies.sources if world else SHIPPED)


def _engine_groups(run: Run, template: PodTemplate, world: World | None) -> list[Group]:
    found: list[Group] = []
    reader = PodReader(run.name, run.spec.roles, find_engine(run))
    count = max(template.count or 1, 1)
    for index in range(count):
        if index >= MAX_REPLICAS:
            found[-1].indexes.append(index)
            continue
        pod = template.pod(index)
        evaluation = world.evaluate(pod, run.namespace, led=template.led) if world else None
        group = next((each for each in found if _alike(each.evaluation, evaluation)), None)
        if group is None:
            main = reader.main_container(pod)
            containers = pod["spec"]["containers"]
            container = next(each for each in containers if each["name"] == main)
            role = reader.role(pod) or template.part
            group = Group(run, role, container, pod, evaluation, template.pod)
            found.append(group)
        group.indexes.append(index)
    return found


def _group(own: list[Group], plan: Plan, role: str, index: int, world: World | None) -> Group:
    """The group of a replica, which is among `own` afterwards."""
    template_cache, pod = plan.template_cache(role, index), pod_of(plan, role, index)
    evaluation = world.evaluate(pod, plan.run.namespace, led=False) if world else None
    for each in own:
        if each.template_cache is template_cache and _alike(each.evaluation, evaluation):
            return each

    def make(index: int) -> JsonObject:
        return pod_of(plan, role, index)

    group = Group(plan.run, role, template_cache.main, pod, evaluation, make, plan, template_cache)
    own.append(group)
    return group


def _alike(one: Evaluation | None, other: Evaluation | None) -> bool:
    if one is None or other is None:
        return one is other
    return same(one.decision, other.decision)


def first_pods_of(plan: Plan) -> Iterator[tuple[str, JsonObject]]:
    """The first pod of each role, with the Run's title."""
    return ((f"Run/{plan.run.name}", pod_of(plan, role, 0)) for role in plan.gang.counts)


def pod_of(plan: Plan, role: str, index: int) -> JsonObject:
    """A pod, as the webhook gets it; of a Deployment, as its ReplicaSet creates it."""
    if not plan.run.spec.serving:
        return plan.pod(role, index, 0)
    template = plan.deployment()["spec"]["template"]
    prefix = {"generateName": f"{plan.run.name}-", "namespace": plan.run.namespace}
    metadata = template["metadata"]
    labels = {**metadata.get("labels", {}), "pod-template-hash": UNKNOWN}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**prefix, **metadata, "labels": labels},
        "spec": template["spec"],
    }


def lines(planned: Planned, groups: Sequence[Group], nodes: Sequence[Node] | None) -> Iterator[str]:
    """The preview of one run, line by line."""
    run = planned.run
    count = sum(len(group.indexes) for group in groups)
    framework = f" on {run.spec.framework}" if run.spec.framework else ""
    yield (
        click.style(f"Run/{run.name} in {run.namespace}: ", bold=True)
        + f"{run.spec.kind}{framework}, {count} pod{'s' if count > 1 else ''}"
    )
    rows = setting_rows(effective_settings(run))
    yield from table([["from", planned.place], *rows, *_objects(planned)], 2)
    for group in groups:
        yield ""
        yield from _group_lines(group, nodes)


def subject(group: Group) -> str:
    """Which replicas they are: worker 0-1, 3-6."""
    if group.run.spec.serving:
        return "the Deployment's pod"
    return f"{group.role} {ranges(group.indexes)}"


def _objects(planned: Planned) -> Iterator[list[str]]:
    """The objects that are created beside the pods."""
    run, plan = planned.run, planned.plan
    if plan is None:
        engine = find_engine(run)
        if engine and planned.made:
            yield [engine.kind, f"{run.name}, from which {engine.operator} creates the pods"]
        return
    service = plan.service()
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


def _group_lines(group: Group, nodes: Sequence[Node] | None) -> Iterator[str]:
    decision = group.decision
    head = subject(group)
    if len(group.indexes) > 1:
        head += f" ({len(group.indexes)} pods)"
    outcome = coloured(decision, verdict(decision)) if decision else "as the Run requests"
    yield "  " + click.style(f"{head}: ", bold=True) + outcome
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
    if group.decision and group.decision.result in ("rejected", "not-sent"):
        yield ["because", group.decision.reason.removeprefix("fairlead: ")]
    pod = group.patched(group.pod)
    main = group.main
    yield ["container", f"{main['name']}, {main.get('image')}"]
    if main.get("resources"):
        yield ["resources", yaml_line(main["resources"])]
    metadata = pod["metadata"]
    last = _last(group)["metadata"]
    for member in ("labels", "annotations"):
        own = _own(metadata.get(member, {}))
        if own:
            yield [member, yaml_line(own)]
        others = _own(last.get(member, {})).items()
        if other := {key: value for key, value in others if own.get(key) != value}:
            yield ["", f"{yaml_line(other)} (of {group.role} {group.indexes[-1]})"]
    if capacity := metadata.get("annotations", {}).get(names.CAPACITY):
        yield ["capacity", capacity]
    yield from placement_rows(pod["spec"])
    if nodes is not None:
        placement, requested = pods.parse_pod(pod), requests(pod["spec"])
        survey = nodes_of.survey(placement, requested, nodes)
        left = str(len(survey.admitted)) if survey.admitted else click.style("0", fg="red")
        text = f"{left} of {survey.total} admit it"
        if unread := unread_class(placement, requested, nodes):
            text = f"unknown, RuntimeClass {unread} is not read; {text} without it"
        yield ["nodes", text]


def _last(group: Group) -> JsonObject:
    """The last pod of the group, with the patch applied."""
    return group.patched(group.make(group.indexes[-1]))


def _own(members: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations without those that Fairlead sets."""
    return {key: value for key, value in members.items() if not key.startswith(_OWN)}


def _environment(group: Group) -> list[list[str]]:
    """The variables of the first pod, and of the last where they differ."""
    first, last = (group.replica_env(index) for index in (group.indexes[0], group.indexes[-1]))
    rows = []
    for name, value in first.env.items():
        if group.template_cache and name in group.template_cache.own:
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
    """All objects with the patches applied, in the order of creation, without rejected pods.

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
        if group.allowed:
            yield from group.pods()


def explanation(
    planned: Planned, groups: Sequence[Group], nodes: Sequence[Node] | None
) -> dict[str, Any]:
    """One run: its objects, and for each group of replicas the first pod and its decision."""
    run, plan = planned.run, planned.plan
    return {
        "run": run.name,
        "namespace": run.namespace,
        "place": planned.place,
        "kind": run.spec.kind,
        "framework": run.spec.framework,
        "settings": settings_document(effective_settings(run)),
        "object": planned.made.value if planned.made else None,
        "service": plan.service() if plan else None,
        "configMap": plan.config_map() if plan else None,
        "secret": plan.keys_secret if plan else None,
        "deployment": plan.deployment() if plan and run.spec.serving else None,
        "address": plan.needs.address if plan else None,
        "replicas": [_group_document(group, nodes) for group in groups],
    }


def _group_document(group: Group, nodes: Sequence[Node] | None) -> dict[str, Any]:
    decision = group.decision
    pod = group.patched(group.pod)
    result: dict[str, Any] = {
        "role": group.role,
        "indexes": list(group.indexes),
        "result": decision.result if decision else None,
        "reason": decision.reason if decision else "",
        "policies": list(decision.policies) if decision else [],
        "trace": [entry._asdict() for entry in decision.trace] if decision else [],
        "audited": report(decision.audited) if decision and decision.audited else None,
        "warnings": list(group.warnings),
        "variables": dict(group.replica_env(group.indexes[0]).env),
        "pod": pod,
    }
    if nodes is not None:
        own, requested = pods.parse_pod(pod), requests(pod["spec"])
        unread = unread_class(own, requested, nodes)
        result["nodes"] = None if unread else list(nodes_of.survey(own, requested, nodes).admitted)
    return result
