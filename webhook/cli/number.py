"""Numbers with a fraction, such as seconds, as values of options."""

from __future__ import annotations

from typing import Any

import click


class Number(click.FloatRange):
    """A number within bounds, both included, so that neither nan nor inf is one."""

    def __init__(self, least: float, most: float) -> None:
        super().__init__(min=least, max=most)
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it; click tells the person what was wrong."""
        number: float = click.FLOAT.convert(value, param, ctx)
        # click.FloatRange compares the other way round, and nothing is less or more than nan.
        if not self._least <= number <= self._most:
            self.fail(f"{value} is not within {self._least:g} and {self._most:g}", param, ctx)
        return number
