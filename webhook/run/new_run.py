"""A Run made from the few settings that people give, by a command or in Python."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import check_name, check_namespace
from webhook.errors import InvalidName, InvalidRun
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.placement.pod_requests import is_extended
from webhook.policy.findings import path_text
from webhook.run.backends.engine_object import delegated_object
from webhook.run.plan import plan
from webhook.run.pod_sets import sample_unplaced
from webhook.run.queue import queue_of
from webhook.run.run_documents import run_of
from webhook.run.template_faults import delegated_faults, faults
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.policy.findings import Path
    from webhook.run.model import Run

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_VARIABLE: Final = re.compile(r"[ -<>-~]+")
_LONGEST_NAME: Final = 255
_IMAGE: Final = re.compile(
    r"(?P<name>[^@]+?)(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?",
    re.ASCII,
)
_ID: Final = re.compile(r"[a-f0-9]{64}")
_LABEL: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH: Final = re.compile(rf"{_PART}(?:/{_PART})*")
CONTAINER: Final = "main"
WORKER: Final = "worker"
GPU: Final = "nvidia.com/gpu"


class NewRun(NamedTuple):
    """The settings.

    command: program and arguments; empty: those of the image. Of a framework with roles that run
        programs of its own, such as ray, this is the driver's or the launcher's
    workers: how many replicas of role worker; 0: one replica in all
    gpus: of each worker; gpu_resource: the resource that they are
    resources: more requests of each worker, such as cpu and memory
    env: variables by name
    gang: the time in which all replicas have to get a node; empty: each starts by itself
    volumes: mount path by the name of a PersistentVolumeClaim
    capacity: mode by capacity class
    """

    name: str
    image: str
    command: Sequence[str] = ()
    namespace: str = ""
    framework: str = ""
    workers: int = 0
    gpus: int = 0
    gpu_resource: str = GPU
    resources: Mapping[str, str] = _NOTHING
    env: Mapping[str, str] = _NOTHING
    volumes: Mapping[str, str] = _NOTHING
    capacity: Mapping[str, str] = _NOTHING
    queue: str = ""
    restart_scope: str = ""
    gang: str = ""
    labels: Mapping[str, str] = _NOTHING


def manifest(new: NewRun) -> dict[str, Any]:
    """Return the Run with the fewest fields. Only what is not in it any more is checked.

    Raises InvalidRun for names of other objects that none can have, and for a resource that cannot
    be GPUs.
    """
    _check_names(new)
    roles, command = _roles(new)
    resources = _resources(new)
    # A launcher and the like do not compute.
    if resources and roles.keys() > {WORKER}:
        roles[WORKER]["resources"] = resources
        resources = {}
    mounts, volumes = _volumes(new)
    container = _given(
        name=CONTAINER,
        image=new.image,
        command=command,
        env=[{"name": key, "value": value} for key, value in new.env.items()],
        resources=resources,
        volumeMounts=mounts,
    )
    capacity = ",".join(f"{name}={mode}" for name, mode in new.capacity.items())
    template = _given(
        metadata=_given(annotations=_given(**{names.CAPACITY: capacity})),
        spec=_given(containers=[container], volumes=volumes),
    )
    labels = {**new.labels, **_given(**{names.KUEUE_QUEUE: new.queue})}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {"name": new.name, **_given(namespace=new.namespace, labels=labels)},
        "spec": _given(
            framework=new.framework,
            replicas=roles,
            restartScope=new.restart_scope,
            gang=_given(startWithin=new.gang),
            template=template,
        ),
    }


def _check_names(new: NewRun) -> None:
    """Raise InvalidRun for each name of a claim, a capacity class or a queue that cannot be one."""
    problems = []
    queues = [new.queue] if new.queue else []
    for field, listed in (("volumes", new.volumes), ("capacity", new.capacity), ("queue", queues)):
        for name in listed:
            try:
                check_name(name)
            except InvalidName as error:
                problems.append(f"{field}: {error}")
    if problems:
        raise InvalidRun(problems)


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not empty."""
    return {key: value for key, value in fields.items() if value}


class Checked(NamedTuple):
    """A Run that can be created, and likely mistakes in it, each with its path."""

    run: Run
    warnings: tuple[str, ...]


def checked(raw: Mapping[str, Any], namespace: str) -> Checked:
    """Return the typed Run; `namespace` is for one without. Raises InvalidRun with all problems
    that the API server, the controller and the kubelet would find in it.
    """
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidRun([f"metadata: want a mapping with a name, not {quoted(metadata)}"])
    run = run_of(dict(raw), namespace)
    if run.spec.delegated:
        delegated_object(run)
        run_faults = delegated_faults(run)
        many = ""
    else:
        planned = plan(run)
        run_faults = faults(planned)
        many = sample_unplaced(planned).problem() if queue_of(run) else ""
    lines = [(fault.severity, f"{path_text(fault.path)}: {fault.message}") for fault in run_faults]
    problems = [line for severity, line in lines if severity == "error"]
    if not (metadata.get("name") or metadata.get("generateName")):
        problems.append("metadata.name: is empty; give it a name")
    try:
        check_namespace(run.namespace)
    except InvalidName as error:
        problems.append(f"metadata.namespace: {error}")
    problems += _container_faults(raw)
    if many:
        problems.append(f"metadata.labels[{names.KUEUE_QUEUE}]: {many}")
    if problems:
        raise InvalidRun(problems)
    warnings = [line for severity, line in lines if severity == "warning"]
    return Checked(run, tuple(dict.fromkeys(warnings)))


def _container_faults(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield images that no kubelet can read, which leaves the pods with InvalidImageName; names of
    variables that the API server refuses; and volumes that are mounted at one path.
    """
    spec = raw.get("spec") or {}
    layers: list[tuple[Path, Any]] = [(("spec", "template"), spec.get("template"))]
    for role, replica in (spec.get("replicas") or {}).items():
        layers.append((("spec", "replicas", role, "template"), (replica or {}).get("template")))
    for at, template in layers:
        pod = (template or {}).get("spec") or {}
        for field in ("initContainers", "containers"):
            for number, container in enumerate(pod.get(field) or ()):
                where = (*at, "spec", field, number)
                yield from _names_and_paths(container, where)
                image = container.get("image")
                if isinstance(image, str) and image and not is_image(image):
                    path = path_text((*where, "image"))
                    yield (
                        f"{path}: {quoted(image)} is no image; want [HOST[:PORT]/]NAME[:TAG] with "
                        "a name in lower case, such as registry.example.com/team/mnist:1"
                    )


def _names_and_paths(container: Mapping[str, Any], at: Path) -> Iterator[str]:
    """As ValidateEnv (relaxed: printable ASCII without =) and ValidateVolumeMounts have it."""
    for number, entry in enumerate(container.get("env") or ()):
        name = entry.get("name")
        if isinstance(name, str) and not _VARIABLE.fullmatch(name):
            path = path_text((*at, "env", number, "name"))
            yield f"{path}: {quoted(name)} is no variable; want printable ASCII without ="
    number_by_path: dict[str, int] = {}
    for number, entry in enumerate(container.get("volumeMounts") or ()):
        mounted = entry.get("mountPath")
        if not isinstance(mounted, str):
            continue
        path = path_text((*at, "volumeMounts", number, "mountPath"))
        if ":" in mounted:
            yield f"{path}: {quoted(mounted)} is no path; want one without a colon"
        if number_by_path.setdefault(mounted.rstrip("/"), number) != number:
            yield f"{path}: {quoted(mounted)} has another volume already; mount it elsewhere"


def is_image(text: str) -> bool:
    """Return whether a kubelet can read the reference, which need not exist.

    The grammar of github.com/distribution/reference, with a domain of docker.io if none is given
    (ParseNormalizedNamed).
    """
    match = _IMAGE.fullmatch(text)
    if match is None or _ID.fullmatch(text):
        return False
    first, slash, rest = match["name"].partition("/")
    is_domain = any(character in first for character in ".:[") or first != first.lower()
    path = match["name"]
    if slash and (is_domain or first == "localhost") and _DOMAIN.fullmatch(first):
        path = rest
    return bool(_PATH.fullmatch(path)) and len(path) <= _LONGEST_NAME


def _roles(new: NewRun) -> tuple[dict[str, dict[str, Any]], Sequence[str]]:
    """Return the roles, and the command of all of them.

    These are the workers, one of each other role that the framework needs, and one that runs the
    author's program. If roles run programs of the framework, each has its own command.
    """
    roles = ROLES[new.framework] if new.framework in ROLES else ROLES[None]
    replicas: dict[str, dict[str, Any]] = {}
    for alternatives in roles.required:
        if not (new.workers and WORKER in alternatives) and not replicas.keys() & {*alternatives}:
            replicas[alternatives[0]] = {}
    if new.workers:
        replicas[WORKER] = {"count": new.workers} if new.workers != 1 else {}
    framework = FRAMEWORKS.get(new.framework)
    if not (framework and framework.commands):
        return replicas, list(new.command)
    if new.command and not replicas.keys() - framework.commands.keys():
        replicas[roles.ends[0]] = {}
    for role, settings in replicas.items():
        if command := list(framework.commands.get(role, new.command)):
            containers = [{"name": CONTAINER, "command": command}]
            settings["template"] = {"spec": {"containers": containers}}
    return replicas, ()


def _resources(new: NewRun) -> dict[str, Any]:
    if new.gpus and not is_extended(new.gpu_resource):
        what = f"the resource of GPUs: {quoted(new.gpu_resource)} is none; want such as {GPU}"
        raise InvalidRun([what])
    return _given(requests=dict(new.resources), limits=_given(**{new.gpu_resource: new.gpus}))


def _volumes(new: NewRun) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the mounts of the container, and the volumes."""
    mounts, volumes = [], []
    for number, (claim, path) in enumerate(new.volumes.items()):
        name = f"volume-{number}"
        mounts.append({"name": name, "mountPath": path})
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    return mounts, volumes
