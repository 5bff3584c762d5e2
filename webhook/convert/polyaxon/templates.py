"""Templates, `{{ … }}`, and the parameters that give them values.

Polyaxon's are Jinja's. Names, their fields and positions are understood here. Templates with
filters, arithmetic or blocks stay as they are, with a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.item import Item, Origin, plain
from webhook.policy.yaml_tree import Disputed
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Notes

_TEMPLATE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
_PLAIN: Final = re.compile(
    rf"\s*{_NAME}(\s*\.\s*{_NAME}|\[\s*(-?[0-9]{{1,6}}|'[^']*'|\"[^\"]*\")\s*\])*\s*"
)
_STEP: Final = re.compile(rf"({_NAME})|\[\s*(-?[0-9]+)\s*\]|\[\s*(?:'([^']*)'|\"([^\"]*)\")\s*\]")
_CURE: Final = "it is not replaced: write the value into the Run"
# What Polyaxon alone knows, at the time of a run.
CONTEXTS: Final = frozenset(
    {"globals", "connections", "artifacts", "init", "ops", "runs", "dag", "experiments", "jobs"}
)

# A list of arguments is made here; each of them has its origin.
_NOWHERE: Final = Origin("", (1, 1), (1, 1))


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
        notes.warning(item, f"a template with blocks is not supported; {_CURE}", key=False)
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
        what = f"the template {quoted(expression.strip())} is more than a name"
        notes.warning(item, f"{what}; {_CURE}", key=False)
        return None
    try:
        return params.find(_steps(expression))
    except UnknownValue as reason:
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


class UnknownValue(Exception):
    """A template whose value cannot be known here; with the reason, or "" if reported."""


class NotThere(Exception):
    """A template that names what the file does not have; the text says what there is."""


@dataclass(frozen=True)
class Params:
    """Values by name.

    elsewhere: names whose value is not known, with the reason, or "" if that was reported already.
    flags: names whose value is `--name` if they are true, and nothing if not.
    """

    values: Mapping[str, Item] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()

    def find(self, steps: tuple[str | int, ...]) -> Item:
        """The value of `name.field[0]`, given as steps. Raises NotKnown or NotThere."""
        name, rest = steps[0], steps[1:]
        if name == "params":
            return self._of_params(rest)
        if name in CONTEXTS and name not in self.values:
            raise UnknownValue(f"only Polyaxon knows {_expression(steps)}")
        item = self._param(str(name))
        if name in self.flags and not rest:
            return self._flag(str(name), item)
        return _within(item, rest, steps)

    def _of_params(self, steps: tuple[str | int, ...]) -> Item:
        """`params.as_args`, and `params.name` with value, as_str or as_arg."""
        if steps == ("as_args",):
            arguments = [self._argument(name) for name in self.values]
            return Item(tuple(each for each in arguments if each.text), _NOWHERE)
        if not steps:
            raise NotThere("params has no value by itself; name one of them")
        name, rest = str(steps[0]), steps[1:]
        if rest == ("as_arg",):
            return self._argument(name)
        item = self._param(name)
        if rest == ("as_str",):
            return item.saying(as_text(item))
        return _within(item, rest[1:] if rest[:1] == ("value",) else rest, ("params", *steps))

    def _param(self, name: str) -> Item:
        if name in self.elsewhere:
            raise UnknownValue(self.elsewhere[name])
        if name not in self.values:
            known = (*self.values, *self.elsewhere)
            there = f"; there are {', '.join(known)}" if known else ""
            hint = guess(name, known) or there
            raise NotThere(f"there is no param {quoted(name)}{hint}")
        return self.values[name]

    def _argument(self, name: str) -> Item:
        item = self._param(name)
        if name in self.flags:
            return self._flag(name, item)
        return item.saying("" if item.value is None else f"--{name}={as_text(item)}")

    def _flag(self, name: str, item: Item) -> Item:
        return item.saying(f"--{name}" if truth(item) else "")


def as_text(item: Item) -> str:
    """A value in the midst of a text, as Polyaxon's templates write it: True, ['a', 1], 0.001."""
    if item.value is None:
        return ""
    if isinstance(item.value, dict | tuple):
        return str(plain(item))
    if isinstance(item.value, bool | Disputed):
        known = truth(item)
        return item.text if known is None else str(known)
    return item.as_text


def truth(item: Item) -> bool | None:
    """A boolean, as YAML 1.1 reads it; None if it is none."""
    if isinstance(item.value, bool):
        return item.value
    if isinstance(item.value, Disputed) and item.value.meaning == "a boolean":
        return item.value.text.lower() in ("y", "yes", "on")
    return None


def _within(item: Item, steps: tuple[str | int, ...], whole: tuple[str | int, ...]) -> Item:
    for step in steps:
        below = None
        if isinstance(step, str):
            below = item.entries.get(step)
        elif -len(item.elements) <= step < len(item.elements):
            below = item.elements[step]
        if below is None:
            raise NotThere(f"{_expression(whole)}: there is no {step} in it")
        item = below
    return item


def _expression(steps: tuple[str | int, ...]) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps[1:])
    return f"{steps[0]}{''.join(parts)}"
