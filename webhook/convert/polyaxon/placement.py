"""What every pod of a Polyaxonfile has: placement, order of a container's fields, shared memory.

Source of the volume at /dev/shm: polyaxon (`get_shm_volumes` of 0.x, `plugins.shm` since 1.1).
Without it there are 64 MiB, too little for the data loaders of PyTorch. Its memory counts as the
container's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.values import camel, want_list, want_mapping, want_text

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import Item, Section

# Polyaxon converts any value here to text: a number or a boolean is a label's value too.
_TEXTS: Final = ("labels", "annotations", "node_selector")
_AS_THEY_ARE: Final = (
    "affinity",
    "security_context",
    "node_name",
    "priority_class_name",
    "scheduler_name",
)
# Polyaxon made Kubernetes' objects of them, and took their fields in snake case too.
_OBJECTS: Final = ("affinity", "security_context")
OLD: Final = ("labels", "annotations", "node_selector", "tolerations", "affinity")
ALL: Final = (*OLD, *_AS_THEY_ARE[1:])
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


def placement(section: Section, names: tuple[str, ...]) -> dict[str, Draft]:
    """The fields that are not empty; the Run's model validates them."""
    result: dict[str, Draft] = {}
    for name in names:
        item = section.non_empty(name)
        if item is None:
            continue
        if name in _TEXTS:
            item = texts(item, section.notes)
        elif name in _OBJECTS:
            item = camel(item)
        elif name == "tolerations":
            item = item.holding(tuple(map(camel, want_list(item, section.notes))))
        if not item.is_empty:
            result[to_camel(name)] = item
    return result


def texts(item: Item, notes: Notes) -> Item:
    """A mapping whose values are text, as they were written."""
    return item.holding(
        {
            key: child.saying(text)
            for key, child in want_mapping(item, notes).items()
            if (text := want_text(child, notes)) is not None
        }
    )


def ordered(container: dict[str, Draft]) -> dict[str, Draft]:
    """The container with its usual fields first; those that it has not are left out."""
    first: dict[str, Draft] = {name: container[name] for name in _FIRST if name in container}
    return {**first, **container}
