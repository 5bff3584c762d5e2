"""What of one set of findings is not in another, though its words may have changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.policy.findings import FAULTS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.policy.findings import Finding

_INDEX: Final = re.compile(r"\[\d+\]")


def added(after: Sequence[Finding], before: Iterable[Finding]) -> list[Finding]:
    """The findings that were not there before: not those that moved, or say it in other words.

    That not all was checked is told each time.
    """
    known = {_identity(each) for each in before}
    return [each for each in after if each.kind is Kind.NOT_CHECKED or _identity(each) not in known]


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    if finding.kind in FAULTS:
        # It may be told at another of the policies that have part in it.
        return finding.severity, finding.kind, finding.about, ""
    # An item that goes lets all that follow move up.
    path = _INDEX.sub("[]", finding.path)
    return finding.severity, finding.file, path, finding.about or finding.message
