"""What stands in a field, in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.run.placement_text import toleration_text
from webhook.cli.yaml_out import yaml_line
from webhook.comparison.gaps import REQUIRED
from webhook.placement.nodes import written
from webhook.placement.settings import (
    ListSetting,
    RequiredSetting,
    SpreadSetting,
    TolerationSetting,
)
from webhook.placement.trace import apart

if TYPE_CHECKING:
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Term

_MOST: Final = 200


def field_text(field: str, value: Any) -> str:
    """The field with its value, cut; tolerations tell their key themselves."""
    text = _whole(field, value)
    return _named(field, value, text if len(text) <= _MOST else f"{text[:_MOST]}…")


def setting_text(setting: PlacementSetting) -> str:
    """What a setting for more than one value asks for; empty for one whose reason has its value."""
    match setting:
        case TolerationSetting():
            return toleration_text(dict(setting.toleration))
        case RequiredSetting():
            return _whole(REQUIRED, setting.terms)
        case ListSetting():
            return yaml_line(_by_key([*setting.entries]))
        case SpreadSetting():
            return yaml_line(_by_key(setting.constraint))
    return ""


def both_texts(field: str, has: Any, would: Any) -> tuple[str, str]:
    """Two different values of a field, cut so that the texts differ.

    What only one of two lists has comes first.
    """
    one, other = _whole(field, _own_first(has, would)), _whole(field, _own_first(would, has))
    if one == other:
        # What is written alike may differ in parts that people leave out.
        one, other = _json(has), _json(would)
    return apart(one, other, _MOST)


def both_fields(field: str, has: Any, would: Any) -> tuple[str, str]:
    """The same, with the field before each."""
    one, other = both_texts(field, has, would)
    return _named(field, has, one), _named(field, would, other)


def _named(field: str, value: Any, text: str) -> str:
    holder = "tolerations" if field.startswith("tolerations[") and value is not None else field
    return f"{holder}: {text}"


def _own_first(value: Any, other: Any) -> Any:
    if not isinstance(value, list) or not isinstance(other, list):
        return value
    return sorted(value, key=lambda each: each in other)


def _json(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _whole(field: str, value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value)
    if field.startswith("tolerations["):
        return "; ".join(map(toleration_text, value))
    if field == REQUIRED:
        return " or ".join(map(_term, value))
    return yaml_line(_by_key(value))


def _by_key(value: Any) -> Any:
    """The value with the keys of each object in order, whoever wrote it."""
    if isinstance(value, list):
        return [_by_key(each) for each in value]
    if isinstance(value, dict):
        return {key: _by_key(value[key]) for key in sorted(value)}
    return value


def _term(term: Term) -> str:
    parts = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
    return " and ".join(map(written, parts)) or "no node"
