"""A v1.Event, as `kubectl describe` finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.shortening import fit
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

# The API server rejects a longer message.
MESSAGE_MAX_CHARACTERS: Final = 1024


def event(
    name: str,
    about: Mapping[str, str],
    content: tuple[str, str, str],
    *,
    component: str,
    when: datetime,
) -> dict[str, Any]:
    """Return the Event to create, with count 1; a message that is too long is cut.

    about: apiVersion, kind, namespace, name and uid of the object, and its resourceVersion if
           needed
    content: type (Normal or Warning), reason and message
    """
    type_, reason, message = content
    at = to_second(when)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about["namespace"]},
        "involvedObject": dict(about),
        "type": type_,
        "reason": reason,
        "message": fit(message, MESSAGE_MAX_CHARACTERS),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
