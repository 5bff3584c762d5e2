"""The guard of capacity: no toleration of a class's taint is added to a pod of a run later.

Kubernetes lets whoever may update a pod add tolerations to it, and what a policy prevented at
creation would come about afterwards. A pod that drops its mark first would get round the guard, so
a mark may not be taken off either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.guards.objects import bindings, literal, policy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.sources.marks import Mark

# `o` is on the pod, `t` is to come: every taint that t admits o admits too, as in
# placement.tolerations.covers. No effect means all of them, no key (with Exists) every key.
_COVERS: Final = (
    "(!has(o.effect) || o.effect == t.?effect.orValue(''))"
    " && (!has(o.key) || o.key == t.?key.orValue(''))"
    " && (o.?operator.orValue('Equal') == 'Exists'"
    " || (o.?operator.orValue('Equal') == t.?operator.orValue('Equal')"
    " && o.?value.orValue('') == t.?value.orValue('')))"
)


def documents(
    entries: Sequence[Mapping[str, Any]],
    marks: Sequence[Mark],
    keys: Collection[str],
    exempt: Collection[str] = (),
) -> list[JsonObject]:
    """The policy, and a binding for each of the webhook's `entries`. They deny.

    marks    of the pods that the entries select; a namespace's own are left to its admin
    keys     of the taints of capacity classes; a toleration without a key covers them all
    exempt   names of users who may all the same, such as a queue's controller
    """
    guarded = literal(sorted(keys))
    before = "oldObject.spec.?tolerations.orValue([])"
    variables = {
        "added": "object.spec.?tolerations.orValue([])"
        f".filter(t, !has(t.key) || t.key in {guarded})"
        f".filter(t, !{before}.exists(o, {_COVERS}))",
        "labels": "object.metadata.?labels.orValue({})",
        "before": "oldObject.metadata.?labels.orValue({})",
    }
    validations: list[JsonObject] = [
        {
            "expression": "size(variables.added) == 0",
            "messageExpression": "'a pod of a run gets no toleration of ' + "
            "variables.added[0].?key.orValue('every taint') + ' after it was created: capacity "
            f"is given by policies, or asked for by the annotation {names.CAPACITY}, at creation'",
            "reason": "Forbidden",
        }
    ]
    kept = [_kept(mark) for mark in marks if not mark.namespace]
    if kept:
        said = ", ".join(str(mark) for mark in marks if not mark.namespace)
        validations.append(
            {
                "expression": " && ".join(kept),
                "message": f"the mark of a run is not taken off its pod: {said}",
                "reason": "Forbidden",
            }
        )
    conditions = {}
    if exempt:
        conditions["not-exempt"] = f"!(request.userInfo.username in {literal(sorted(exempt))})"
    guard = policy(
        names.TOLERATIONS_GUARD,
        group="",
        version="v1",
        resource="pods",
        operations=["UPDATE"],
        variables=variables,
        conditions=conditions,
        validations=validations,
    )
    return [guard, *bindings(names.TOLERATIONS_GUARD, entries, ["Deny"])]


def _kept(mark: Mark) -> str:
    key = literal(mark.key)
    if mark.value is None:
        return f"(!({key} in variables.before) || {key} in variables.labels)"
    value = literal(mark.value)
    marked = f"{{}}[?{key}].orValue('') == {value}"
    was, is_ = (marked.format(f"variables.{each}") for each in ("before", "labels"))
    return f"(!({was}) || {is_})"
