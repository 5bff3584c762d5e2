"""What became of one policy test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.decision import Result
    from webhook.placement.trace import Entry


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that was not met.

    field:    what was asked, such as nodeSelector or runsOn
    expected: what was to be, in a line
    seen:     what came out instead, in a line
    because:  lines that tell why, if more is known
    """

    field: str
    expected: str
    seen: str
    because: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One test, judged.

    line:     where it stands in its file, from 1
    result:   what the engine answered
    policies: names of the enforced policies that took part
    audited:  names of the policies under Audit that matched, and whether the test is about them
    trace:    of every field what became of it, and why
    """

    name: str
    file: str
    line: int
    result: Result
    policies: tuple[str, ...]
    audited: tuple[str, ...]
    about_audit: bool
    failures: Sequence[Failure]
    trace: Sequence[Entry]

    @property
    def reached(self) -> tuple[str, ...]:
        """Names of the policies that the test is about."""
        return (*self.policies, *(self.audited if self.about_audit else ()))

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return not self.failures
