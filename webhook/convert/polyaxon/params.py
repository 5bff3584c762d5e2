"""The parameters of a Polyaxonfile: what stands for each name in a template."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.item import Item, Origin, plain
from webhook.policy.scalars import Disputed
from webhook.strict import guess, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

# What Polyaxon alone knows, at the time of a run.
CONTEXTS: Final = frozenset(
    {"globals", "connections", "artifacts", "init", "ops", "runs", "dag", "experiments", "jobs"}
)

# A list of arguments is made here; each of them has its origin.
_NOWHERE: Final = Origin("", (1, 1), (1, 1))


class NotKnown(Exception):
    """A template whose value cannot be known here; the text says why, or "" if that was said."""


class NotThere(Exception):
    """A template that names what the file does not have; the text says what there is."""


@dataclass(frozen=True)
class Params:
    """Values by name.

    elsewhere: names whose value is not known, with the reason, or "" if that was said already.
    flags: names that stand for `--name` if they are true, and for nothing if not.
    """

    values: Mapping[str, Item] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()

    def find(self, steps: tuple[str | int, ...]) -> Item:
        """What `name.field[0]` stands for, as its steps. Raises NotKnown or NotThere."""
        name, rest = steps[0], steps[1:]
        if name == "params":
            return self._of_params(rest)
        if name in CONTEXTS and name not in self.values:
            raise NotKnown(f"only Polyaxon knows {_expression(steps)}")
        item = self._named(str(name))
        if name in self.flags and not rest:
            return self._flag(str(name), item)
        return _within(item, rest, steps)

    def _of_params(self, steps: tuple[str | int, ...]) -> Item:
        """`params.as_args`, and `params.name` with value, as_str or as_arg."""
        if steps == ("as_args",):
            arguments = [self._argument(name) for name in self.values]
            return Item(tuple(each for each in arguments if each.text), _NOWHERE)
        if not steps:
            raise NotThere("params stands for nothing by itself; name one of them")
        name, rest = str(steps[0]), steps[1:]
        if rest == ("as_arg",):
            return self._argument(name)
        item = self._named(name)
        if rest == ("as_str",):
            return item.saying(as_text(item))
        return _within(item, rest[1:] if rest[:1] == ("value",) else rest, ("params", *steps))

    def _named(self, name: str) -> Item:
        if name in self.elsewhere:
            raise NotKnown(self.elsewhere[name])
        if name not in self.values:
            known = (*self.values, *self.elsewhere)
            there = f"; there are {', '.join(known)}" if known else ""
            hint = guess(name, known) or there
            raise NotThere(f"there is no param {shown(name)}{hint}")
        return self.values[name]

    def _argument(self, name: str) -> Item:
        item = self._named(name)
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
    return item.written


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
