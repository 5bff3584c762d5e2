"""The option --history: what happened to pods on a capacity class."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.errors import WrongUsage
from webhook.placement.fallback import MOST_DISRUPTIONS, History, assumed
from webhook.times import parse_span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.policy.policy_set import PolicySet


class ClassHistory(click.ParamType[tuple[str, int, timedelta | None]]):
    """What happened to pods on one class: CLASS=DISRUPTIONS[,pending=DURATION]."""

    name = "history"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int, timedelta | None]:
        """Parse the value; click reports an error."""
        if isinstance(value, tuple):
            return value
        name, equal, rest = str(value).partition("=")
        count, comma, pending = rest.partition(",pending=")
        try:
            if name and equal and count.isdecimal() and int(count) <= MOST_DISRUPTIONS:
                return name, int(count), parse_span(pending) if comma else None
            wanted = "CLASS=COUNT[,pending=TIME]"
        except ValueError as error:
            wanted = f"CLASS=COUNT[,pending=TIME] ({error})"
        what = f"want {wanted}, of 0 to {MOST_DISRUPTIONS} lost nodes, such as spot=3"
        return self.fail(f"{value!r}: {what}", param, ctx)


HISTORY: Final[dict[str, Any]] = {
    "multiple": True,
    "type": ClassHistory(),
    "metavar": "CLASS=COUNT[,pending=TIME]",
    "help": "As if the pods had lost COUNT nodes of a class until now, and had waited TIME for "
    "one, such as spot=3 or spot=0,pending=25m. Policies with a fallback depend on it. Only pods "
    "of Fairlead's own controller have a history. Repeatable.",
}


def history_of(
    given: Sequence[tuple[str, int, timedelta | None]], *sets: PolicySet
) -> History | None:
    """Return the history of the option; None if it is not given.

    Raises WrongUsage for a class that is given twice, that no set has, or that no policy gives up.
    """
    by_class = {name: (count, pending) for name, count, pending in given}
    if len(by_class) < len(given):
        raise WrongUsage("--history: a class is given twice; write all of it once")
    classes = sorted({name for policy_set in sets for name in policy_set.classes})
    for name in by_class:
        if name not in classes:
            what = f"there is no capacity class {name!r} ({', '.join(classes) or 'none at all'})"
            raise WrongUsage(f"--history: {what}")
        if not any(
            name in policy.fallbacks for policy_set in sets for policy in policy_set.policies
        ):
            raise WrongUsage(
                f"--history: no policy has a fallback of class {name!r}, so its history changes "
                "nothing"
            )
    return assumed(datetime.now(UTC), by_class) if by_class else None
