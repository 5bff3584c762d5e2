"""Containers of a component, as a pod has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic.alias_generators import to_camel

from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.values import want_mapping, want_text, want_texts

if TYPE_CHECKING:
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

MAIN: Final = "main"
# v1.Container, but for what is read here.
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


def container(
    item: Item, notes: Notes, *, name: str, image: str = "", env: tuple[Draft, ...] = ()
) -> dict[str, Draft]:
    """A container; `name` if it has none of its own, `image` instead of its own if given.

    env: variables beside its own, which win.
    """
    section = Section(item, notes, camel=True)
    own_image = section.given("image")
    if own_image is None and not image:
        notes.error(item, _NO_IMAGE, below=("image",))
    result: dict[str, Draft] = {"name": section.given("name") or name, "image": image or own_image}
    for field in ("command", "args"):
        if (given := section.given(field)) is not None:
            # A template that stands for nothing leaves an argument out.
            result[field] = [text for text in want_texts(_without_nulls(given), notes) if text]
    own = section.given("env")
    if variables := _variables(own, notes) if own else {}:
        env = tuple(
            each for each in env if isinstance(each, dict) and each["name"] not in variables
        )
        result["env"] = [*env, *variables.values()]
    elif env:
        result["env"] = list(env)
    if (resources := section.given("resources")) is not None:
        result["resources"] = quantities(resources, notes)
    for field in _AS_THEY_ARE:
        if (value := section.given(field)) is not None:
            result[to_camel(field)] = value
    section.close()
    return result


def quantities(item: Item, notes: Notes) -> Item:
    """Resource requirements with their quantities as text, as Polyaxon sends them."""
    return item.holding(
        {
            side: child
            if side not in ("requests", "limits")
            else child.holding(
                {
                    key: amount.saying(text)
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
    return item.holding(tuple(each for each in item.elements if each.value is not None))


def _variables(item: Item, notes: Notes) -> dict[str, Draft]:
    """Variables by name, the last of each: the kubelet takes that one."""
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
    return {"name": name, "value": None if text is None else value.saying(text)}
