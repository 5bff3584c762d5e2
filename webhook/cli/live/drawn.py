"""The pod templates of an object of the cluster; of a Run those that its controller would make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.cli.diff.runs import plan_of
from webhook.cli.run.previewed import pod_of
from webhook.workloads.find import pod_templates
from webhook.workloads.object import Object
from webhook.workloads.template import Made, PodTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.run.plan import Plan
    from webhook.workloads.template import Maker

_REPLICAS = ("spec", "replicas")


def templates_of(source: Object) -> list[PodTemplate]:
    """Its templates, in order; none if it makes no pods. Raises InvalidRun."""
    if not source.is_own_run:
        return pod_templates(source)
    return list(_of_run(source, plan_of(source.value, source.namespace)))


def _of_run(source: Object, plan: Plan) -> Iterator[PodTemplate]:
    """A template for each role, and for each replica that has a text of its own."""
    for role, count in plan.gang.counts.items():
        usual = [index for index in range(count) if (role, index) not in plan.special]
        special = [index for index in range(count) if (role, index) in plan.special]
        if usual:
            yield _template(source, plan, role, role, usual)
        for index in special:
            yield _template(source, plan, role, f"{role} {index}", [index])


def _template(source: Object, plan: Plan, role: str, part: str, indexes: list[int]) -> PodTemplate:
    first = pod_of(plan, role, indexes[0])
    # The Run has no such pod in its text: it is drawn where its role stands.
    value: dict[str, Any] = {
        "apiVersion": source.value["apiVersion"],
        "kind": source.kind,
        "metadata": source.metadata,
        "spec": {"replicas": {part: first}},
    }
    drawn = Object(source.file, value)
    return PodTemplate(drawn, (*_REPLICAS, part), part, len(indexes), _maker(plan, role, indexes))


def _maker(plan: Plan, role: str, indexes: list[int]) -> Maker:
    def made(at: int) -> Made:
        metadata = pod_of(plan, role, indexes[at])["metadata"]
        owners = metadata.get("ownerReferences") or [None]
        return Made(metadata.get("labels") or {}, metadata.get("annotations") or {}, owners[0])

    return made
