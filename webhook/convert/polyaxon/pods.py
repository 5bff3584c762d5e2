"""The pods of a Polyaxonfile: placement, environment, containers, volumes, shared memory.

Source of the volume at /dev/shm: polyaxon (`get_shm_volumes` of 0.x, `plugins.shm` since 1.1).
Without it there are 64 MiB, too little for the data loaders of PyTorch. Its memory counts as the
container's. Above 300 lines: the parts of one pod, in the order in which they are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic.alias_generators import to_camel, to_snake

from webhook.convert.polyaxon.draft import non_empty
from webhook.convert.polyaxon.item import (
    Item,
    camel,
    camel_list,
    given,
    ignored,
    read,
    want_list,
    want_mapping,
    want_one_of,
    want_text,
    want_texts,
    want_texts_map,
)
from webhook.pod_schema.field_checks import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import FieldReader

# Polyaxon converts labels to text, because a number or a boolean is a valid value, and the others
# to objects of Kubernetes, whose fields may be in snake case too. The Run's model validates them.
OLD: Final[Mapping[str, FieldReader]] = {
    "labels": want_texts_map,
    "annotations": want_texts_map,
    "node_selector": want_texts_map,
    "tolerations": camel_list,
    "affinity": camel,
}
ALL: Final[Mapping[str, FieldReader]] = {
    **OLD,
    "security_context": camel,
    "node_name": given,
    "priority_class_name": given,
    "scheduler_name": given,
}
SHM_NAME: Final = "shm"
SHM_PATH: Final = "/dev/shm"  # noqa: S108  the path inside of the container

SHM_VOLUME: Final[Draft] = {"name": SHM_NAME, "emptyDir": {"medium": "Memory"}}
SHM_MOUNT: Final[Draft] = {"name": SHM_NAME, "mountPath": SHM_PATH}
_FIRST: Final = (
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "ports",
    "env",
    "envFrom",
    "resources",
    "volumeMounts",
)


def pick(fields: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the fields that are there of those with these names in snake case."""
    return {name: fields[name] for name in map(to_camel, names) if name in fields}


def ordered(container: dict[str, Draft]) -> dict[str, Draft]:
    first: dict[str, Draft] = {name: container[name] for name in _FIRST if name in container}
    return {**first, **container}


_CONNECTIONS: Final = (
    "connections are kept by Polyaxon; give the pods a volume, or envFrom with the Secret or "
    "ConfigMap behind it"
)
_INITIALISER: Final = (
    "Polyaxon fetches this before the run; here a container of your own under init has to do it, "
    "or the image has it"
)
MAIN: Final = "main"


@dataclass(frozen=True)
class SharedSettings:
    """Settings of all pods of a component, and from the command line.

    image: replaces the image of every main container
    env:   variables of params with toEnv
    """

    image: str = ""
    env: tuple[Draft, ...] = ()
    shared_memory: bool = True


class Environment(NamedTuple):
    """One environment section.

    placement: fields of a Run's environment
    pod:       fields of a pod's spec
    """

    placement: Mapping[str, Draft] = {}
    pod: Mapping[str, Draft] = {}
    restart_policy: Item | None = None


class Pod(NamedTuple):
    """One pod.

    main: the main container without its resources
    around: fields of the pod's spec
    beside: other containers
    number: how many replicas a role has, if it says so
    """

    main: dict[str, Draft]
    around: Mapping[str, Draft]
    beside: list[Draft]
    resources: Item | None = None
    environment: Environment = Environment()
    number: Item | None = None

    def spec(self, *, with_resources: bool) -> dict[str, Draft]:
        main = self.main
        if with_resources and self.resources is not None:
            main = {**main, "resources": self.resources}
        return {"containers": [ordered(main), *self.beside], **self.around}

    def replica(self, rest: dict[str, Draft]) -> dict[str, Draft]:
        """Return the role in the form of a Run; `rest` is its pods' spec without the template."""
        return non_empty(
            count=self.number,
            resources=self.resources,
            environment=self.environment.placement,
            template={"spec": rest} if rest else {},
            restartPolicy=self.environment.restart_policy,
        )


def pod(item: Item, fields: Mapping[str, Any], shared: SharedSettings, notes: Notes) -> Pod:
    """Return the pod of a runtime or of one of its replicas, of whose fields POD has these."""
    environment = fields.get("environment", Environment())
    main: dict[str, Draft] = {}
    if container_item := fields.get("container"):
        main = container(container_item, notes, name=MAIN, image=shared.image, env=shared.env)
    else:
        notes.error(item, "is required: the container that does the work", below=("container",))
    resources: Any = main.pop("resources", None)
    volumes: list[Draft] = list(fields["volumes"].elements) if "volumes" in fields else []
    if shared.shared_memory and main:
        _share_memory(main, volumes)
    init = fields.get("init", [])
    around = non_empty(**environment.pod, initContainers=init, volumes=volumes)
    return Pod(main, around, fields.get("sidecars", []), resources, environment)


def _read_init(item: Item, notes: Notes) -> list[Draft]:
    """Return the author's init containers, without those of Polyaxon."""
    result: list[Draft] = []
    for position, element in enumerate(want_list(item, notes)):
        entries = want_mapping(element, notes)
        container_item = entries.get("container")
        if (
            container_item is not None
            and set(entries) == {"container"}
            and "image" in container_item.entries
        ):
            result.append(container(container_item, notes, name=f"init-{position}"))
        elif entries:
            notes.warning(element, _INITIALISER)
    return result


def _read_sidecars(item: Item, notes: Notes) -> list[Draft]:
    listed = enumerate(want_list(item, notes))
    return [container(sidecar, notes, name=f"sidecar-{position}") for position, sidecar in listed]


def _share_memory(main: dict[str, Draft], volumes: list[Draft]) -> None:
    """Mount a volume at /dev/shm, unless the container has one there."""
    mounts_item = main.get("volumeMounts")
    if isinstance(mounts_item, Item) and not isinstance(mounts_item.value, tuple):
        # Not a list: the pod schema reports that.
        return
    mounts = mounts_item.elements if isinstance(mounts_item, Item) else ()
    paths = [mount.find("mountPath").as_text for mount in mounts]
    names = [volume.find("name").as_text for volume in volumes if isinstance(volume, Item)]
    if SHM_PATH in paths or SHM_NAME in names:
        return
    main["volumeMounts"] = [*mounts, SHM_MOUNT]
    volumes.append(SHM_VOLUME)


def container(
    item: Item, notes: Notes, *, name: str, image: str = "", env: tuple[Draft, ...] = ()
) -> dict[str, Draft]:
    """Return a container; `name` is the default, `image` replaces its own.

    env: additional variables; the container's own take precedence
    """
    fields = read(item, notes, _CONTAINER)
    own_image = fields.pop("image", None)
    if own_image is None and not image:
        notes.error(item, "is required: the image of the container", below=("image",))
    variables = fields.pop("env", {})
    added = [
        variable
        for variable in env
        if isinstance(variable, dict) and variable["name"] not in variables
    ]
    result: dict[str, Draft] = {
        "name": fields.pop("name", name),
        "image": image or own_image,
        **pick(fields, ("command", "args")),
    }
    if variables or added:
        result["env"] = [*added, *variables.values()]
    return {**result, **fields}


def quantities(item: Item, notes: Notes) -> Item:
    """Return resource requirements with quantities as text, as Polyaxon sends them."""
    sides = dict(want_mapping(item, notes))
    for side in sides.keys() & {"requests", "limits"}:
        amounts = sides[side]
        if isinstance(amounts.value, dict):
            amounts = amounts.with_value(amounts.present)
        sides[side] = want_texts_map(amounts, notes)
    return item.with_value(sides)


def _read_arguments(item: Item, notes: Notes) -> list[str]:
    """Return texts; a template that becomes nothing removes the argument."""
    if isinstance(item.value, tuple):
        item = item.with_value(
            tuple(element for element in item.elements if element.value is not None)
        )
    return [text for text in want_texts(item, notes) if text]


def _variables(item: Item, notes: Notes) -> dict[str, Draft]:
    """Return variables by name; the last of equal names counts, as for the kubelet."""
    if isinstance(item.value, dict):
        return {name: _variable(name, value, notes) for name, value in item.entries.items()}
    result: dict[str, Draft] = {}
    for element in item.elements:
        entries = want_mapping(element, notes)
        name = entries.get("name")
        text = want_text(name, notes) if name is not None else None
        if text is None:
            if name is None and isinstance(element.value, dict):
                notes.error(element, "is required: the variable's name", below=("name",))
            continue
        value = entries.get("value")
        result.pop(text, None)
        result[text] = element if value is None else _variable(text, value, notes)
    if not isinstance(item.value, tuple):
        notes.error(item, "want a list of variables, each with name and value")
    return result


def _variable(name: str, value: Item, notes: Notes) -> Draft:
    text = want_text(value, notes)
    return {"name": name, "value": None if text is None else value.with_text(text)}


def _read_pull_secrets(item: Item, notes: Notes) -> list[Draft]:
    return [
        element if isinstance(element.value, dict) else {"name": element}
        for element in want_list(item, notes)
        if isinstance(element.value, dict) or want_text(element, notes)
    ]


def _read_environment(item: Item, notes: Notes) -> Environment:
    fields = read(item, notes, _ENVIRONMENT)
    # Not what pydantic makes of host_pid.
    of_pod = {"hostPID": fields["hostPid"]} if "hostPid" in fields else {}
    of_pod |= pick(fields, _OF_POD)
    return Environment(pick(fields, ALL), of_pod, fields.get("restartPolicy"))


# Polyaxon makes Kubernetes' objects of some fields, and takes theirs in snake case too.
_OF_POD: Final[Mapping[str, FieldReader]] = {
    "service_account_name": given,
    "host_network": given,
    "dns_policy": given,
    "host_aliases": camel_list,
    "dns_config": camel,
    "hostPID": given,
    "image_pull_secrets": _read_pull_secrets,
}
_ENVIRONMENT: Final[Mapping[str, FieldReader]] = {
    **ALL,
    **_OF_POD,
    "host_pid": given,
    "priority": "a number alone is refused by the API server; give priorityClassName",
    "restart_policy": partial(want_one_of, allowed=("Always", "OnFailure", "Never", "ExitCode")),
}
_CONTAINER: Final[Mapping[str, FieldReader]] = {
    **dict.fromkeys(map(to_snake, fields_of("Container")), given),
    "command": _read_arguments,
    "args": _read_arguments,
    "env": _variables,
    "resources": quantities,
}
# What every runtime has.
RUNTIME: Final[Mapping[str, FieldReader]] = {
    "kind": ignored,
    "clean_pod_policy": lambda item, notes: want_one_of(
        item.with_text(item.as_text.capitalize()), notes, ("All", "Running", "None")
    ),
}
# What a runtime, or one of its replicas, describes a pod with.
POD: Final[Mapping[str, FieldReader]] = {
    "connections": _CONNECTIONS,
    "environment": _read_environment,
    "container": given,
    "init": _read_init,
    "sidecars": _read_sidecars,
    "volumes": camel_list,
}
