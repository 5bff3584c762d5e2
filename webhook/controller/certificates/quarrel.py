"""Whether somebody undoes what is written, again and again, and how long to leave it then."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from certs.rotation import KeepAuthority, KeepServing, Publish
from webhook.backoff import REWRITE_DELAYS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from certs.rotation import Observed

# So often the same write is repeated at once: people and tools do undo a thing now and then.
FREE: Final = 5
# Seconds without a write after which the count is forgotten.
FORGOTTEN: Final = 600.0


def cause(step: KeepAuthority | KeepServing | Publish, observed: Observed) -> Hashable:
    """What tells a write that is repeated from the next one of a rotation.

    Empty for what somebody asked for: they may ask as often as they like.
    """
    match step:
        case Publish(bundle):
            return ("publish", sha256(bundle).digest())
        case KeepServing(serving, why):
            if observed.renew_leaf:
                return ()
            return ("serving", why, sha256(serving.bundle).digest())
        case KeepAuthority(authority, why):
            if observed.authority is None:
                # Another authority each time.
                return ("authority", why)
            if observed.renew_authority and observed.authority.staged is None:
                return ()
            return ("authority", why, sha256(authority.bundle).digest())


class Quarrel:
    """Counts writes by cause. Times are seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self._written: dict[Hashable, tuple[int, float]] = {}

    def times(self, cause: Hashable) -> int:
        """How often it has been written without a longer quiet."""
        return self._written.get(cause, (0, 0.0))[0]

    def pause(self, cause: Hashable, now: float) -> float:
        """Seconds for which this is better not written yet."""
        count, last = self._written.get(cause, (0, now))
        if count < FREE:
            return 0.0
        return max(0.0, last + REWRITE_DELAYS.after(count - FREE + 1) - now)

    def wrote(self, cause: Hashable, now: float) -> None:
        """It has been written once more."""
        self._written = {
            each: (count, last)
            for each, (count, last) in self._written.items()
            if now - last < FORGOTTEN
        }
        if cause:
            self._written[cause] = (self.times(cause) + 1, now)
