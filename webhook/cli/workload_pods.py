"""The future pods of any workload, for warnings: by its kind, or by the plan of a Run.

The pods of a delegated Run are those of the object that it becomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.controller.stored_run import typed
from webhook.errors import InvalidRun
from webhook.pod_schema.field_checks import MOST
from webhook.policy.findings import path_text
from webhook.run import template_faults as of_runs
from webhook.run.backends.engine_object import delegated_object
from webhook.run.plan import plan
from webhook.run.run_documents import placeholder_name, without_nulls
from webhook.sources import SHIPPED
from webhook.workloads.find import pod_templates
from webhook.workloads.object import Object
from webhook.workloads.template import at
from webhook.workloads.trainjob import runtime_path
from webhook.workloads.workload_faults import is_judged, template_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.admission.workload_warnings import Pods
    from webhook.placement.shapes import JsonObject
    from webhook.pod_schema.field_checks import Fault
    from webhook.run.model import Run
    from webhook.run.plan import Plan
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

# The API server gives each Run a uid, by which its pods are selected. A Run in a file has no uid.
_UNSTORED: Final = {"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "0"}
# The place in messages, instead of a file.
_NO_FILE: Final = "the API server"


@dataclass(frozen=True, slots=True)
class _Role:
    """The replicas of one role of a Run, as its controller creates them."""

    plan: Plan
    part: str
    count: int
    # The labels of a Run's pods show which one leads.
    led: bool = False
    unmarked: str = ""

    @property
    def made(self) -> Callable[[int], object]:
        """Each replica has its own environment."""
        return lambda index: index

    def pod(self, index: int) -> JsonObject:
        """The pod of its first attempt."""
        return self.plan.pod(self.part, index, 0)


@dataclass(frozen=True, slots=True)
class _Queued:
    """Pods of a workload in a queue of Kueue, which starts them with a flavor's tolerations.

    Pods wait at a scheduling gate, or in a suspended Job; both may still get these tolerations.
    """

    of: Pods

    @property
    def part(self) -> str:
        """As it is without a queue."""
        return self.of.part

    @property
    def count(self) -> int | None:
        """As it is without a queue."""
        return self.of.count

    @property
    def led(self) -> bool:
        """As it is without a queue."""
        return self.of.led

    @property
    def unmarked(self) -> str:
        """As it is without a queue."""
        return self.of.unmarked

    @property
    def made(self) -> Callable[[int], object]:
        """As it is without a queue."""
        return self.of.made

    def pod(self, index: int) -> JsonObject:
        """The pod with Kueue's gate; unchanged if Kueue admitted it, or if its shape is wrong."""
        pod = self.of.pod(index)
        metadata, spec = pod.get("metadata"), pod.get("spec")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if not isinstance(spec, dict) or (
            isinstance(labels, dict) and names.KUEUE_PODSET in labels
        ):
            return pod
        gates = spec.get("schedulingGates") or []
        if not isinstance(gates, list):
            return pod
        gate = {"name": names.KUEUE_ADMISSION_GATE}
        return {**pod, "spec": {**spec, "schedulingGates": [*gates, gate]}}


def pods_of(
    workload: dict[str, Any], sources: SourceTable = SHIPPED, *beside: JsonObject
) -> Sequence[Pods]:
    """The pods of a workload, one entry for each template; none if it creates no pods.

    `beside` are objects to which it may refer. Raises InvalidRun for a Run without a valid plan.
    """
    if not isinstance(workload.get("kind"), str):
        return []
    if _is_run(workload):
        run = typed(workload)
        if run.spec.delegated:
            return templates_of_run(Object(_NO_FILE, workload), run, sources)
        return _of_run(plan(run))
    source = Object(_NO_FILE, workload)
    templates = pod_templates(source, _objects(beside), sources)
    # The Jobs of a CronJob have the labels of its jobTemplate.
    about = (at(workload, (*path, "metadata", "labels")) for path in ((), ("spec", "jobTemplate")))
    if any(isinstance(labels, dict) and labels.get(names.KUEUE_QUEUE) for labels in about):
        return [_Queued(each) for each in templates]
    return templates


def run_of(raw: JsonObject, namespace: str) -> Run:
    """A Run of a file or of a cluster; `namespace` is for one that names none.

    Raises InvalidRun with all errors.
    """
    own = raw.get("metadata")
    members = own.items() if isinstance(own, dict) else ()
    known = {key: value for key, value in members if value and key != "managedFields"}
    metadata = {**_UNSTORED, "namespace": namespace, **known}
    metadata.setdefault("name", placeholder_name(str(metadata.get("generateName", "run-"))))
    return typed(without_nulls({**raw, "metadata": metadata}))


def templates_of_run(
    source: Object, run: Run, sources: SourceTable = SHIPPED
) -> Sequence[PodTemplate]:
    """The pods of a delegated Run: those of the object that it becomes, at the Run's place.

    Raises InvalidRun.
    """
    return pod_templates(replace(source, value=delegated_object(run)), sources=sources)


def faults_of(
    workload: dict[str, Any], sources: SourceTable = SHIPPED, *beside: JsonObject
) -> list[str]:
    """Errors in the templates of a workload by the pod schema, each with its path.

    None for kinds whose templates the API server validates itself, and for a Run without a valid
    plan, which is reported already.
    """
    found: Iterable[Fault]
    if _is_run(workload):
        try:
            run = typed(workload)
            delegated = run.spec.delegated
            found = of_runs.delegated_faults(run) if delegated else of_runs.faults(plan(run))
        except InvalidRun:
            return []
    else:
        templates = pod_templates(Object(_NO_FILE, workload), _objects(beside), sources)
        every = (
            fault
            for each in templates
            if not is_judged(each)
            for fault in template_faults(each, sources)
        )
        found = islice(every, MOST)
    return [f"{path_text(each.path)}: {each.message}" for each in found]


def refers_to(workload: dict[str, Any]) -> str:
    """The path in the API of the runtime of a TrainJob; nothing for other kinds."""
    return runtime_path(Object(_NO_FILE, workload))


def _objects(values: Iterable[JsonObject]) -> list[Object]:
    return [Object(_NO_FILE, each) for each in values]


def _is_run(workload: JsonObject) -> bool:
    group, _, _ = str(workload.get("apiVersion")).partition("/")
    return (group, workload.get("kind")) == (names.GROUP, names.RUN_KIND)


def _of_run(made: Plan) -> Sequence[Pods]:
    if made.run.spec.serving:
        return pod_templates(Object(_NO_FILE, made.deployment()))
    return [_Role(made, role, spec.count) for role, spec in made.run.spec.roles.items()]
