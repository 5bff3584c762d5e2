"""Parts of every pod of a Polyaxonfile: placement, order of container fields, shared memory.

Source of the volume at /dev/shm: polyaxon (`get_shm_volumes` of 0.x, `plugins.shm` since 1.1).
Without it there are 64 MiB, too little for the data loaders of PyTorch. Its memory counts as the
container's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.item import camel, camel_list, given, want_texts_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.convert.polyaxon.draft import Draft
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
    """Return the container with its usual fields first."""
    first: dict[str, Draft] = {name: container[name] for name in _FIRST if name in container}
    return {**first, **container}
