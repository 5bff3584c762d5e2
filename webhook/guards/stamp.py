"""The guard of a webhook that may be ignored: a pod of a run without Fairlead's stamp.

Under `failurePolicy: Ignore` a pod is created unplaced while no replica answers. This policy sees
the pod as it is about to be stored, and warns of it, or denies it. It guards against outages, not
against authors: whoever writes the annotation himself passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.guards.objects import bindings, literal, policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.shapes import JsonObject

WARN: Final = ("Warn", "Audit")
DENY: Final = ("Deny",)
# Warnings of more than 256 characters may be cut, and the API server puts names before it.
_MESSAGE: Final = (
    "no placement: Fairlead's webhook did not answer. Tell your cluster's admins, who run "
    "`fairlead doctor`, then create the pod again"
)


def documents(entries: Sequence[Mapping[str, Any]], *, deny: bool) -> list[JsonObject]:
    """The policy, and a binding for each of the webhook's `entries` (`interception.webhooks`).

    Without `deny` such a pod is created, with a warning to its author and an audit annotation.
    """
    stamped = f"{literal(names.PLACEMENT)} in object.metadata.?annotations.orValue({{}})"
    guard = policy(
        names.STAMP_GUARD,
        group="",
        version="v1",
        resource="pods",
        operations=["CREATE"],
        validations=[{"expression": stamped, "message": _MESSAGE, "reason": "Forbidden"}],
    )
    return [guard, *bindings(names.STAMP_GUARD, entries, DENY if deny else WARN)]
