"""For how long writes to the API server have failed, by verb and resource."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.kube.answers import tells_nothing
from webhook.kube.failure_text import NO_RIGHT, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api_paths import ApiPath
    from webhook.errors import ClusterError

# Seconds without another try after which nothing is known any more. Above the pauses of all that
# tries again: five minutes for a reconcile or a report.
FORGOTTEN: Final = 900.0


class Write(NamedTuple):
    """What is written: an HTTP verb, and the resource with its subresource: pods, runs/status."""

    verb: str
    resource: str

    def __str__(self) -> str:
        """As in an access log: PATCH runs/status."""
        return f"{self.verb} {self.resource}"


class FailingWrites:
    """Failures of writes for reasons that do not lie in the objects.

    These are a missing right, no answer, and an API server that fails or is busy. What an object is
    refused for is its author's concern. `clock` is a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The first and the last failure since the last answer; None: that was a good one.
        self._failing: dict[Write, tuple[float, float] | None] = {}

    def note(self, verb: str, path: ApiPath, error: ClusterError | None) -> None:
        """Record the result of a call; reads are left out."""
        if verb == "GET":
            return
        write = Write(verb, resource_of(path))
        if error is None or not fails_all(error):
            self._failing[write] = None
            return
        now = self._clock()
        first, last = self._failing.get(write) or (now, now)
        self._failing[write] = (first if now - last < FORGOTTEN else now, now)

    def seconds(self) -> Mapping[Write, float]:
        """Return for how long each write has failed: from the first to the last try; else 0."""
        now = self._clock()
        return {
            write: times[1] - times[0] if times and now - times[1] < FORGOTTEN else 0.0
            for write, times in self._failing.copy().items()
        }


def fails_all(error: ClusterError) -> bool:
    """Return whether the reason of an error lies in no object: others would fail as well."""
    return (
        tells_nothing(error)
        or error.status == HTTPStatus.UNAUTHORIZED
        or NO_RIGHT.search(error.words) is not None
    )


def resource_of(path: ApiPath) -> str:
    """Return the resource of a collection or an object, with its subresource."""
    target = target_of(path)
    return "/".join(filter(None, (target.resource, target.subresource))) if target else "unknown"
