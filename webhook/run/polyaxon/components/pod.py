"""One pod of a component's runtime: environment, main container, what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon import shared_memory
from webhook.run.polyaxon.components.containers import MAIN, container
from webhook.run.polyaxon.components.environment import Environment, environment
from webhook.run.polyaxon.draft import given
from webhook.run.polyaxon.item import Item, written
from webhook.run.polyaxon.pod_order import ordered
from webhook.run.polyaxon.values import camel, want_list, want_mapping

if TYPE_CHECKING:
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.notes import Notes
    from webhook.run.polyaxon.section import Section

_CONNECTIONS: Final = (
    "connections are kept by Polyaxon; give the pods a volume, or envFrom with the Secret or "
    "ConfigMap behind it"
)
_INITIALISER: Final = (
    "Polyaxon fetches this before the run; here a container of your own under init has to do it, "
    "or the image has it"
)
_NO_CONTAINER: Final = "is required: the container that does the work"


@dataclass(frozen=True)
class Given:
    """What all pods of a component share, and the command line says.

    image: instead of every main container's own. env: variables of params with toEnv.
    """

    image: str = ""
    env: tuple[Draft, ...] = ()
    shared_memory: bool = True


@dataclass
class Pod:
    """spec: of the pod, the main container first. main: that container without its resources."""

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
        """The pod's spec, or without what the main container asks for."""
        main = self.main
        if with_resources and self.resources is not None:
            main = {**main, "resources": self.resources}
        return {"containers": [ordered(main), *self.beside], **self.around}


def pod(section: Section, shared: Given) -> Pod:
    """The pod that a runtime or one of its replicas describes. The section is not closed."""
    notes = section.notes
    section.leave({"connections": _CONNECTIONS})
    where = environment(section.given("environment"), notes)
    main, resources = _main(section, shared)
    before = _initialisers(section.given("init"), notes)
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
        given(**where.pod, initContainers=before, volumes=volumes),
        beside,
        resources,
        where,
    )


def _main(section: Section, shared: Given) -> tuple[dict[str, Draft], Item | None]:
    """The main container without its resources, and these."""
    item = section.given("container")
    if item is None:
        section.notes.error(section.item, _NO_CONTAINER, below=("container",))
        return {}, None
    main = container(item, section.notes, name=MAIN, image=shared.image, env=shared.env)
    resources = main.pop("resources", None)
    return main, resources if isinstance(resources, Item) else None


def _initialisers(item: Item | None, notes: Notes) -> list[Draft]:
    """Init containers of the author's own; those of Polyaxon's there are none of here."""
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
    item = section.given(name)
    return () if item is None else want_list(item, section.notes)


def _share_memory(main: dict[str, Draft], volumes: list[Draft]) -> None:
    """Mounts a volume at /dev/shm, unless the container has one there itself."""
    own = main.get("volumeMounts")
    if isinstance(own, Item) and not isinstance(own.value, tuple):
        # Not a list, as the pod schema will say.
        return
    mounts = own.elements if isinstance(own, Item) else ()
    paths = [written(mount, "mountPath") for mount in mounts]
    names = [written(volume, "name") for volume in volumes if isinstance(volume, Item)]
    if shared_memory.PATH in paths or shared_memory.NAME in names:
        return
    main["volumeMounts"] = [*mounts, shared_memory.MOUNT]
    volumes.append(shared_memory.VOLUME)
