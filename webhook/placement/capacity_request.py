"""The annotation fairlead.dev/capacity: the modes that a pod's author requests.

Its form is `class=Mode`, or `class=Prefer:weight`, joined by commas: `spot=Allow,gpu=Prefer:80`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.errors import FairleadError
from webhook.placement.capacity import DEFAULT_WEIGHT, MODES, Mode
from webhook.placement.trace import quoted
from webhook.strict import guess

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_WEIGHT = re.compile(r"([1-9][0-9]?|100)\Z", re.ASCII)
# How many errors a message lists; an annotation can have 256 KiB.
_SHOWN = 8


class InvalidRequest(FairleadError):
    """The annotation is malformed, or names a class that does not exist."""


class Request(NamedTuple):
    """One entry: the class, the mode, and for Prefer the weight from 1 to 100."""

    class_name: str
    mode: Mode
    weight: int = DEFAULT_WEIGHT


def parse(text: str, classes: Collection[str]) -> tuple[Request, ...]:
    """Return the entries of the annotation, in its order. Raises InvalidRequest with everything
    wrong.
    """
    requests: dict[str, Request] = {}
    wrong: list[str] = []
    more = 0
    class_list = ", ".join(sorted(classes)) or "none are defined"
    for entry in filter(None, (part.strip() for part in text.split(","))):
        class_name, _, rest = (part.strip() for part in entry.partition("="))
        mode, colon, weight = (part.strip() for part in rest.partition(":"))
        if len(wrong) == _SHOWN:
            # Not validated: a message for each would take memory.
            more += 1
        elif class_name not in classes:
            wrong.append(f"there is no capacity class {quoted(class_name)} (classes: {class_list})")
        elif mode not in MODES:
            hint = guess(mode, MODES)
            wrong.append(f"{quoted(entry)}: {quoted(mode)} is not one of {', '.join(MODES)}{hint}")
        elif colon and not (Mode(mode).prefers and _WEIGHT.match(weight)):
            wrong.append(f"{quoted(entry)}: a weight goes with Prefer and is from 1 to 100")
        elif class_name in requests:
            wrong.append(f"class {quoted(class_name)} is named twice")
        else:
            requests[class_name] = Request(
                class_name, Mode(mode), int(weight) if colon else DEFAULT_WEIGHT
            )
    if wrong:
        others = f"; {more} entries after these were not read" if more else ""
        raise InvalidRequest(f"annotation {names.CAPACITY}: {'; '.join(wrong)}{others}")
    return tuple(requests.values())


def formatted(requests: Iterable[Request]) -> str:
    """Return the annotation's text for the entries; `parse` reads it back."""
    return ",".join(
        f"{r.class_name}={r.mode}" + (f":{r.weight}" if r.mode.prefers else "") for r in requests
    )
