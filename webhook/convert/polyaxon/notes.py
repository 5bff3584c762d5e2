"""What is wrong with a Polyaxonfile, and what of it has no meaning here, as it is found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.convert.polyaxon.item import Origin
from webhook.policy.findings import Finding, Severity, path_text

if TYPE_CHECKING:
    from webhook.convert.polyaxon.item import Item
    from webhook.policy.findings import Path


@dataclass(slots=True)
class Notes:
    """Collects findings while a file is converted; none is said twice."""

    found: set[Finding] = field(default_factory=set)

    def error(
        self, at: Item | Origin, message: str, *, below: Path = (), key: bool = False
    ) -> None:
        """Something that has to be mended. `key` puts it at the field's name, not at its value.

        `below` leads from the item to what is not there, or is only said of it.
        """
        self._add(at, message, "error", below, key=key)

    def warning(self, at: Item | Origin, message: str, *, key: bool = True) -> None:
        """Something that is left out, or comes to mean something else: why, and what to do."""
        self._add(at, message, "warning", (), key=key)

    def _add(
        self, at: Item | Origin, message: str, severity: Severity, below: Path, *, key: bool
    ) -> None:
        origin = at if isinstance(at, Origin) else at.origin
        place = origin.key if key else origin.place
        path = path_text((*origin.path, *below))
        self.found.add(Finding(origin.file, *place, path, message, severity))

    @property
    def in_order(self) -> tuple[Finding, ...]:
        """All findings, by file and place."""
        return tuple(sorted(self.found))

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors, by file and place."""
        return tuple(finding for finding in self.in_order if finding.severity == "error")
