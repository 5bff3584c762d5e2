"""The guard of Runs: who has the controller make pods must be allowed to make them.

The controller creates pods in the namespace of a Run, with rights of its own. Without this policy
the right to create Runs would be a ladder to the right to create pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.guards.objects import binding, policy

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject

_MAY: Final = (
    "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()"
)
_MESSAGE: Final = (
    "request.userInfo.username + ' may not create pods in namespace ' + request.namespace + "
    "', which this Run would have made there: ask its admins for the right to create pods "
    "(the ClusterRole edit has it)'"
)
# What makes pods is the spec. Others write metadata: the garbage collector takes its finalizer
# away, and may create no pod.
_SPEC_WRITTEN: Final = "request.operation == 'CREATE' || object.spec != oldObject.spec"


def documents() -> list[JsonObject]:
    """The policy and its binding, for every Run whose spec is written. They deny."""
    guard = policy(
        names.RUN_AUTHORS_GUARD,
        group=names.GROUP,
        version="*",
        resource=names.RUNS,
        operations=["CREATE", "UPDATE"],
        conditions={"spec-written": _SPEC_WRITTEN},
        validations=[{"expression": _MAY, "messageExpression": _MESSAGE, "reason": "Forbidden"}],
    )
    return [guard, binding(names.RUN_AUTHORS_GUARD, ["Deny"])]
