"""Convert items to the type that a field needs, or report an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pydantic.alias_generators import to_camel

from webhook.policy.yaml_tree import Disputed
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.convert.polyaxon.draft import Notes
    from webhook.convert.polyaxon.item import Item

# As in Polyaxon, a number may be in quotes, because a template produces text.
_WHOLE: Final = re.compile(r"[0-9]{1,12}")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def want_mapping(item: Item, notes: Notes) -> Mapping[str, Item]:
    """Return the items by key; none after an error."""
    if not isinstance(item.value, dict) and item.value is not None:
        notes.error(item, f"want a mapping, not {noun(item)}")
    return item.entries


def camel(item: Item) -> Item:
    """Return a mapping with its keys in camel case; other values unchanged."""
    if not isinstance(item.value, dict):
        return item
    return item.with_value({to_camel(key): value for key, value in item.value.items()})


def want_list(item: Item, notes: Notes) -> tuple[Item, ...]:
    """Return the items of a list; none after an error."""
    if not isinstance(item.value, tuple) and item.value is not None:
        notes.error(item, f"want a list, not {noun(item)}")
    return item.elements


def want_text(item: Item, notes: Notes) -> str | None:
    """Return a scalar as it was written, also numbers and booleans."""
    if isinstance(item.value, dict | tuple) or item.value is None:
        notes.error(item, f"want text, not {noun(item)}")
        return None
    return item.as_text


def want_texts(item: Item, notes: Notes) -> list[str]:
    """Return the scalars of a list as they were written; one scalar is a list of one."""
    elements = item.elements if isinstance(item.value, tuple) else (item,)
    return [text for element in elements if (text := want_text(element, notes)) is not None]


def want_whole(item: Item, notes: Notes, *, least: int = 0) -> int | None:
    """Return an integer of at least `least`."""
    number = None
    match item.value:
        case bool():
            pass
        case int():
            number = item.value
        case float() if item.value.is_integer():
            number = int(item.value)
        case str() if _WHOLE.fullmatch(item.value.strip()):
            number = int(item.value)
    if number is None:
        notes.error(item, f"want a whole number, not {noun(item)}{_plainly(item)}")
        return None
    if number < least:
        notes.error(item, f"{number} is too small; the least is {least}")
        return None
    return number


def want_number(item: Item, notes: Notes) -> float | None:
    """Return a number of at least zero."""
    number: float | None = None
    if isinstance(item.value, int | float) and not isinstance(item.value, bool):
        number = item.value
    elif isinstance(item.value, str) and _NUMBER.fullmatch(item.value.strip()):
        number = float(item.value)
    if number is None or not 0 <= number < 10**15:
        notes.error(item, f"want a number, not {noun(item)}{_plainly(item)}")
        return None
    return number


def _plainly(item: Item) -> str:
    """Return how to write a number that readers of YAML take differently."""
    return "; write it as a decimal number" if isinstance(item.value, Disputed) else ""


def want_flag(item: Item, notes: Notes) -> bool:
    """Return a boolean; false after an error."""
    if isinstance(item.value, bool):
        return item.value
    notes.error(item, f"want true or false, not {noun(item)}")
    return False


def want_one_of(item: Item, notes: Notes, allowed: Sequence[str]) -> str | None:
    """Return one of the allowed texts."""
    text = want_text(item, notes)
    if text is None or text in allowed:
        return text
    hint = guess(text, tuple(allowed))
    notes.error(item, f"{quoted(text)} is not one of {', '.join(allowed)}{hint}")
    return None


def noun(item: Item) -> str:
    """Return a description of a value for messages."""
    match item.value:
        case dict():
            return "a mapping"
        case tuple():
            return "a list"
        case None:
            return "null"
        case Disputed():
            return f"{item.text}, which can be read as {item.value.meaning}"
    return quoted(item.as_text)
