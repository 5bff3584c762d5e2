"""Spans of time as people write them: 90s, 15m, 1h30m."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

import click

_FORM: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.ASCII)


class Duration(click.ParamType[timedelta]):
    """A span within bounds, both included."""

    name = "duration"

    def __init__(self, least: timedelta, most: timedelta) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read it; click tells the person what was wrong."""
        if isinstance(value, timedelta):
            return value
        found = _FORM.fullmatch(str(value))
        if not found or not any(found.groups()):
            self.fail(f"{value!r} is no span of time: want such as 15m, 90s, 1h30m", param, ctx)
        hours, minutes, seconds = (int(each or 0) for each in found.groups())
        span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if not self._least <= span <= self._most:
            self.fail(
                f"{value} is not within {text(self._least)} and {text(self._most)}", param, ctx
            )
        return span


def text(span: timedelta) -> str:
    """The span in the largest whole units: 15 min, 1 h 30 min, 45 s."""
    seconds = round(span.total_seconds())
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"
