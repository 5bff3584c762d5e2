"""Whether output has colours: --color, else NO_COLOR and TERM, else whether it is a terminal."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Callable

# What holds after click's context has ended, where `main` prints an error.
_CHOSEN: Final[ContextVar[bool | None]] = ContextVar("color", default=None)


def color_option(*, hidden: bool = False) -> Callable[[Any], Any]:
    """--color of the program, and `hidden` of its commands, where it may stand as well."""
    return click.option(
        "--color",
        type=click.Choice(("auto", "always", "never")),
        expose_value=False,
        is_eager=True,  # before errors about other options
        hidden=hidden,
        callback=_choose,
        help="When to use colours. Default: auto, on a terminal without NO_COLOR and TERM=dumb.",
    )


def _choose(ctx: click.Context, _: click.Parameter, choice: str | None) -> None:
    """Keep the choice in click's context, where click.echo looks for it."""
    if choice is None and ctx.parent is not None:
        return
    ctx.color = None if choice in (None, "auto") else choice == "always"
    # A value of NO_COLOR that is empty does not count: https://no-color.org
    if ctx.color is None and (os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"):
        ctx.color = False
    _CHOSEN.set(ctx.color)


def chosen_color() -> bool | None:
    """Return whether there are colours; None: on each stream that is a terminal."""
    return _CHOSEN.get()


def has_color(stream: IO[str]) -> bool:
    """Return whether what click.echo writes to this stream keeps its colours."""
    chosen = chosen_color()
    return stream.isatty() if chosen is None else chosen
