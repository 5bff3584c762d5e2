"""The placement that an environment section asks for, as a Run's environment has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.values import camel, want_list, want_mapping, want_text

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes
    from webhook.convert.polyaxon.section import Section

# Polyaxon makes text of whatever stands here: a number or a boolean is a label's value too.
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


def placement(section: Section, names: tuple[str, ...]) -> dict[str, Draft]:
    """Those of the fields that have something in them; whether it is right the Run's model says."""
    result: dict[str, Draft] = {}
    for name in names:
        item = section.given(name)
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
