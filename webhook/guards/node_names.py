"""The guard of nodeName: no pod of a run comes with its node already chosen.

Such a pod passes by the scheduler, by taints and by every default and override about nodes. Nodes
themselves may, for their mirror pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.guards.objects import bindings, literal, policy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.placement.shapes import JsonObject

_NOT_A_NODE: Final = (
    f"!(request.userInfo.username.startsWith({literal(names.NODE_USERS)}) && "
    f"{literal(names.NODE_GROUP)} in request.userInfo.?groups.orValue([]))"
)
_MESSAGE: Final = (
    "'spec.nodeName: ' + object.spec.nodeName + ': a pod of a run does not name its node; remove "
    "nodeName, and use nodeSelector, required node affinity or a capacity class'"
)


def documents(
    entries: Sequence[Mapping[str, Any]], exempt: Collection[str] = ()
) -> list[JsonObject]:
    """The policy, and a binding for each of the webhook's `entries`. They deny.

    `exempt` are names of users who may all the same, such as a scheduler that creates pods.
    """
    conditions = {"not-a-node": _NOT_A_NODE}
    if exempt:
        conditions["not-exempt"] = f"!(request.userInfo.username in {literal(sorted(exempt))})"
    guard = policy(
        names.NODE_NAMES_GUARD,
        group="",
        version="v1",
        resource="pods",
        operations=["CREATE"],
        conditions=conditions,
        validations=[
            {
                "expression": "object.spec.?nodeName.orValue('') == ''",
                "messageExpression": _MESSAGE,
                "reason": "Forbidden",
            }
        ],
    )
    return [guard, *bindings(names.NODE_NAMES_GUARD, entries, ["Deny"])]
