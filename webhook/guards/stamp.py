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
# `fairlead disable` means that pods of runs are created unplaced for a while.
_ENABLED: Final = (
    f"!({literal(names.DISABLED_UNTIL)} in params.metadata.?annotations.orValue({{}}))"
)
# Warnings of more than 256 characters may be cut, and the API server puts names before it.
_MESSAGE: Final = (
    "no placement: Fairlead's webhook did not answer. Tell your cluster's admins, who run "
    "`fairlead doctor`, then create the pod again"
)


def documents(
    entries: Sequence[Mapping[str, Any]],
    *,
    deny: bool,
    configuration: str = names.WEBHOOK_CONFIGURATION,
) -> list[JsonObject]:
    """The policy, and a binding for each of the webhook's `entries` (`interception.webhooks`).

    Without `deny` such a pod is created, with a warning to its author and an audit annotation.
    While the webhook's `configuration` is disabled, or not there, nothing is asked of any pod.
    """
    stamped = f"{literal(names.PLACEMENT)} in object.metadata.?annotations.orValue({{}})"
    guard = policy(
        names.STAMP_GUARD,
        group="",
        version="v1",
        resource="pods",
        operations=["CREATE"],
        parameter_kind="MutatingWebhookConfiguration",
        conditions={"enabled": _ENABLED},
        validations=[{"expression": stamped, "message": _MESSAGE, "reason": "Forbidden"}],
    )
    actions = DENY if deny else WARN
    return [guard, *bindings(names.STAMP_GUARD, entries, actions, configuration)]
