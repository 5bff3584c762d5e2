"""How much placement one pod may have, so that deciding on it keeps no other pod waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement.node_affinity import MAX_REQUIREMENTS, MAX_TERMS, MAX_VALUES
from webhook.placement.pod import AFFINITY_LISTS, REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.pod import PodPlacement

# The most of each that a pod may have, as it comes and as it is placed: what was placed may come
# back. docs/security.md has what they cost, and how far they are above what honest pods have.
# Required node affinity is bounded as node_affinity bounds what it computes.
MAX_ENTRIES: Final = 1024

_TERMS: Final = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


def excess(pod: PodPlacement) -> str:
    """Say of what the pod has too much, with the figure and the limit; "" if of nothing.

    All but required node affinity costs one `len` each: that is asked of every pod.
    """
    for path, what, count, most in _counted(pod):
        if count > most:
            return f"{path}: {count} {what}; at most {most} are decided on, use fewer"
    return ""


def _counted(pod: PodPlacement) -> Iterator[tuple[str, str, int, int]]:
    yield "spec.tolerations", "tolerations", len(pod.tolerations), MAX_ENTRIES
    spread = "spec.topologySpreadConstraints"
    yield spread, "constraints", len(pod.topology_spread), MAX_ENTRIES
    for name, entries in pod.lists.items():
        yield (
            f"spec.affinity.{'.'.join(AFFINITY_LISTS[name])}",
            "entries",
            len(entries),
            MAX_ENTRIES,
        )
    if not pod.required:
        return
    yield _TERMS, "terms", len(pod.required), MAX_TERMS
    parts = [
        requirement
        for term in pod.required
        for requirements in (term.get("matchExpressions"), term.get("matchFields"))
        for requirement in requirements or ()
    ]
    yield _TERMS, "requirements", len(parts), MAX_REQUIREMENTS
    values = sum(len(requirement.get("values") or ()) for requirement in parts)
    yield _TERMS, "values", values, MAX_VALUES
