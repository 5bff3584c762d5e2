"""The field of a Run's model that has a default on the native backend only.

The schema has no `default` for these fields, so that the API server does not store values that
nobody wrote: another engine may have no counterpart for them, and only a written field can be
rejected. A default stays in the schema if it means the same on every engine: kind, count, suspend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_WORDS: Final = {True: "true", False: "false"}


def _remove_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def native_default(value: Any, description: str, **limits: Any) -> Any:
    """Return a field that is `value` if it is unset; the schema says so in words only."""
    return Field(
        default=value,
        description=f"{description} Default: {format_value(value)}.",
        json_schema_extra=_remove_default,
        **limits,
    )


def is_native_default(field: FieldInfo) -> bool:
    """Return True for a field of a model that is made by `native_default`."""
    return field.json_schema_extra is _remove_default


def format_value(value: object) -> str:
    """Return the value as YAML writes it."""
    return _WORDS[value] if isinstance(value, bool) else str(value)
