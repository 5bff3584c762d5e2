"""The pods of any workload, for warnings on it: by its kind, and a Run's by its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.controller.readings import typed
from webhook.run.plan import plan
from webhook.workloads.find import pod_templates
from webhook.workloads.object import Object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.admission.foreseen import Pods
    from webhook.placement.shapes import JsonObject
    from webhook.run.plan import Plan

# Where a message would name a file.
_NO_FILE: Final = "the API server"


@dataclass(frozen=True, slots=True)
class _Role:
    """The replicas of one role of a Run, as its controller makes them."""

    plan: Plan
    part: str
    count: int

    @property
    def made(self) -> Callable[[int], object]:
        """Each replica is told something else."""
        return lambda index: index

    def pod(self, index: int) -> JsonObject:
        """The pod of its first attempt."""
        return self.plan.pod(self.part, index, 0)


def pods_of(workload: dict[str, Any]) -> Sequence[Pods]:
    """The pods that come of a workload, one entry a template; none if it makes no pods.

    Raises InvalidRun if it is a Run of which none can be made.
    """
    if not isinstance(workload.get("kind"), str):
        return []
    group, _, _ = str(workload.get("apiVersion")).partition("/")
    if (group, workload.get("kind")) == (names.GROUP, names.RUN_KIND):
        return _of_run(plan(typed(workload)))
    return pod_templates(Object(_NO_FILE, workload))


def _of_run(made: Plan) -> Sequence[Pods]:
    if made.run.spec.serving:
        return pod_templates(Object(_NO_FILE, made.deployment()))
    return [_Role(made, role, spec.count) for role, spec in made.run.spec.roles.items()]
