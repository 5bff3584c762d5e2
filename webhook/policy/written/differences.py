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

    That not all was checked is told each time. Pods that several policies reject were rejected
    before if some of the policies did it then.
    """
    before = list(before)
    known = {_identity(each) for each in before}
    rejected = [set(each.about.split()) for each in before if _rejects_all(each)]
    return [
        each
        for each in after
        if each.kind is Kind.NOT_CHECKED
        or not (
            _identity(each) in known
            or (_rejects_all(each) and any(some <= set(each.about.split()) for some in rejected))
        )
    ]


def _rejects_all(finding: Finding) -> bool:
    return finding.is_fault and finding.kind is Kind.EVERY_POD_REJECTED


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    if finding.kind in FAULTS:
        # It may be told at another of the policies that have part in it.
        return finding.severity, finding.kind, finding.about, ""
    # An item that goes lets all that follow move up.
    path = _INDEX.sub("[]", finding.path)
    return finding.severity, finding.file, path, finding.about or finding.message
