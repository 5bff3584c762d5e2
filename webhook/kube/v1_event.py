"""A v1.Event, which `kubectl describe` finds by the object that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

# The API server refuses a longer message.
LONGEST: Final = 1024


def event(
    name: str,
    about: Mapping[str, str],
    said: tuple[str, str, str],
    *,
    component: str,
    when: datetime,
) -> dict[str, Any]:
    """The Event to create, counted once; a message that is too long is cut.

    about: apiVersion, kind, namespace, name and uid of the object, and its resourceVersion if that
           matters
    said:  type (Normal or Warning), reason and message
    """
    type_, reason, message = said
    at = to_second(when)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about["namespace"]},
        "involvedObject": dict(about),
        "type": type_,
        "reason": reason,
        "message": message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…",
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
