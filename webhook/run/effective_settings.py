"""The values that the fields with a native default have in one Run, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.frameworks.native_default import format_value, is_native_default
from webhook.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.run.model import Run


class EffectiveSetting(NamedTuple):
    """The value that a field of a Run has for the controller.

    path: of the field, from the Run's root, such as spec.backoffLimit.
    written: False if the field is unset and the value is the default.
    role: of a field of one role; else empty.
    """

    path: str
    value: Any
    written: bool
    role: str = ""


def effective_settings(run: Run) -> list[EffectiveSetting]:
    """Return all fields with a native default, in the order of the schema.

    A notebook, a tensorboard or a service uses none of them. On another backend than native only
    written fields are returned: the defaults are the engine's.
    """
    if run.spec.serving:
        return []
    settings = [*_settings(run.spec, "spec", nested=False)]
    for role, replica in run.spec.roles.items():
        own_role = _settings(replica, f"spec.replicas.{role}")
        settings += [setting._replace(role=role) for setting in own_role]
    framework_settings = run.spec.settings
    if framework_settings is not None:
        settings += _settings(framework_settings, f"spec.{run.spec.framework}")
    if run.spec.delegated:
        return [setting for setting in settings if setting.written]
    return [setting for setting in settings if setting.path != "spec.backend"]


def setting_rows(settings: Sequence[EffectiveSetting]) -> Iterator[list[str]]:
    """Yield a row for the written settings, and one for the defaults; equal roles together."""
    all_roles = {setting.role for setting in settings if setting.role}
    for title, written in (("settings", True), ("defaults", False)):
        roles: dict[str, list[str]] = {}
        for setting in settings:
            if setting.written is written:
                roles.setdefault(_text(setting), []).append(setting.role)
        texts = [
            text
            if role_names == [""] or len(role_names) == len(all_roles)
            else f"{text} ({', '.join(role_names)})"
            for text, role_names in roles.items()
        ]
        if texts:
            yield [title, ", ".join(texts)]


def settings_document(settings: Sequence[EffectiveSetting]) -> dict[str, Any]:
    """Return the settings as JSON: path -> value, and whether it is a default."""
    return {
        setting.path: {"value": setting.value, "default": not setting.written}
        for setting in settings
    }


def _settings(model: Strict, at: str, *, nested: bool = True) -> Iterator[EffectiveSetting]:
    outer = dict(zip(type(model).model_fields, type(model).outer_names(), strict=True))
    for name, field in type(model).model_fields.items():
        value, path = getattr(model, name), f"{at}.{outer[name]}"
        if is_native_default(field):
            yield EffectiveSetting(path, value, name in model.model_fields_set)
        elif nested and isinstance(value, Strict):
            yield from _settings(value, path)


def _text(setting: EffectiveSetting) -> str:
    path = setting.path.removeprefix(f"spec.replicas.{setting.role}.").removeprefix("spec.")
    return f"{path} {format_value(setting.value)}"
