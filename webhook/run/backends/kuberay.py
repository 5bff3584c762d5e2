"""KubeRay 1.4: a RayCluster, and a Job for the driver.

Source: apis/ray/v1 and controllers/ray/utils of ray-project/kuberay, branch release-1.4. KubeRay
starts Ray in each container, unless an annotation leaves the container's own command.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.frameworks.ray import CLIENT_PORT, DASHBOARD_PORT, PORT
from webhook.run.backends import batch_job
from webhook.run.backends.backend import (
    NATIVE_CURE,
    Backend,
    FieldMapping,
    ObjectKind,
    add_labels,
    job_limits,
    make_object,
    render_fields,
    render_template,
)
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run

OWN_COMMAND: Final = "ray.io/overwrite-container-cmd"
# KubeRay shortens names of more characters, so the driver would not find the head's Service.
_MOST: Final = 50
_SERVICE: Final = "-head-svc"
DRIVER: Final = "-driver"
_STAYS: Final = "the limit is the driver's; KubeRay always replaces the pods of the cluster"
KIND: Final = ObjectKind(
    api_version="ray.io/v1",
    kind="RayCluster",
    framework="ray",
    roles={
        "head": "headGroupSpec",
        "worker": "workerGroupSpecs, the group worker",
        "driver": "a Job of the name <run>-driver; the RayCluster stays after its end",
    },
    fields=(
        FieldMapping("restartScope", "", only=("Replica",)),
        FieldMapping(
            "backoffLimit",
            "",
            place="the driver's Job",
            unset="6",
            absent={"": "6 for the driver, no limit for the cluster"},
            note=_STAYS,
        ),
        FieldMapping("activeDeadlineSeconds", "", place="the driver's Job", note=_STAYS),
        FieldMapping(
            "replicas.*.restartPolicy",
            "",
            only=("Never", "OnFailure"),
            place="the driver's: Never is backoffLimit 0 of its Job; others: OnFailure only",
        ),
        FieldMapping("suspend", "suspend", place=""),
        FieldMapping("ray.port", "", only=(PORT,)),
    ),
)

_SUBMITTER: Final = "ray-job-submitter"
# It finds the head's dashboard by RAY_API_SERVER_ADDRESS, which a driver has.
_SUBMIT: Final = ("ray", "job", "submit", "--")
_SHELL: Final = "bash -c"
# Only converted: its entrypoint runs in the head's container, and a Run's driver in its own.
JOB: Final = ObjectKind(
    api_version=KIND.api_version,
    kind="RayJob",
    framework="ray",
    roles={
        "head": "rayClusterSpec.headGroupSpec",
        "worker": "rayClusterSpec.workerGroupSpecs, the group worker",
        "driver": "submitterPodTemplate; entrypoint is what it submits to the head",
    },
    fields=(
        FieldMapping("restartScope", "", only=("Run",), place="a retry has a new RayCluster"),
        FieldMapping("backoffLimit", "backoffLimit", unset="0"),
        FieldMapping("activeDeadlineSeconds", "activeDeadlineSeconds"),
        FieldMapping("ttlSecondsAfterFinished", "ttlSecondsAfterFinished"),
        FieldMapping(
            "cleanPodPolicy",
            "shutdownAfterJobFinishes",
            only=("Running", "None"),
            to_engine=lambda value: value == "Running",
            to_run=lambda value: {True: "Running", False: "None"}.get(value),
            unset="None",
        ),
        FieldMapping("suspend", "suspend"),
    ),
)


class KubeRayBackend(Backend):
    """KubeRay."""

    name = "kuberay"
    only = KIND

    def own_problems(self, run: Run) -> Iterable[Problem]:
        """Yield what a RayCluster cannot do."""
        return _own_problems(run)

    def draft_problems(self, drafts: Drafts) -> Iterator[Problem]:
        """Yield a problem if only one of head and workers starts Ray itself."""
        own = {
            role: _has_command(drafts, role) for role in ("head", "worker") if role in drafts.roles
        }
        if len({*own.values()}) > 1:
            role = next(role for role, has in own.items() if not has)
            what = (
                "KubeRay starts Ray in head and workers, or in neither: give the container of role "
                f"{role} a command too, or remove that of the other role"
            )
            yield Problem(("spec", "replicas", role), what)

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the RayCluster, and the driver's Job if the run has a driver."""
        run = drafts.run
        spec: JsonObject = {}
        if "suspend" in run.spec.model_fields_set:
            spec["suspend"] = run.spec.suspend
        spec |= _groups(drafts)
        cluster = make_object(run, KIND, spec)
        if _has_command(drafts, "head"):
            cluster["metadata"].setdefault("annotations", {})[OWN_COMMAND] = "true"
        return [cluster, *([_driver(drafts)] if "driver" in drafts.roles else [])]


def render_ray_job(drafts: Drafts) -> Manifest:
    """Return the RayJob of a Run whose driver submits a program to the head."""
    spec = render_fields(drafts.run, JOB)
    driver = render_template(drafts.roles["driver"], first=True)
    main = driver["spec"]["containers"][0]
    if (entrypoint := _entrypoint(main.get("command"))) is not None:
        spec["entrypoint"] = entrypoint
        del main["command"]
    head = drafts.roles["head"].container.get("image")
    if driver != {"spec": {"containers": [submitter(head)]}}:
        spec["submitterPodTemplate"] = driver
    return make_object(drafts.run, JOB, {**spec, "rayClusterSpec": _groups(drafts)})


def submitter(image: Any) -> JsonObject:
    """Return the container that KubeRay gives the submitter of a RayJob without a template."""
    return {"name": _SUBMITTER, **({"image": image} if image is not None else {})}


def submit_command(entrypoint: str) -> list[str]:
    """Return the command that submits a program, which `ray job submit` runs in a shell."""
    words = [*_SHELL.split(), entrypoint]
    try:
        if shlex.join(found := shlex.split(entrypoint)) == entrypoint:
            words = found
    except ValueError:
        pass
    return [*_SUBMIT, *words]


def _entrypoint(command: Any) -> str | None:
    if not isinstance(command, list) or command[: len(_SUBMIT)] != [*_SUBMIT]:
        return None
    words = command[len(_SUBMIT) :]
    if words[:2] == _SHELL.split() and len(words) == len(_SHELL.split()) + 1:
        return str(words[-1])
    return shlex.join(words)


def _groups(drafts: Drafts) -> JsonObject:
    spec: JsonObject = {"headGroupSpec": _group(drafts, "head")}
    if "worker" in drafts.roles:
        count = drafts.run.spec.roles["worker"].count
        counts = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), count)
        spec["workerGroupSpecs"] = [{"groupName": "worker", **counts, **_group(drafts, "worker")}]
    return spec


def driver_env(name: str) -> list[JsonObject]:
    """Return the variables that Fairlead's own controller gives a driver, for KubeRay's Service."""
    head = f"{name}{_SERVICE}"
    return [
        {"name": "RAY_ADDRESS", "value": f"ray://{head}:{CLIENT_PORT}"},
        {"name": "RAY_API_SERVER_ADDRESS", "value": f"http://{head}:{DASHBOARD_PORT}"},
    ]


def driver_labels(name: str) -> dict[str, str]:
    """Return the labels of the driver's pod, which KubeRay does not make and does not label."""
    return {names.RUN: name, names.FRAMEWORK: "ray", names.ROLE: "driver"}


def _group(drafts: Drafts, role: str) -> JsonObject:
    return {"rayStartParams": {}, "template": render_template(drafts.roles[role], first=True)}


def _driver(drafts: Drafts) -> Manifest:
    run = drafts.run
    template = render_template(drafts.roles["driver"], first=True)
    add_labels(template, driver_labels(run.name))
    template["spec"]["restartPolicy"] = "Never"
    main = template["spec"]["containers"][0]
    own = main.get("env") or []
    kept = {each.get("name") for each in own}
    main["env"] = [*(each for each in driver_env(run.name) if each["name"] not in kept), *own]
    spec = job_limits(run, "driver", main["name"])
    if "suspend" in run.spec.model_fields_set:
        spec["suspend"] = run.spec.suspend
    job = make_object(run, batch_job.KIND, {**spec, "template": template})
    job["metadata"]["name"] += DRIVER
    return job


def _has_command(drafts: Drafts, role: str) -> bool:
    main = drafts.roles[role].container
    return bool(main.get("command") or main.get("args"))


def _own_problems(run: Run) -> Iterator[Problem]:
    for role in ("head", "worker"):
        replica = run.spec.roles.get(role)
        if replica and replica.restart_policy != "OnFailure":
            what = f"KubeRay always replaces the pods of the {role}; remove it, or {NATIVE_CURE}"
            yield Problem(("spec", "replicas", role, "restartPolicy"), what)
    room = _MOST - len(_SERVICE)
    if len(run.name) > room:
        what = f"is too long: KubeRay shortens names of more than {_MOST} characters, and appends "
        what += f"{_SERVICE} to the Service's; want {room} characters at most"
        yield Problem(("metadata", "name"), what)
