"""One pod of a component's runtime: environment, containers, volumes.

Above 300 lines: the parts of one pod, in the order in which they are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.draft import non_empty
from webhook.convert.polyaxon.item import Item, Section, text_of
from webhook.convert.polyaxon.placement import (
    ALL,
    SHM_MOUNT,
    SHM_NAME,
    SHM_PATH,
    SHM_VOLUME,
    ordered,
    placement,
)
from webhook.convert.polyaxon.values import (
    camel,
    want_list,
    want_mapping,
    want_one_of,
    want_text,
    want_texts,
)

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft, Notes

_CONNECTIONS: Final = (
    "connections are kept by Polyaxon; give the pods a volume, or envFrom with the Secret or "
    "ConfigMap behind it"
)
_INITIALISER: Final = (
    "Polyaxon fetches this before the run; here a container of your own under init has to do it, "
    "or the image has it"
)
_NO_CONTAINER: Final = "is required: the container that does the work"
MAIN: Final = "main"
# v1.Container, without the fields that are read here.
_AS_THEY_ARE: Final = (
    "working_dir",
    "ports",
    "env_from",
    "resize_policy",
    "restart_policy",
    "volume_mounts",
    "volume_devices",
    "liveness_probe",
    "readiness_probe",
    "startup_probe",
    "lifecycle",
    "termination_message_path",
    "termination_message_policy",
    "image_pull_policy",
    "security_context",
    "stdin",
    "stdin_once",
    "tty",
)
_NO_IMAGE: Final = "is required: the image of the container"
# By their names in a pod's spec.
_POD: Final = {
    "serviceAccountName": "service_account_name",
    "hostNetwork": "host_network",
    "dnsPolicy": "dns_policy",
}
_PRIORITY: Final = "a number alone is refused by the API server; give priorityClassName"
_RESTARTS: Final = ("Always", "OnFailure", "Never", "ExitCode")


@dataclass(frozen=True)
class SharedSettings:
    """Settings of all pods of a component, and from the command line.

    image: replaces the image of every main container
    env:   variables of params with toEnv
    """

    image: str = ""
    env: tuple[Draft, ...] = ()
    shared_memory: bool = True


@dataclass
class Pod:
    """One pod.

    spec: the pod's spec, the main container first
    main: that container without its resources
    """

    main: dict[str, Draft]
    around: dict[str, Draft]
    beside: list[Draft]
    resources: Item | None = None
    environment: Environment = field(default_factory=lambda: Environment({}, {}))

    @property
    def name(self) -> Draft:
        """The main container's name."""
        return self.main["name"]

    def spec(self, *, with_resources: bool) -> dict[str, Draft]:
        """Return the pod's spec, with or without the main container's resources."""
        main = self.main
        if with_resources and self.resources is not None:
            main = {**main, "resources": self.resources}
        return {"containers": [ordered(main), *self.beside], **self.around}


def pod(section: Section, shared: SharedSettings) -> Pod:
    """Read the pod of a runtime or of one of its replicas. Does not close the section."""
    notes = section.notes
    section.leave({"connections": _CONNECTIONS})
    where = environment(section.non_empty("environment"), notes)
    main, resources = _main(section, shared)
    before = _initialisers(section.non_empty("init"), notes)
    beside: list[Draft] = [
        container(item, notes, name=f"sidecar-{position}")
        for position, item in enumerate(_listed(section, "sidecars"))
    ]
    # Polyaxon makes Kubernetes' objects of them, and takes their fields in snake case too.
    volumes: list[Draft] = [*map(camel, _listed(section, "volumes"))]
    if shared.shared_memory and main:
        _share_memory(main, volumes)
    return Pod(
        main,
        non_empty(**where.pod, initContainers=before, volumes=volumes),
        beside,
        resources,
        where,
    )


def _main(section: Section, shared: SharedSettings) -> tuple[dict[str, Draft], Item | None]:
    """Return the main container without its resources, and these."""
    item = section.non_empty("container")
    if item is None:
        section.notes.error(section.item, _NO_CONTAINER, below=("container",))
        return {}, None
    main = container(item, section.notes, name=MAIN, image=shared.image, env=shared.env)
    resources = main.pop("resources", None)
    return main, resources if isinstance(resources, Item) else None


def _initialisers(item: Item | None, notes: Notes) -> list[Draft]:
    """Return the author's init containers, without those of Polyaxon."""
    result: list[Draft] = []
    for position, each in enumerate(want_list(item, notes) if item else ()):
        entries = want_mapping(each, notes)
        own = entries.get("container")
        if own is not None and set(entries) == {"container"} and "image" in own.entries:
            result.append(container(own, notes, name=f"init-{position}"))
        elif entries:
            notes.warning(each, _INITIALISER)
    return result


def _listed(section: Section, name: str) -> tuple[Item, ...]:
    item = section.non_empty(name)
    return () if item is None else want_list(item, section.notes)


def _share_memory(main: dict[str, Draft], volumes: list[Draft]) -> None:
    """Mount a volume at /dev/shm, unless the container has one there."""
    own = main.get("volumeMounts")
    if isinstance(own, Item) and not isinstance(own.value, tuple):
        # Not a list: the pod schema reports that.
        return
    mounts = own.elements if isinstance(own, Item) else ()
    paths = [text_of(mount, "mountPath") for mount in mounts]
    names = [text_of(volume, "name") for volume in volumes if isinstance(volume, Item)]
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
    section = Section(item, notes, camel=True)
    own_image = section.non_empty("image")
    if own_image is None and not image:
        notes.error(item, _NO_IMAGE, below=("image",))
    result: dict[str, Draft] = {
        "name": section.non_empty("name") or name,
        "image": image or own_image,
    }
    for key in ("command", "args"):
        if (given := section.non_empty(key)) is not None:
            # A template that becomes nothing removes the argument.
            result[key] = [text for text in want_texts(_without_nulls(given), notes) if text]
    own = section.non_empty("env")
    if variables := _variables(own, notes) if own else {}:
        env = tuple(
            each for each in env if isinstance(each, dict) and each["name"] not in variables
        )
        result["env"] = [*env, *variables.values()]
    elif env:
        result["env"] = list(env)
    if (resources := section.non_empty("resources")) is not None:
        result["resources"] = quantities(resources, notes)
    for key in _AS_THEY_ARE:
        if (value := section.non_empty(key)) is not None:
            result[to_camel(key)] = value
    section.close()
    return result


def quantities(item: Item, notes: Notes) -> Item:
    """Return resource requirements with quantities as text, as Polyaxon sends them."""
    return item.with_value(
        {
            side: child
            if side not in ("requests", "limits")
            else child.with_value(
                {
                    key: amount.with_text(text)
                    for key, amount in want_mapping(child, notes).items()
                    if amount.value is not None and (text := want_text(amount, notes)) is not None
                }
            )
            for side, child in want_mapping(item, notes).items()
        }
    )


def _without_nulls(item: Item) -> Item:
    if not isinstance(item.value, tuple):
        return item
    return item.with_value(tuple(each for each in item.elements if each.value is not None))


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


class Environment(NamedTuple):
    """One environment section.

    placement: fields of a Run's environment
    pod:       fields of a pod's spec
    """

    placement: dict[str, Draft]
    pod: dict[str, Draft]
    restart_policy: Item | None = None


def environment(item: Item | None, notes: Notes) -> Environment:
    """Read one environment section."""
    if item is None:
        return Environment({}, {})
    section = Section(item, notes, camel=True)
    placed = placement(section, ALL)
    pod: dict[str, Draft] = {
        name: value
        for name, field in _POD.items()
        if (value := section.non_empty(field)) is not None
    }
    if (aliases := section.non_empty("host_aliases")) is not None:
        pod["hostAliases"] = list(map(camel, want_list(aliases, notes)))
    if (dns := section.non_empty("dns_config")) is not None:
        pod["dnsConfig"] = camel(dns)
    # Not what pydantic makes of host_pid.
    host_pid = section.non_empty("hostPID") or section.non_empty("host_pid")
    if host_pid is not None:
        pod["hostPID"] = host_pid
    if secrets := section.non_empty("image_pull_secrets"):
        pod["imagePullSecrets"] = [
            element if isinstance(element.value, dict) else {"name": element}
            for element in want_list(secrets, notes)
            if isinstance(element.value, dict) or want_text(element, notes)
        ]
    section.leave({"priority": _PRIORITY})
    policy = section.non_empty("restart_policy")
    section.close()
    known = policy is not None and want_one_of(policy, notes, _RESTARTS)
    return Environment(placed, pod, policy if known else None)
