"""A moment as a document writes it: RFC 3339, to the second, with its zone."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from webhook.strict import own_error, shown

# The days that each month has; of the years from 2000 to 2099 every fourth is a leap year.
_DAY: Final = (
    r"(20[0-9]{2}-((0[13578]|1[02])-31|(0[13-9]|1[0-2])-(29|30)"
    r"|(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8]))|20([02468][048]|[13579][26])-02-29)"
)
# One form of the many of RFC 3339, so that whoever sorts or compares texts is not misled.
MOMENT_PATTERN: Final = (
    rf"^{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
IS_NO_MOMENT: Final = (
    "is no moment: give date, time and zone, such as 2026-12-01T18:00:00Z or "
    "2026-12-01T18:00:00+01:00"
)
_form = re.compile(MOMENT_PATTERN, re.ASCII)


def _checked(text: str) -> str:
    if not _form.fullmatch(text):
        raise own_error(f"{shown(text)} {IS_NO_MOMENT}")
    return text


Moment = Annotated[
    str,
    AfterValidator(_checked),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": MOMENT_PATTERN}),
]
