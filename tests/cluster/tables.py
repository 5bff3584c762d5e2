"""Reads the tables that kubectl prints."""

from __future__ import annotations

import re


def columns(table: str) -> list[dict[str, str]]:
    """The rows of a table, by the headers above them; a header may be of several words."""
    head, *rows = table.splitlines()
    places = [(match.group(), match.start()) for match in re.finditer(r"\S+( \S+)*", head)]
    ends = [start for _, start in places[1:]] + [None]
    return [
        {name: row[start:end].strip() for (name, start), end in zip(places, ends, strict=True)}
        for row in rows
    ]
