"""Settings classes: dataclasses whose fields name the options that they are read from."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from webhook.api_paths import check_name, check_namespace
from webhook.errors import InvalidName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_S = TypeVar("_S")

_OPTION: Final = "option"


class Number(click.FloatRange):
    """A number within inclusive bounds; nan and inf are invalid."""

    def __init__(self, least: float, most: float) -> None:
        super().__init__(min=least, max=most)
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = click.FLOAT.convert(value, param, ctx)
        # click.FloatRange accepts nan, because every comparison with nan is false.
        if not self._least <= number <= self._most:
            self.fail(
                f"{value} is out of range: want {self._least:g} to {self._most:g}", param, ctx
            )
        return number


class Seconds(Number):
    """A duration."""

    name = "seconds"


class Selector(click.ParamType[str]):
    """A label selector as the API server takes it, which says of other texts what is wrong."""

    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the selector; a blank one would select all."""
        if value and not str(value).strip():
            self.fail(f"the selector {value!r} is blank, which selects all", param, ctx)
        return str(value)


class ObjectName(click.ParamType[str]):
    """The name of an object. It may be empty only as the default, which is then something else."""

    name = "name"
    check: Callable[[str], str] = staticmethod(check_name)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; click reports an error."""
        source = ctx and param and param.name and ctx.get_parameter_source(param.name)
        if not value and source is ParameterSource.DEFAULT:
            return ""
        try:
            return self.check(value)
        except InvalidName as error:
            self.fail(str(error), param, ctx)


class NamespaceName(ObjectName):
    """The name of a namespace."""

    check = staticmethod(check_namespace)


class TargetOption(click.Option):
    """An option that chooses which cluster or objects a command is about.

    It is given once: of two values the last would count, which chooses what nobody named.
    """

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser keep all values."""
        del ctx
        parser.add_option(self, [*self.opts, *self.secondary_opts], self.name, action="append")

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value; click reports an error."""
        value, source = super().consume_value(ctx, opts)
        if source is not ParameterSource.COMMANDLINE:
            return value, source
        if len(value) > 1:
            raise click.UsageError(
                f"{self.opts[-1]} is given {len(value)} times: give it once", ctx
            )
        return value[0], source


def setting(*flags: str, **attributes: Any) -> Any:
    """Return a field of a settings class, with the flags and attributes of its click.option.

    A default that says something is in the help.
    """
    attributes = {"show_default": bool(attributes.get("default")), **attributes}
    return dataclasses.field(metadata={_OPTION: (flags, attributes)})


def settings_options(settings: type[_S]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each `setting` of this dataclass, and one value with all fields.

    Other fields are parameters that the command declares itself. Its other parameters are passed
    after that value, by name.
    """
    fields = dataclasses.fields(settings)  # type: ignore[arg-type]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            values = {field.name: given.pop(field.name) for field in fields}
            command(settings(**values), **given)

        wrapped: Callable[..., None] = with_options
        for field in reversed(fields):
            if field.metadata:
                flags, attributes = field.metadata[_OPTION]
                wrapped = click.option(*flags, field.name, **attributes)(wrapped)
        return wrapped

    return decorate
