"""Kinds that make pods of something else than a pod template, and kinds that nobody here knows.

Policies apply to their pods as to any others; what becomes of them is not known beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.sources import POD_KINDS
from webhook.workloads.by_kind import KINDS, group_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.workloads.object import Object

# API groups of Kubernetes' own, and others that often stand beside workloads: all of their kinds
# that make pods are in the files of `webhook.sources`.
_NO_OTHERS: Final = frozenset(
    {
        *("", "apps", "batch", "policy", "autoscaling", "extensions", names.GROUP),
        *("monitoring.coreos.com", "cert-manager.io", "external-secrets.io", "kyverno.io"),
        *("kueue.x-k8s.io", "scheduling.volcano.sh", "karpenter.sh", "route.openshift.io"),
        *("networking.istio.io", "security.istio.io"),
    }
)
_OF_KUBERNETES: Final = ".k8s.io"


def unread(objects: Iterable[Object]) -> list[str]:
    """A line for each kind among objects of which no pod template is found, and one for all others.

    None for kinds that are known to make no pods.
    """
    made: dict[str, list[Object]] = {}
    unknown: dict[str, None] = {}
    for each in objects:
        group = group_of(each)
        kinds = POD_KINDS.get((group, each.kind), ())
        if kinds and not any(kind.code for kind in kinds):
            made.setdefault(each.kind, []).append(each)
        elif group not in _NO_OTHERS and not group.endswith(_OF_KUBERNETES):
            unknown[each.kind] = None
    lines = [_line(kind, found) for kind, found in made.items()]
    if unknown:
        which = ", ".join(unknown)
        lines.append(f"whether {which} makes pods is not known: there is no pod template in it")
    return lines


def _line(kind: str, found: Sequence[Object]) -> str:
    first = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    which = f"{first.title}{more}"
    if (group_of(first), kind) in KINDS:
        return f"{kind} makes pods; there is no pod template where it should be: {which}"
    return f"{kind} makes pods; its templates are not read: {which}"
