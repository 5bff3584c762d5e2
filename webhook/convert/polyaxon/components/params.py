"""The params of an operation and the inputs of its component: what stands for each name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.params import Params, as_text
from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.templates import resolved
from webhook.convert.polyaxon.values import want_flag, want_list, want_mapping, want_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

# What tells a param written at length from one whose value is a mapping.
_AT_LENGTH: Final = frozenset({"value", "ref", "context_only", "connection", "to_init", "to_env"})
_REFERENCE: Final = "its value is another run's, and only Polyaxon knows it"
_BRINGS: Final = (
    "Polyaxon fetches what this stands for; give the pods a volume or an init container"
)
_MISSING: Final = "has no value: give it in params, or on the command line: --param {name}=…"


@dataclass
class Given:
    """params: for templates. env: the variables of params with toEnv."""

    params: Params
    env: tuple[Draft, ...] = ()


@dataclass
class _Reader:
    notes: Notes
    values: dict[str, Item] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)

    def declared(self, item: Item, *, required: bool, by_others: frozenset[str]) -> None:
        """One of inputs or outputs. `by_others`: names for which a value is given elsewhere."""
        section = Section(item, self.notes, camel=True)
        name_of = section.given("name")
        name = want_text(name_of, self.notes) if name_of else None
        value, optional = section.take("value"), section.take("is_optional")
        flag, variable = section.given("is_flag"), section.given("to_env")
        section.leave({"connection": _BRINGS, "to_init": _BRINGS})
        section.ignore("description", "type", "is_list", "arg_format", "validation", "options")
        section.ignore("delay_validation")
        section.close()
        if name is None:
            if name_of is None:
                self.notes.error(item, "is required", below=("name",))
            return
        if flag is not None and want_flag(flag, self.notes):
            self.flags.add(name)
        if variable is not None and (text := want_text(variable, self.notes)):
            self.variables[name] = text
        if value is not None:
            self.values[name] = value
        elif name in by_others:
            return
        elif optional is not None and want_flag(optional, self.notes):
            self.values[name] = item.holding(None)
        elif required:
            self.notes.error(item, f"the input {name} {_MISSING.format(name=name)}")
            self.elsewhere[name] = ""

    def param(self, name: str, item: Item) -> None:
        """One of params: a value, or at length with one."""
        if not isinstance(item.value, dict) or not _AT_LENGTH & {_snake(k) for k in item.entries}:
            self.values[name] = item
            return
        section = Section(item, self.notes, camel=True)
        value, reference = section.take("value"), section.given("ref")
        variable = section.given("to_env")
        section.leave({"connection": _BRINGS, "to_init": _BRINGS})
        section.ignore("context_only")
        section.close()
        if variable is not None and (text := want_text(variable, self.notes)):
            self.variables[name] = text
        if reference is not None:
            self.elsewhere[name] = f"{name}: {_REFERENCE}"
            self.values.pop(name, None)
            self.notes.warning(reference, f"{_REFERENCE}; give a value")
        elif value is not None:
            self.values[name] = value

    def given(self) -> Given:
        """All of it. A variable whose param has no value is left out."""
        params = resolved(Params(self.values, self.elsewhere, frozenset(self.flags)), self.notes)
        env: list[Draft] = []
        for name, variable in self.variables.items():
            value = params.values.get(name)
            if value is not None and value.value is not None:
                env.append({"name": variable, "value": value.saying(as_text(value))})
        return Given(params, tuple(env))


def read(section: Section, overrides: Mapping[str, Item]) -> Given:
    """inputs, outputs and params of what is composed. `overrides` are the command line's."""
    notes = section.notes
    reader = _Reader(notes)
    params = section.given("params")
    written = want_mapping(params, notes) if params else {}
    others = frozenset({*written, *overrides})
    for field_name in ("inputs", "outputs"):
        declared = section.given(field_name)
        for item in want_list(declared, notes) if declared else ():
            reader.declared(item, required=field_name == "inputs", by_others=others)
    for name, item in written.items():
        if name not in overrides:
            reader.param(name, item)
    for name, item in overrides.items():
        reader.values[name] = item
    return reader.given()


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
