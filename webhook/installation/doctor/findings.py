"""What a check found."""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One thing that is wrong, or worth knowing: what was seen, and what to do about it.

    An error is a pod that is refused or goes unplaced, now or soon; a warning may become one; a
    note is neither.
    """

    severity: Severity
    what: str
    cure: str = ""


def error(what: str, cure: str) -> Finding:
    """Pods are refused, or go unplaced, now or soon."""
    return Finding("error", what, cure)


def warning(what: str, cure: str) -> Finding:
    """It may become so."""
    return Finding("warning", what, cure)


def note(what: str, cure: str = "") -> Finding:
    """Worth knowing."""
    return Finding("note", what, cure)
