"""Click's type for an object of the API server, as [NAMESPACE/]NAME."""

from __future__ import annotations

import re
from typing import Final

import click

# A DNS subdomain, as the API server wants it: nothing else may become part of a path or a query.
_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_PART}(\.{_PART})*")


class ObjectName(click.ParamType[tuple[str, str]]):
    """Converts to (namespace, name); the namespace is "" if it is not said."""

    name = "[NAMESPACE/]NAME"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Split it, or fail with what is allowed."""
        if isinstance(value, tuple):
            return value
        namespace, slash, name = str(value).rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not _NAME.fullmatch(namespace)):
            self.fail(
                f"{value!r}: want NAME or NAMESPACE/NAME, of lower case letters, digits, '-', '.'",
                param,
                ctx,
            )
        return namespace, name
