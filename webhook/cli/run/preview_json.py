"""What `fairlead run preview` prints for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.admission.audit import report
from webhook.placement import nodes as nodes_of
from webhook.placement import pod as pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.run.previewed import Group
    from webhook.cli.run.run_files import Planned
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan


def manifests(plan: Plan, groups: Sequence[Group]) -> Iterator[JsonObject]:
    """All objects as they would be, in the order in which they are made; no pod is rejected.

    The Secret is not among them, for its keys are made at the time.
    """
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
    """One run: its objects, and of each kind of replica the first pod and why it is so."""
    plan = planned.plan
    serving = plan.run.spec.serving
    return {
        "run": plan.run.name,
        "namespace": plan.run.namespace,
        "place": planned.place,
        "kind": plan.run.spec.kind,
        "framework": plan.run.spec.framework,
        "service": plan.service(),
        "configMap": plan.config_map(),
        "secret": plan.keys_secret,
        "deployment": plan.deployment() if serving else None,
        "address": plan.needs.address,
        "replicas": [_group(group, nodes) for group in groups],
    }


def _group(group: Group, nodes: Sequence[Node] | None) -> dict[str, Any]:
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
        "variables": dict(group.told(group.indexes[0]).env),
        "pod": pod,
    }
    if nodes is not None:
        result["nodes"] = list(nodes_of.survey(pods.read(pod), nodes).admitted)
    return result
