"""Trainer 2.1: a TrainJob with a TrainingRuntime of its own.

Source: pkg/apis/trainer/v1alpha1, pkg/webhooks and pkg/runtime/framework/plugins of
kubeflow/trainer, branch release-2.1. All nodes are the pods of one Indexed Job of a JobSet, so its
limits are those of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.dns_names import MAX_LABEL
from webhook.run.backends.backend import (
    BY_GPUS,
    Backend,
    FieldMapping,
    ObjectKind,
    add_labels,
    container_problems,
    job_limits,
    make_object,
    render_template,
)
from webhook.run.backends.jobset import own_labels
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run

CONTAINER: Final = "node"
RUNTIME: Final = "TrainingRuntime"
# The number of processes on each node, if nothing sets it.
UNSET: Final = "auto"
_GROUP: Final = "trainer.kubeflow.org"
# The label of the replicated job that trains, in the metadata of its template.
STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER: Final = "trainer"
# What JobSet appends to the name: role, index of the Job, index of the pod, five random letters.
_SUFFIX: Final = len("-node-0--abcde")
KIND: Final = ObjectKind(
    api_version=f"{_GROUP}/v1alpha1",
    kind="TrainJob",
    framework=None,
    roles={"worker": "the replicated job node of the runtime, numNodes"},
    fields=(
        FieldMapping(
            "restartScope",
            "",
            only=("Replica", "Run"),
            place="Run: the JobSet's failurePolicy; Replica: the Job's backoffLimit",
        ),
        FieldMapping(
            "backoffLimit",
            "",
            place="failurePolicy.maxRestarts with restartScope Run, else the Job's backoffLimit",
            unset="3 with restartScope Run, else 6",
            absent={"": "6"},
        ),
        FieldMapping(
            "replicas.*.restartPolicy",
            "",
            only=("Never", "OnFailure", "ExitCode"),
            place="Never: the Job's backoffLimit 0; ExitCode: its podFailurePolicy",
        ),
        FieldMapping("activeDeadlineSeconds", "", place="the Job's activeDeadlineSeconds"),
        FieldMapping("cleanPodPolicy", "", only=("Running",)),
        FieldMapping("suspend", "suspend"),
        FieldMapping(
            "pytorch.nprocPerNode",
            "",
            place="trainer.numProcPerNode, and the runtime's mlPolicy.torch.numProcPerNode",
            unset=UNSET,
            native=BY_GPUS,
        ),
    ),
)
_FRAMEWORKS: Final = (None, "pytorch")
# EnforceMLPolicy of pkg/runtime/framework/plugins/mpi/mpi.go: the Secret's volume has no mode, so
# the key is 0644, and the nodes run what their image runs.
_NO_SSH: Final = (
    "Trainer 2.1 mounts the SSH key with mode 0644, which ssh refuses if its user is root, and "
    "starts no sshd in the nodes; use backend kubeflow, which writes an MPIJob, or native"
)


class TrainerBackend(Backend):
    """Kubeflow Trainer."""

    name = "trainer"
    frameworks = "pytorch, or none"

    def kind(self, run: Run) -> ObjectKind | None:
        """Return the kind for PyTorch and for no framework."""
        return KIND if run.spec.framework in _FRAMEWORKS else None

    def problems(self, run: Run) -> Sequence[Problem]:
        """Return what a TrainJob cannot do."""
        if run.spec.framework == "mpi":
            return [Problem(("spec", "framework"), f"is {run.spec.framework!r}; {_NO_SSH}")]
        return super().problems(run)

    def own_problems(self, run: Run) -> Iterable[Problem]:
        """Yield a problem if the name is too long."""
        return _name_problems(run)

    def draft_problems(self, drafts: Drafts) -> Iterator[Problem]:
        """Yield problems with the merged template."""
        yield from container_problems(drafts, CONTAINER)

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the runtime and the TrainJob."""
        run = drafts.run
        spec, written = run.spec, run.spec.model_fields_set
        policy: JsonObject = {"numNodes": spec.roles["worker"].count}
        job_spec: JsonObject = {
            "runtimeRef": {"apiGroup": _GROUP, "kind": RUNTIME, "name": run.name}
        }
        if spec.framework == "pytorch":
            processes = getattr(spec.settings, "nproc_per_node", None)
            policy["torch"] = {} if processes is None else {"numProcPerNode": processes}
            # Without this section Trainer 2.1 sets no variables, and without the number in it, its
            # webhook fails.
            job_spec["trainer"] = {"numProcPerNode": UNSET if processes is None else processes}
        jobset: JsonObject = {"replicatedJobs": [_node(drafts)]}
        if spec.restart_scope == "Run":
            jobset = {"failurePolicy": {"maxRestarts": spec.backoff_limit}, **jobset}
        if "suspend" in written:
            job_spec["suspend"] = spec.suspend
        runtime = make_object(run, KIND, {"mlPolicy": policy, "template": {"spec": jobset}})
        for member in ("labels", "annotations"):
            runtime["metadata"].pop(member, None)
        return [{**runtime, "kind": RUNTIME}, make_object(run, KIND, job_spec)]


def _name_problems(run: Run) -> Iterator[Problem]:
    worker = run.spec.roles.get("worker")
    room = MAX_LABEL - _SUFFIX - len(str(worker.count - 1 if worker else 0))
    if len(run.name) > room:
        what = (
            "is too long: Trainer's pods are called <run>-node-0-<index>-<five letters>, in at "
            f"most {MAX_LABEL} characters; with these replicas a name has at most {room}"
        )
        yield Problem(("metadata", "name"), what)


def _node(drafts: Drafts) -> JsonObject:
    """Return the replicated job whose pods are the nodes."""
    template = render_template(drafts.roles["worker"], container=CONTAINER)
    add_labels(template, own_labels(drafts.run))
    template["spec"]["restartPolicy"] = "Never"
    job = {**job_limits(drafts.run, "worker", CONTAINER), "template": template}
    return {"name": CONTAINER, "template": {"metadata": {"labels": {STEP: TRAINER}}, "spec": job}}
