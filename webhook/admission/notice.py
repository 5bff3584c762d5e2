"""What the workload that owns a pod is told, when the pod is refused or finds no node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.admission.review import SIGNATURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.decision import Decision
    from webhook.placement.shapes import JsonObject

REJECTED: Final = "PlacementRejected"
NO_NODE: Final = "NoNode"
_TEMPLATE_HASH: Final = "pod-template-hash"
# An API group, a slash and a version; names and kinds are shorter.
_LONGEST_PART: Final = 253 + 1 + 63
# What of the reason is quoted, so that the cure is not cut off.
_QUOTED: Final = 700


class Owner(NamedTuple):
    """The controller of a pod, as the pod refers to it."""

    api_version: str
    kind: str
    name: str
    uid: str


class Notice(NamedTuple):
    """What is to be said of an owner, in its namespace; `reason` is one word for it."""

    namespace: str
    owner: Owner
    reason: str
    message: str


def owner_of(pod: JsonObject) -> Owner | None:
    """The controller among the pod's owners; None for a pod that somebody has made by hand."""
    owners = pod["metadata"].get("ownerReferences")
    for each in owners if isinstance(owners, list) else ():
        if isinstance(each, dict) and each.get("controller") is True:
            found = [each.get(key) for key in ("apiVersion", "kind", "name", "uid")]
            texts = [text for text in found if isinstance(text, str) and _may_be_said(text)]
            return Owner(*texts) if len(texts) == len(found) else None
    return None


def _may_be_said(text: str) -> bool:
    # Nobody has checked it so far, and all of it would go into an Event.
    return 0 < len(text) <= _LONGEST_PART and text.isprintable()


def of_rejection(pod: JsonObject, namespace: str, decision: Decision) -> Notice | None:
    """That the pod is refused, by which policy, and what helps; None if there is nobody to tell."""
    owner = None if decision.allowed else owner_of(pod)
    if owner is None:
        return None
    by = decision.rejected_by
    cure = _template(pod, owner)
    if by:
        cure += f", or ask your admin to change {_policies(by)} or for a PlacementException"
    return Notice(namespace, owner, REJECTED, f"{_quoted(decision.reason)}. {cure}.")


def of_no_node(pod: JsonObject, namespace: str, decision: Decision, why: str) -> Notice | None:
    """That no node admits the pod as it is now, and which condition shuts most of them out."""
    owner = owner_of(pod)
    if owner is None:
        return None
    cure = f"{_template(pod, owner)}, or ask your admin for such nodes"
    by = [name for name in decision.policies if f"(policy {name})" in why]
    if by:
        cure += f" or to change {_policies(by)}"
    return Notice(namespace, owner, NO_NODE, f"{_quoted(why)}. {cure}.")


def _policies(by: Sequence[str]) -> str:
    return f"{'policies' if len(by) > 1 else 'policy'} {', '.join(by)}"


def _template(pod: JsonObject, owner: Owner) -> str:
    kind, name = owner.kind, owner.name
    # A Deployment undoes what is changed in its ReplicaSet, which it names by this label
    # (pkg/controller/deployment/sync.go, getNewReplicaSet).
    digest = (pod["metadata"].get("labels") or {}).get(_TEMPLATE_HASH)
    if kind == "ReplicaSet" and digest and name.endswith(f"-{digest}"):
        kind, name = "Deployment", name.removesuffix(f"-{digest}")
    return f"Change the pod template of {kind} {name}"


def _quoted(text: str) -> str:
    said = text.removeprefix(SIGNATURE)
    return said if len(said) <= _QUOTED else f"{said[: _QUOTED - 1]}…"
