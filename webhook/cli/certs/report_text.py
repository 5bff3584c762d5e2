"""The state of certificates, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.layout import table, wrapped
from webhook.times import elapsed, spoken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

# Enough of 32 digits to tell one from another.
_DIGITS: Final = 12
_INDENT: Final = 2


def lines(told: dict[str, Any], now: datetime) -> Iterator[str]:
    """The lines of a report.document."""
    yield from _authority(told["authority"], now)
    yield ""
    yield from _leaf(told["leaf"], now)
    yield ""
    yield from _webhooks(told)
    yield ""
    yield from (f"{'next: ' if first else '      '}{part}" for first, part in _parts(told["next"]))
    for problem in told["problems"]:
        sign = click.style("wrong: ", fg="red", bold=True)
        parts = wrapped(problem, 7)
        yield sign + parts[0]
        yield from (" " * 7 + part for part in parts[1:])


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    for index, part in enumerate(wrapped(text, 6)):
        yield index == 0, part


def _authority(told: dict[str, Any], now: datetime) -> Iterator[str]:
    yield f"authority: {told['phase'] or 'cannot be told'} (Secret {told['secret']})"
    if not told["visible"]:
        yield from (
            " " * _INDENT + part
            for part in wrapped(
                "You may not read this Secret, which holds the authority's key. Whom clients trust"
                " is shown below.",
                _INDENT,
            )
        )
        return
    rows = [(what, *_row(told[what], now)) for what in ("signing", "staged") if told.get(what)]
    rows += [("retiring", *_row(each, now)[:2], "") for each in told.get("retiring", ())]
    yield from table(rows, _INDENT)


def _leaf(told: dict[str, Any], now: datetime) -> Iterator[str]:
    if not told["visible"]:
        yield f"leaf: cannot be told, for you may not read the Secret {told['secret']}"
        return
    yield f"leaf (Secret {told['secret']})"
    if "serial" not in told:
        return
    yield from table([("serving", *_row(told, now))], _INDENT)
    by = told["signedBy"][:_DIGITS] if told["signedBy"] else "nobody in its bundle"
    issued = f"by {by}, for {', '.join(told['names'])}"
    yield from (" " * _INDENT + part for part in wrapped(issued, _INDENT))


def _webhooks(told: dict[str, Any]) -> Iterator[str]:
    yield "caBundles"
    rows = []
    for each in told["webhooks"]:
        trusted = ", ".join(one["serial"][:_DIGITS] for one in each["bundle"])
        rows.append((each["name"], _verdict(each), f"trusts {trusted or 'nobody'}"))
    if not rows:
        yield "  none that can be seen"
    yield from table(rows, _INDENT)


def _verdict(each: dict[str, Any]) -> str:
    if each["vouches"] is None:
        return "cannot be told"
    if not each["vouches"]:
        return click.style("refuses the leaf", fg="red")
    return "fine" if each["asKept"] else click.style("outdated", fg="yellow")


def _row(certificate: dict[str, Any], now: datetime) -> tuple[str, str, str]:
    left = -elapsed(certificate["expires"], now)
    life = f"expires in {spoken(left)}" if left > 0 else click.style("expired", fg="red")
    until = -elapsed(certificate["renewal"], now)
    renewal = f"renewed in {spoken(until)}" if until > 0 else "renewal is due"
    return certificate["serial"][:_DIGITS], life, f"{renewal}"
