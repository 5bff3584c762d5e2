"""Templates, `{{ … }}`, and what stands for them.

Polyaxon's are Jinja's. Names, their fields and positions are understood here; what has filters,
arithmetic or blocks is left as it stands, with a warning.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.item import Item
from webhook.convert.polyaxon.params import NotKnown, NotThere, as_text, truth
from webhook.strict import shown

if TYPE_CHECKING:
    from webhook.convert.polyaxon.notes import Notes
    from webhook.convert.polyaxon.params import Params

_TEMPLATE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
_PLAIN: Final = re.compile(
    rf"\s*{_NAME}(\s*\.\s*{_NAME}|\[\s*(-?[0-9]{{1,6}}|'[^']*'|\"[^\"]*\")\s*\])*\s*"
)
_STEP: Final = re.compile(rf"({_NAME})|\[\s*(-?[0-9]+)\s*\]|\[\s*(?:'([^']*)'|\"([^\"]*)\")\s*\]")
_CURE: Final = "it is left as it stands: write the value into the Run"


def bound(item: Item, params: Params, notes: Notes) -> Item:
    """The item with its templates replaced, all the way down.

    A text that is one template and nothing else becomes the value itself: a number stays one.
    """
    if isinstance(item.value, dict):
        return item.holding({k: bound(child, params, notes) for k, child in item.value.items()})
    if isinstance(item.value, tuple):
        return item.holding(tuple(_elements(item, params, notes)))
    if not isinstance(item.value, str) or "{" not in item.value:
        return item
    if "{%" in item.value or "{#" in item.value:
        notes.warning(item, f"a template with blocks is not understood; {_CURE}", key=False)
        return item
    whole = _TEMPLATE.fullmatch(item.value.strip())
    if (
        whole
        and "}}" not in whole[1]
        and (found := _value(whole[1], item, params, notes)) is not None
    ):
        known = truth(found)
        if known is not None:
            return Item(known, item.origin, str(known))
        return Item(found.value, item.origin, found.text)
    return item.saying(_TEMPLATE.sub(lambda hit: _text(hit, item, params, notes), item.value))


def resolved(params: Params, notes: Notes) -> Params:
    """The params with the templates in their own values replaced, once: they may name others."""
    values = {name: bound(item, params, notes) for name, item in params.values.items()}
    return replace(params, values=values)


def _elements(item: Item, params: Params, notes: Notes) -> list[Item]:
    """A list's items; what one template makes a list of is a part of this one."""
    result: list[Item] = []
    for element in item.elements:
        new = bound(element, params, notes)
        spread = isinstance(new.value, tuple) and not isinstance(element.value, tuple)
        result += new.elements if spread else [new]
    return result


def _text(hit: re.Match[str], item: Item, params: Params, notes: Notes) -> str:
    found = _value(hit[1], item, params, notes)
    return hit[0] if found is None else as_text(found)


def _value(expression: str, item: Item, params: Params, notes: Notes) -> Item | None:
    if not _PLAIN.fullmatch(expression):
        what = f"the template {shown(expression.strip())} is more than a name"
        notes.warning(item, f"{what}; {_CURE}", key=False)
        return None
    try:
        return params.find(_steps(expression))
    except NotKnown as reason:
        if str(reason):
            notes.warning(item, f"{reason}; {_CURE}", key=False)
    except NotThere as reason:
        notes.error(item, str(reason))
    return None


def _steps(expression: str) -> tuple[str | int, ...]:
    return tuple(
        int(position) if position else name or single or double
        for name, position, single, double in _STEP.findall(expression)
    )
