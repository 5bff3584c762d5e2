"""Why the API server refuses an object: each cause, by its field."""

from __future__ import annotations

from typing import Any

from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]


def causes(plane: ControlPlane, path: str, whole: Json) -> list[tuple[str, str]]:
    """Field and message of each cause for which a POST of the object is refused, if it is."""
    status, answer = plane.api.call("POST", path, whole)
    if status == 201:
        return []
    found = answer["details"]["causes"]
    return [(cause["field"], cause["message"].removeprefix("Invalid value: ")) for cause in found]
