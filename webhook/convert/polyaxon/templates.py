"""Templates, `{{ … }}`, and the parameters that give them values.

Polyaxon uses Jinja. Names, fields and positions are replaced. Templates with filters, arithmetic
or blocks are not replaced, and produce a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from webhook.convert.polyaxon.item import NOTHING, Item, plain, want_flag
from webhook.policy.yaml_tree import Disputed
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.convert.polyaxon.draft import Draft, Notes

_TEMPLATE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
_PLAIN: Final = re.compile(
    rf"\s*{_NAME}(\s*\.\s*{_NAME}|\[\s*(-?[0-9]{{1,6}}|'[^']*'|\"[^\"]*\")\s*\])*\s*"
)
_STEP: Final = re.compile(rf"({_NAME})|\[\s*(-?[0-9]+)\s*\]|\[\s*(?:'([^']*)'|\"([^\"]*)\")\s*\]")
_CURE: Final = "it is not replaced: write the value into the Run"
# Values that only Polyaxon knows, at the time of a run.
CONTEXTS: Final = frozenset(
    {"globals", "connections", "artifacts", "init", "ops", "runs", "dag", "experiments", "jobs"}
)
_MISSING: Final = "has no value: give it in params, or on the command line: --param {name}=…"


class UnknownValue(Exception):
    """The value of a template is unknown; the text has the reason, or "" if it was reported."""


class NotThere(Exception):
    """A template has an unknown name; the text lists the known ones."""


@dataclass
class Params:
    """Values by name.

    given:     names that have a value elsewhere in the file, or on the command line
    elsewhere: names whose value is unknown, with the reason, or "" if it was reported already
    flags:     names that become `--name` if they are true, else nothing
    variables: the variables of the pods that params become, by the params' names
    """

    notes: Notes
    given: Collection[str]
    values: dict[str, Item] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)

    def declare(self, item: Item, fields: Mapping[str, Any], *, required: bool = True) -> None:
        """Add one declared param, with its fields. A `required` one without a value is an error."""
        name = fields.get("name")
        if name is None:
            if item.find("name").is_empty:
                self.notes.error(item, "is required", below=("name",))
            return
        if fields.get("isFlag"):
            self.flags.add(name)
        if "toEnv" in fields:
            self.variables[name] = fields["toEnv"]
        value = fields.get("value", fields.get("default"))
        if value is not None:
            self.values[name] = value
        elif name in self.given:
            return
        elif "isOptional" in fields and want_flag(fields["isOptional"], self.notes):
            self.values[name] = item.with_value(None)
        elif required:
            self.notes.error(item, f"the input {name} {_MISSING.format(name=name)}")
            self.elsewhere[name] = ""

    def resolve(self) -> None:
        """Replace the templates in the values once: they may name others."""
        self.values = {name: self.bind(item) for name, item in self.values.items()}

    @property
    def env(self) -> Iterator[dict[str, Draft]]:
        """The variables. One whose param has no value is left out."""
        for name, variable in self.variables.items():
            value = self.values.get(name, NOTHING)
            if value.value is not None:
                yield {"name": variable, "value": value.with_text(as_text(value))}

    def bind(self, item: Item) -> Item:
        """Return the item with all templates in it replaced.

        A text that consists of one template becomes the value itself: a number stays a number. In
        a list, a template that becomes a list is inlined.
        """
        if isinstance(item.value, dict):
            return item.with_value({key: self.bind(child) for key, child in item.value.items()})
        if isinstance(item.value, tuple):
            result: list[Item] = []
            for element in item.elements:
                new = self.bind(element)
                spread = isinstance(new.value, tuple) and not isinstance(element.value, tuple)
                result += new.elements if spread else [new]
            return item.with_value(tuple(result))
        if not isinstance(item.value, str) or "{" not in item.value:
            return item
        if "{%" in item.value or "{#" in item.value:
            what = f"a template with blocks is not supported; {_CURE}"
            self.notes.warning(item, what, key=False)
            return item
        whole = _TEMPLATE.fullmatch(item.value.strip())
        if (
            whole
            and "}}" not in whole[1]
            and (param_value := self._value(whole[1], item)) is not None
        ):
            truth_value = truth(param_value)
            if truth_value is not None:
                return Item(truth_value, item.origin, str(truth_value))
            return Item(param_value.value, item.origin, param_value.text)

        def replacement(hit: re.Match[str]) -> str:
            param_value = self._value(hit[1], item)
            return hit[0] if param_value is None else as_text(param_value)

        return item.with_text(_TEMPLATE.sub(replacement, item.value))

    def _value(self, expression: str, item: Item) -> Item | None:
        try:
            if not _PLAIN.fullmatch(expression):
                what = f"the template {quoted(expression.strip())} is more than a name"
                raise UnknownValue(what)
            return self.find(
                tuple(
                    int(position) if position else name or single or double
                    for name, position, single, double in _STEP.findall(expression)
                )
            )
        except UnknownValue as reason:
            if str(reason):
                self.notes.warning(item, f"{reason}; {_CURE}", key=False)
        except NotThere as reason:
            self.notes.error(item, str(reason))
        return None

    def find(self, steps: tuple[str | int, ...]) -> Item:
        """Return the value of `name.field[0]`, given as steps. Raises UnknownValue or NotThere."""
        name, rest = steps[0], steps[1:]
        if name == "params":
            return self._of_params(rest)
        if name in CONTEXTS and name not in self.values:
            raise UnknownValue(f"only Polyaxon knows {_expression(steps)}")
        if name in self.flags and not rest:
            return self._argument(str(name))
        return _within(self._param(str(name)), rest, steps)

    def _of_params(self, steps: tuple[str | int, ...]) -> Item:
        """`params.as_args`, and `params.name` with value, as_str or as_arg."""
        if steps == ("as_args",):
            arguments = [self._argument(name) for name in self.values]
            return Item(tuple(argument for argument in arguments if argument.text), NOTHING.origin)
        if not steps:
            raise NotThere("params has no value by itself; name one of them")
        name, rest = str(steps[0]), steps[1:]
        if rest == ("as_arg",):
            return self._argument(name)
        item = self._param(name)
        if rest == ("as_str",):
            return item.with_text(as_text(item))
        return _within(item, rest[1:] if rest[:1] == ("value",) else rest, ("params", *steps))

    def _param(self, name: str) -> Item:
        if name in self.elsewhere:
            raise UnknownValue(self.elsewhere[name])
        if name not in self.values:
            param_names = (*self.values, *self.elsewhere)
            alternatives = f"; there are {', '.join(param_names)}" if param_names else ""
            hint = guess(name, param_names) or alternatives
            raise NotThere(f"there is no param {quoted(name)}{hint}")
        return self.values[name]

    def _argument(self, name: str) -> Item:
        item = self._param(name)
        if name in self.flags:
            return item.with_text(f"--{name}" if truth(item) else "")
        return item.with_text("" if item.value is None else f"--{name}={as_text(item)}")


def as_text(item: Item) -> str:
    """Return a value inside of a text as Polyaxon's templates write it: True, ['a', 1], 0.001."""
    if item.value is None:
        return ""
    if isinstance(item.value, dict | tuple):
        return str(plain(item))
    if isinstance(item.value, bool | Disputed):
        truth_value = truth(item)
        return item.text if truth_value is None else str(truth_value)
    return item.as_text


def truth(item: Item) -> bool | None:
    """Return a boolean of YAML 1.1; None if it is not one."""
    if isinstance(item.value, bool):
        return item.value
    if isinstance(item.value, Disputed) and item.value.meaning == "a boolean":
        return item.value.text.lower() in ("y", "yes", "on")
    return None


def _within(item: Item, steps: tuple[str | int, ...], whole: tuple[str | int, ...]) -> Item:
    for step in steps:
        item = item.find(step)
        if item is NOTHING:
            raise NotThere(f"{_expression(whole)}: there is no {step} in it")
    return item


def _expression(steps: tuple[str | int, ...]) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps[1:])
    return f"{steps[0]}{''.join(parts)}"
