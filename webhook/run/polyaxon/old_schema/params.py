"""The params of the old schema: declarations, as they were called first, and inputs' defaults."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.policy.scalars import Disputed
from webhook.run.polyaxon.params import Params, truth
from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.templates import resolved
from webhook.run.polyaxon.values import want_flag, want_list, want_mapping, want_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

# What they were exported under, each as JSON.
_VARIABLES: Final = {"params": "POLYAXON_PARAMS", "declarations": "POLYAXON_DECLARATIONS"}
_TWICE: Final = "are params by their older name; keep one of the two"
_MISSING: Final = "has no value: give it in params, or on the command line: --param {name}=…"


class Given(NamedTuple):
    """params: for templates. env: the variable under which a program finds them all."""

    params: Params
    env: tuple[Draft, ...] = ()


def read(section: Section, overrides: Mapping[str, Item]) -> Given:
    """params or declarations, and inputs. `overrides` are the command line's."""
    notes = section.notes
    params, declarations = section.given("params"), section.given("declarations")
    if params is not None and declarations is not None:
        notes.error(declarations, _TWICE, key=True)
    written = params or declarations
    values = dict(want_mapping(written, notes)) if written else {}
    values.update(overrides)
    flags: set[str] = set()
    missing: dict[str, str] = {}
    inputs = section.given("inputs")
    for item in want_list(inputs, notes) if inputs else ():
        _input(item, values, flags, missing, notes)
    if not values:
        return Given(Params(elsewhere=missing))
    name = _VARIABLES["declarations" if params is None and declarations is not None else "params"]
    known = resolved(Params(values, missing, frozenset(flags)), notes)
    text = json.dumps({key: _jsonable(value) for key, value in known.values.items()})
    return Given(known, ({"name": name, "value": text},))


def _input(
    item: Item, values: dict[str, Item], flags: set[str], missing: dict[str, str], notes: Notes
) -> None:
    section = Section(item, notes)
    name_of, default = section.given("name"), section.take("default")
    optional, flag = section.take("is_optional"), section.given("is_flag")
    section.ignore("description", "type", "is_list", "options")
    section.close()
    name = want_text(name_of, notes) if name_of else None
    if name is None:
        if name_of is None:
            notes.error(item, "is required", below=("name",))
        return
    if flag is not None and want_flag(flag, notes):
        flags.add(name)
    if name in values:
        return
    if default is not None:
        values[name] = default
    elif optional is not None and want_flag(optional, notes):
        values[name] = item.holding(None)
    else:
        missing[name] = ""
        notes.error(item, f"the input {name} {_MISSING.format(name=name)}")


def _jsonable(item: Item) -> Any:
    """A value as Polyaxon had it: `yes` is true."""
    if isinstance(item.value, dict):
        return {key: _jsonable(child) for key, child in item.value.items()}
    if isinstance(item.value, tuple):
        return [_jsonable(child) for child in item.value]
    known = truth(item)
    if known is not None or not isinstance(item.value, Disputed):
        return item.value if known is None else known
    return item.text
