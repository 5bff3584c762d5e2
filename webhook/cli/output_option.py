"""The option -o of commands that print for people, or for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def output_option(
    description: str = "What to print.", formats: tuple[str, ...] = ("text", "json")
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """-o, --output: the first of the formats unless told otherwise."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=description,
    )
