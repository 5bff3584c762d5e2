"""Why the API server refuses an object: each cause, by its field."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from webhook.crd.rules import Rule
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]
# Up to Kubernetes 1.33 the type of an object or a list is before a rule's message.
_BEFORE = re.compile(r'Invalid value: (?:"(?:object|array)": )?')


def causes(plane: ControlPlane, path: str, whole: Json) -> list[tuple[str, str]]:
    """Field and message of each cause for which a POST of the object is refused, if it is."""
    status, answer = plane.api.call("POST", path, whole)
    if status == 201:
        return []
    found = answer["details"]["causes"]
    return [(cause["field"], rule_message(cause["message"])) for cause in found]


def rule_message(cause: str) -> str:
    """Return the message of a rule without what the API server writes before it."""
    return _BEFORE.sub("", cause, count=1)


def message_with(words: str, rules: Iterable[Rule]) -> str:
    """Return the one message among those of the rules that has these words.

    Its exact text is golden in manifests/crds.
    """
    (message,) = {rule.message for rule in rules if words in rule.message}
    return message
