"""Event texts for the owner of a pod that is rejected or that no node admits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.decision.advice import SIGNATURE
from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN, is_subdomain
from webhook.placement.owner_selector import written_owner
from webhook.policy.refused_pods import refusals
from webhook.shortening import fit
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.decision.decision import Decision
    from webhook.placement.shapes import JsonObject
    from webhook.sources.table import SourceTable

REJECTED: Final = "PlacementRejected"
NO_NODE: Final = "NoNode"
# An API group, a slash and a version; names and kinds are shorter.
_LONGEST_PART: Final = MAX_SUBDOMAIN + 1 + MAX_LABEL
# Characters of the reason to quote, so that the advice after it is not cut off.
_QUOTED: Final = 700


class Owner(NamedTuple):
    """The controller of a pod, as the pod refers to it; the uid is empty if it is not known."""

    api_version: str
    kind: str
    name: str
    uid: str


class Notice(NamedTuple):
    """An Event about an owner, in its namespace.

    reason:   the Event's reason
    what:     what happened to the pod, without a full stop
    template: kind and name of the object whose pod template the pod has
    or_else:  what to do instead of a change of that template, if anything
    named:    the object that a label of the pod names, without its uid: the one that the user
              wrote, if the owner is a pod or nothing else
    """

    namespace: str
    owner: Owner
    reason: str
    what: str
    template: tuple[str, str]
    or_else: str
    named: Owner | None = None

    def message(self, root: Owner) -> str:
        """Return the Event's message on `root`: the owner, or the object that created it."""
        kind, name = self.template if root == self.owner else (root.kind, root.name)
        or_else = f", {self.or_else}" if self.or_else else ""
        return f"{self.what}. Change the pod template of {kind} {name}{or_else}."


def owner_of(controlled: Mapping[str, Any]) -> Owner | None:
    """Return the controller among the owners of a pod or another object; None without one."""
    owners = controlled["metadata"].get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            values = [owner.get(key) for key in ("apiVersion", "kind", "name", "uid")]
            texts = [text for text in values if isinstance(text, str) and _is_presentable(text)]
            return Owner(*texts) if len(texts) == len(values) else None
    return None


def _is_presentable(text: str) -> bool:
    # The text is not validated yet, and an Event would quote all of it.
    return 0 < len(text) <= _LONGEST_PART and text.isprintable()


def of_rejection(
    pod: JsonObject, namespace: str, decision: Decision, sources: SourceTable = SHIPPED
) -> Notice | None:
    """Return the notice of a rejection: its policies and the cure; None without an owner."""
    if decision.allowed:
        return None
    or_else = ""
    if by := decision.rejected_by:
        or_else = f"or ask your admin to change {_policies(by)} or for a PlacementException"
    return _notice(pod, namespace, sources, REJECTED, decision.reason, or_else)


def refusal_of(decision: Decision, classes: Mapping[str, Collection[str]]) -> str:
    """Return why the API server refuses the pod as policies change it; empty if it does not.

    `classes`: the names of the cluster's objects, by kind: refused_pods.PATHS.
    """
    placement = decision.placement
    if not (classes and placement and decision.allowed):
        return ""
    setters = {entry.field: entry.policy for entry in decision.trace if entry.outcome == "set"}
    texts = [
        refusal
        for refusal in refusals(placement, classes, setters)
        if refusal.split(":")[0] in setters
    ]
    return f"the API server refuses the pod: {'; '.join(texts)}" if texts else ""


def of_refusal(
    pod: JsonObject,
    namespace: str,
    decision: Decision,
    why: str,
    sources: SourceTable = SHIPPED,
) -> Notice | None:
    """Return the notice that the API server refuses the pod with what policies set."""
    by = [name for name in decision.policies if f"policy {name} sets" in why]
    or_else = f"or ask your admin to change {_policies(by)}"
    return _notice(pod, namespace, sources, REJECTED, why, or_else)


def of_no_node(
    pod: JsonObject,
    namespace: str,
    decision: Decision,
    why: str,
    sources: SourceTable = SHIPPED,
) -> Notice | None:
    """Return the notice that no node admits the pod, with the condition that excludes most."""
    or_else = "or ask your admin for such nodes"
    by = [name for name in decision.policies if f"(policy {name})" in why]
    if by:
        or_else += f" or to change {_policies(by)}"
    return _notice(pod, namespace, sources, NO_NODE, why, or_else)


def _notice(
    pod: JsonObject, namespace: str, sources: SourceTable, reason: str, what: str, or_else: str
) -> Notice | None:
    named = _named_by_label(pod, sources)
    owner = owner_of(pod) or named
    if owner is None:
        return None
    quoted = fit(what.removeprefix(SIGNATURE), _QUOTED)
    return Notice(namespace, owner, reason, quoted, template_of(pod, owner), or_else, named)


def _named_by_label(pod: JsonObject, sources: SourceTable) -> Owner | None:
    labels = pod["metadata"].get("labels") or {}
    for row in sources.rows:
        if row.object and is_subdomain(name := str(labels.get(row.object.label, ""))):
            return Owner(row.object.api_version, row.object.kind, name, "")
    return None


def _policies(by: Sequence[str]) -> str:
    return f"{'policies' if len(by) > 1 else 'policy'} {', '.join(by)}"


def template_of(pod: JsonObject, owner: Owner) -> tuple[str, str]:
    """Return kind and name of the object whose pod template the owner's pod has."""
    return written_owner(owner.kind, owner.name, pod["metadata"].get("labels") or {})
