"""The answer of `fairlead exceptions`, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webhook.cli.excepted import period
from webhook.cli.harmless import harmless
from webhook.cli.layout import table
from webhook.policy.conditions import describe_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from webhook.cli.exceptions_found import Found, Shown
    from webhook.policy.match_model import Match

_ALL = "all policies"


def lines(found: Found, shown: Sequence[Shown], now: datetime) -> Iterator[str]:
    """For each exception its name and state, and below it what it says."""
    if not shown:
        yield "No exceptions in force." if found.exceptions else "No exceptions."
    for number, each in enumerate(shown):
        if number:
            yield ""
        exception = each.exception
        in_force = exception.in_force(now)
        state = f"in force {period(exception, now)}" if in_force else period(exception, now)
        yield (
            click.style(exception.name, bold=True)
            + ": "
            + click.style(state, fg="green" if in_force else "yellow")
        )
        named = _ALL if exception.policies is None else ", ".join(each.policies)
        rows = [["policies", named], ["match", in_words(each.match)]]
        if found.pods is not None:
            rows.append(["pods", f"{found.pods.get(exception.name, 0)} live"])
        rows.append(["reason", harmless(exception.reason)])
        yield from table(rows, 2)


def document(found: Found, shown: Sequence[Shown], now: datetime) -> dict[str, Any]:
    """The same as JSON; `pods` is null where nobody could be asked."""
    return {
        "exceptions": [
            {
                "name": each.exception.name,
                "inForce": each.exception.in_force(now),
                "until": each.exception.end,
                "policies": list(each.policies),
                "match": each.match.model_dump(by_alias=True, exclude_none=True),
                "reason": each.exception.reason,
                "pods": None if found.pods is None else found.pods.get(each.exception.name, 0),
            }
            for each in shown
        ],
        "notes": [*found.notes, *found.wrong],
    }


def in_words(match: Match) -> str:
    """A match block in a line: `namespaces research, ml-*; podSelector debug=anna`."""
    return "; ".join(f"{field.written} {text}" for field, text in describe_fields(match))
