"""What stands in a field, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.cli.run.placement_text import toleration_text
from webhook.cli.yaml_out import yaml_line
from webhook.comparison.gaps import REQUIRED
from webhook.placement.nodes import written
from webhook.placement.trace import quoted

if TYPE_CHECKING:
    from webhook.placement.shapes import Term

_MOST: Final = 200


def field_text(field: str, value: Any) -> str:
    """The field with its value; tolerations tell their key themselves."""
    if field.startswith("tolerations[") and value is not None:
        return f"tolerations: {value_text(field, value)}"
    return f"{field}: {value_text(field, value)}"


def value_text(field: str, value: Any) -> str:
    """The value as kubectl would put it; `nothing` for None."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return quoted(value)
    if field.startswith("tolerations["):
        text = "; ".join(map(toleration_text, value))
    elif field == REQUIRED:
        text = " or ".join(map(_term, value))
    else:
        text = yaml_line(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def _term(term: Term) -> str:
    parts = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
    return " and ".join(map(written, parts)) or "no node"
