"""A moment as a document writes it: RFC 3339, to the second, with its zone."""

import re
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from webhook.placement.schema.base import own_error, shown

# One form of the many of RFC 3339, so that whoever sorts or compares texts is not misled.
_PATTERN: Final = (
    r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
_form = re.compile(_PATTERN, re.ASCII)


def _checked(text: str) -> str:
    try:
        if _form.fullmatch(text):
            datetime.fromisoformat(text)
            return text
    except ValueError:
        # A day that its month does not have.
        pass
    raise own_error(
        f"{shown(text)} is no moment: give date, time and zone, such as 2026-12-01T18:00:00Z or "
        "2026-12-01T18:00:00+01:00"
    )


Moment = Annotated[
    str,
    AfterValidator(_checked),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": f"^{_PATTERN}$"}),
]
