"""Why the API server refuses an object: each cause, by its field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.crd.rules import Rule
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]


def causes(plane: ControlPlane, path: str, whole: Json) -> list[tuple[str, str]]:
    """Field and message of each cause for which a POST of the object is refused, if it is."""
    status, answer = plane.api.call("POST", path, whole)
    if status == 201:
        return []
    found = answer["details"]["causes"]
    return [(cause["field"], cause["message"].removeprefix("Invalid value: ")) for cause in found]


def message_with(words: str, rules: Iterable[Rule]) -> str:
    """Return the one message among those of the rules that has these words.

    Its exact text is golden in manifests/crds.
    """
    (message,) = {rule.message for rule in rules if words in rule.message}
    return message
