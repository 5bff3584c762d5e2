"""KubeRay 1.4: a RayJob if the driver only submits a program, else a RayCluster and a driver's Job.

Source: apis/ray/v1, controllers/ray/utils and controllers/ray/common/pod.go of ray-project/kuberay,
branch release-1.4. KubeRay starts Ray in each container, unless an annotation leaves the
container's own command. In a Run the command does.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.frameworks.ray import CLIENT_PORT, DASHBOARD_PORT, PORT
from webhook.run import plan
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run

OWN_COMMAND: Final = "ray.io/overwrite-container-cmd"
# KubeRay shortens names of more characters, so the driver would not find the head's Service.
_NAME_MAX_CHARACTERS: Final = 50
_SERVICE: Final = "-head-svc"
# Names of objects, which KubeRay refuses above that.
_NAME_LIMITS: Final = {"RayCluster": 53, "RayJob": 47}
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
_COMMAND: Final = ("/bin/sh", "-c")
# They find the head's dashboard by RAY_API_SERVER_ADDRESS, which a driver has. KubeRay submits when
# the dashboard answers.
WAIT_FOR_DASHBOARD: Final = "until ray job list >/dev/null 2>&1; do sleep 2; done"
_SUBMIT: Final = f"{WAIT_FOR_DASHBOARD}; exec ray job submit -- "
_SHELL: Final = ("bash", "-c")
_OPERATORS: Final = "();<>|&"
# Its entrypoint runs in the head's container, and a Run's driver in its own.
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
        FieldMapping("ray.port", "", only=(PORT,)),
    ),
)

_START: Final = {
    "head": "ray start --head --port=$RAY_PORT --dashboard-host=0.0.0.0",
    "worker": "ray start --address=$RAY_ADDRESS",
}
_BLOCK: Final = "--block"
_THEN: Final = " && "
# Parameters of `ray start` that the command has, with what KubeRay sets if they are not there.
OWN_PARAMETERS: Final[Mapping[str, str]] = {
    "address": "",
    "block": "true",
    "dashboard-host": "0.0.0.0",  # noqa: S104  (a text of KubeRay's)
    "head": "",
    "port": str(PORT),
}
# The flags that take true and false; KubeRay writes any other one without a value, or not at all.
_WITH_VALUE: Final = ("log-color", "include-dashboard")
_PARAMETER: Final = re.compile(
    r" --([a-z0-9-]+)(?:=(.*?))?(?= --[a-z0-9-]+(?:[= ]|$)|$)", re.DOTALL
)


def start_command(role: str, parameters: Mapping[str, str], before: str = "") -> JsonObject:
    """Return command and args by which a head or a worker starts Ray, as KubeRay starts it.

    before: what the shell runs first.
    """
    flags = [
        text
        for name, value in parameters.items()
        if name not in OWN_PARAMETERS and (text := _flag(name, value))
    ]
    start = " ".join([f"exec {_START[role]}", *flags, _BLOCK])
    return {"command": [*_COMMAND], "args": [f"{before}{_THEN}{start}" if before else start]}


def _flag(name: str, value: str) -> str:
    if value.lower() in ("true", "false") and name not in _WITH_VALUE:
        return f"--{name}" if value.lower() == "true" else ""
    return f"--{name}={value}"


class _Start(NamedTuple):
    """How a container starts Ray: parameters, and what its shell runs first."""

    parameters: Mapping[str, str]
    before: str = ""


def _read_start(role: str, container: JsonObject) -> _Start | None:
    """Return how a container starts Ray by `start_command`; None if it does so in its own way.

    Without a command, the container leaves it to KubeRay.
    """
    command, args = container.get("command") or [], container.get("args") or []
    if not command and not args:
        return _Start({})
    text = args[0] if len(args) == 1 else None
    if not isinstance(text, str):
        return None
    before, begin, end = text.partition(f"exec {_START[role]}")
    parameters = {
        match[1]: "true" if match[2] is None else match[2]
        for match in _PARAMETER.finditer(end.removesuffix(f" {_BLOCK}"))
    }
    start = _Start(parameters, before.removesuffix(_THEN))
    again = start_command(role, *start)
    return start if begin and again == {"command": command, "args": args} else None


def spell_command(given: JsonObject, rendered: JsonObject) -> None:
    """Write the rendered container's command as the given one is, if KubeRay joins both to one."""
    command, other = (
        " ".join(str(word) for key in ("command", "args") for word in container.get(key) or ())
        for container in (given, rendered)
    )
    if command and command == other:
        for key in ("command", "args"):
            rendered.pop(key, None)
        rendered |= {key: given[key] for key in ("command", "args") if key in given}


def spell_parameters(given: object, rendered: JsonObject) -> None:
    """Add the given parameters of `ray start` that mean what is so without them."""
    for name, value in given.items() if isinstance(given, dict) else ():
        if value == OWN_PARAMETERS.get(name, "false") and name not in _WITH_VALUE:
            rendered[name] = value


class KubeRayBackend(Backend):
    """KubeRay."""

    name = "kuberay"
    only = KIND

    def kind(self, run: Run) -> ObjectKind | None:
        """Return RayJob for a Run whose driver submits a program to the head, else RayCluster."""
        object_kind = super().kind(run)
        return JOB if object_kind and _submits(run) else object_kind

    def own_problems(self, run: Run) -> Iterable[Problem]:
        """Yield what a RayCluster cannot do."""
        return _own_problems(run, self.kind(run) or KIND)

    def draft_problems(self, drafts: Drafts) -> Iterator[Problem]:
        """Yield a problem if only one of head and workers starts Ray itself."""
        nodes = [role for role in _START if role in drafts.roles]
        without = [role for role in nodes if not _has_command(drafts, role)]
        if without and _has_own_commands(drafts):
            what = (
                "KubeRay starts Ray in head and workers, or in neither: give the container of role "
                f"{without[0]} a command too, or remove that of the other role"
            )
            yield Problem(("spec", "replicas", without[0]), what)

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the RayJob; or the RayCluster, and the driver's Job if the run has a driver."""
        return [render_ray_job(drafts)] if _submits(drafts.run) else render_ray_cluster(drafts)


def _submits(run: Run) -> bool:
    """Return True if the driver submits a program, and nothing is set that only its Job has."""
    if "driver" not in run.spec.roles or (run.spec.restart_scope != "Run" and _is_set(run)):
        return False
    driver = next((draft for draft in plan.drafts(run)[0] if draft.role == "driver"), None)
    return driver is not None and _entrypoint(driver.container) is not None


def _is_set(run: Run) -> bool:
    driver = run.spec.roles["driver"]
    written = "restart_scope" in run.spec.model_fields_set
    return written or "restart_policy" in driver.model_fields_set


def render_ray_cluster(drafts: Drafts) -> Sequence[Manifest]:
    """Return the RayCluster, and the driver's Job if the run has a driver."""
    run = drafts.run
    spec: JsonObject = {}
    if "suspend" in run.spec.model_fields_set:
        spec["suspend"] = run.spec.suspend
    spec |= _groups(drafts)
    cluster = _leave_commands(make_object(run, KIND, spec), drafts)
    return [cluster, *([_driver(drafts)] if "driver" in drafts.roles else [])]


def render_ray_job(drafts: Drafts) -> Manifest:
    """Return the RayJob of a Run whose driver submits a program to the head."""
    spec = render_fields(drafts.run, JOB)
    driver = render_template(drafts.roles["driver"], first=True)
    main = driver["spec"]["containers"][0]
    if (entrypoint := _entrypoint(main)) is not None:
        spec["entrypoint"] = entrypoint
        del main["command"], main["args"]
    head = drafts.roles["head"].container.get("image")
    if driver != {"spec": {"containers": [submitter(head)]}}:
        spec["submitterPodTemplate"] = driver
    made = make_object(drafts.run, JOB, {**spec, "rayClusterSpec": _groups(drafts)})
    return _leave_commands(made, drafts)


def _leave_commands(made: Manifest, drafts: Drafts) -> Manifest:
    """Return the object with the annotation by which KubeRay leaves commands of head and workers.

    Of a RayJob KubeRay copies it to the RayCluster.
    """
    if _has_own_commands(drafts):
        made["metadata"].setdefault("annotations", {})[OWN_COMMAND] = "true"
    return made


def submitter(image: Any) -> JsonObject:
    """Return the container that KubeRay gives the submitter of a RayJob without a template."""
    return {"name": _SUBMITTER, **({"image": image} if image is not None else {})}


def submit_command(entrypoint: str) -> JsonObject:
    """Return command and args that submit a program, which Ray runs in a shell.

    What follows an operator such as && would run in the driver, so the program then is a shell.
    """
    program = shlex.join([*_SHELL, entrypoint]) if _has_operator(entrypoint) else entrypoint
    return {"command": [*_COMMAND], "args": [f"{_SUBMIT}{program}"]}


def _has_operator(text: str) -> bool:
    """Return True if a shell reads more than one command, or a redirection."""
    words = shlex.shlex(text, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        return "\n" in text or any({*word} <= {*_OPERATORS} for word in words)
    except ValueError:
        return True


def _entrypoint(container: JsonObject) -> str | None:
    """Return the program of a container that submits it by `submit_command`, else None."""
    written_command = {key: container[key] for key in ("command", "args") if container.get(key)}
    text = written_command["args"][0] if len(written_command.get("args") or ()) == 1 else None
    if not isinstance(text, str) or not text.startswith(_SUBMIT):
        return None
    program = text.removeprefix(_SUBMIT)
    return program if submit_command(program) == written_command else None


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
    template = render_template(drafts.roles[role], first=True)
    if _has_own_commands(drafts):
        return {"rayStartParams": {}, "template": template}
    start = _start_of(drafts, role) or _Start({})
    main = template["spec"]["containers"][0]
    main = {key: value for key, value in main.items() if key not in ("command", "args")}
    if start.before:
        # KubeRay runs it first.
        main["command"] = [start.before]
    template["spec"]["containers"][0] = main
    return {"rayStartParams": {**start.parameters}, "template": template}


def _has_own_commands(drafts: Drafts) -> bool:
    """Return True if KubeRay has to leave the commands of head and workers as they are."""
    return any(_start_of(drafts, role) is None for role in _START if role in drafts.roles)


def _start_of(drafts: Drafts, role: str) -> _Start | None:
    return _read_start(role, drafts.roles[role].container)


def _driver(drafts: Drafts) -> Manifest:
    run = drafts.run
    template = render_template(drafts.roles["driver"], first=True)
    add_labels(template, driver_labels(run.name))
    template["spec"]["restartPolicy"] = "Never"
    main = template["spec"]["containers"][0]
    written_env = main.get("env") or []
    kept = {variable.get("name") for variable in written_env}
    main["env"] = [
        *(variable for variable in driver_env(run.name) if variable["name"] not in kept),
        *written_env,
    ]
    spec = job_limits(run, "driver", main["name"])
    if "suspend" in run.spec.model_fields_set:
        spec["suspend"] = run.spec.suspend
    job = make_object(run, batch_job.KIND, {**spec, "template": template})
    job["metadata"]["name"] += DRIVER
    return job


def _has_command(drafts: Drafts, role: str) -> bool:
    main = drafts.roles[role].container
    return bool(main.get("command") or main.get("args"))


def _shuts_down(run: Run) -> bool:
    """Return True if a RayJob deletes its RayCluster at its end, which it does not by default."""
    written = "clean_pod_policy" in run.spec.model_fields_set
    return written and run.spec.clean_pod_policy == "Running"


def _own_problems(run: Run, kind: ObjectKind) -> Iterator[Problem]:
    for role in ("head", "worker"):
        replica = run.spec.roles.get(role)
        if replica and replica.restart_policy != "OnFailure":
            what = f"KubeRay always replaces the pods of the {role}; remove it, or {NATIVE_CURE}"
            yield Problem(("spec", "replicas", role, "restartPolicy"), what)
    if kind is JOB and not _shuts_down(run):
        for field, is_set in (
            ("ttlSecondsAfterFinished", run.spec.ttl_seconds_after_finished),
            ("suspend", run.spec.suspend),
        ):
            if is_set:
                what = "KubeRay takes it only with cleanPodPolicy Running; set that, or remove it"
                yield Problem(("spec", field), what)
    at, room = ("metadata", "name"), _NAME_LIMITS[kind.kind]
    if len(run.name) > room:
        what = f"is too long: KubeRay refuses a {kind.kind} with a name of more than {room}"
        yield Problem(at, f"{what} characters")
    elif (
        kind is KIND
        and "driver" in run.spec.roles
        and len(run.name) > _NAME_MAX_CHARACTERS - len(_SERVICE)
    ):
        what = (
            f"is too long: KubeRay shortens names of more than {_NAME_MAX_CHARACTERS} characters, "
            "and appends "
        )
        what += (
            f"{_SERVICE} to the Service's; want {_NAME_MAX_CHARACTERS - len(_SERVICE)} characters "
            "at most"
        )
        yield Problem(at, what)
