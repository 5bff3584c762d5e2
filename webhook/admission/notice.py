"""Event texts for the owner of a pod that is rejected or that no node admits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.admission.review import SIGNATURE
from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN
from webhook.shortening import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.decision import Decision
    from webhook.placement.shapes import JsonObject

REJECTED: Final = "PlacementRejected"
NO_NODE: Final = "NoNode"
_TEMPLATE_HASH: Final = "pod-template-hash"
# An API group, a slash and a version; names and kinds are shorter.
_LONGEST_PART: Final = MAX_SUBDOMAIN + 1 + MAX_LABEL
# Characters of the reason to quote, so that the advice after it is not cut off.
_QUOTED: Final = 700


class Owner(NamedTuple):
    """The controller of a pod, as the pod refers to it."""

    api_version: str
    kind: str
    name: str
    uid: str


class Notice(NamedTuple):
    """An Event about an owner, in its namespace; `reason` is the Event's reason."""

    namespace: str
    owner: Owner
    reason: str
    message: str


def owner_of(pod: JsonObject) -> Owner | None:
    """Return the controller among the pod's owners; None for a pod without one."""
    owners = pod["metadata"].get("ownerReferences")
    for each in owners if isinstance(owners, list) else ():
        if isinstance(each, dict) and each.get("controller") is True:
            found = [each.get(key) for key in ("apiVersion", "kind", "name", "uid")]
            texts = [text for text in found if isinstance(text, str) and _is_presentable(text)]
            return Owner(*texts) if len(texts) == len(found) else None
    return None


def _is_presentable(text: str) -> bool:
    # The text is not validated yet, and an Event would quote all of it.
    return 0 < len(text) <= _LONGEST_PART and text.isprintable()


def of_rejection(pod: JsonObject, namespace: str, decision: Decision) -> Notice | None:
    """Return the notice of a rejection: its policies and the cure; None without an owner."""
    owner = None if decision.allowed else owner_of(pod)
    if owner is None:
        return None
    by = decision.rejected_by
    cure = _template(pod, owner)
    if by:
        cure += f", or ask your admin to change {_policies(by)} or for a PlacementException"
    return Notice(namespace, owner, REJECTED, f"{_quoted(decision.reason)}. {cure}.")


def of_no_node(pod: JsonObject, namespace: str, decision: Decision, why: str) -> Notice | None:
    """Return the notice that no node admits the pod, with the condition that excludes most."""
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
    # A Deployment reverts changes to its ReplicaSet, whose name ends in the value of this label
    # (pkg/controller/deployment/sync.go, getNewReplicaSet).
    digest = (pod["metadata"].get("labels") or {}).get(_TEMPLATE_HASH)
    if kind == "ReplicaSet" and digest and name.endswith(f"-{digest}"):
        kind, name = "Deployment", name.removesuffix(f"-{digest}")
    return f"Change the pod template of {kind} {name}"


def _quoted(text: str) -> str:
    reason = text.removeprefix(SIGNATURE)
    return fit(reason, _QUOTED)
