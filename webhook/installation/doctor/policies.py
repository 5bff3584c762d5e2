"""Checks of the policies, in the ConfigMap or in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.installation.doctor.cluster_state import Read
from webhook.installation.doctor.findings import Finding, error, note, warning
from webhook.policy import source
from webhook.policy.findings import condensed
from webhook.policy.objects import Objects
from webhook.policy.set_judgement import judge_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.policy.model import PolicyDocument
    from webhook.policy.reader import Documents

_CONFIG_MAP = f"ConfigMap {names.NAMESPACE}/{names.POLICIES_CONFIG_MAP}"
_MOST = 5
_SERVES = "until then the set serves with it"
_UNTIL = "until then the last good set serves, and a webhook that starts anew is never ready"


class _Place(NamedTuple):
    """Where policies are, and what people do about them there."""

    name: str
    read: Callable[[Mapping[str, bytes]], Documents[PolicyDocument]]
    absent: str
    bring: str
    mend: str
    look: str
    all: str


_IN_CONFIG_MAP = _Place(
    _CONFIG_MAP,
    source.parse,
    f"there is no {_CONFIG_MAP}: pods of the webhook cannot start",
    "fairlead install --policies-from-files --policies DIR",
    "mend it, then fairlead check DIR and fairlead install --policies-from-files --policies DIR",
    "fairlead check DIR",
    "fairlead check tells them all",
)
_IN_CLUSTER = _Place(
    "the cluster",
    Objects().documents,
    "the cluster has no definitions of policies: the webhook takes them from there",
    "kubectl apply --server-side -f manifests/crds",
    "mend it, or the object that it names",
    "kubectl get placementpolicies,capacityclasses,placementexceptions -o yaml",
    "fairlead check cluster tells them all",
)


def policies(seen: ClusterState) -> Iterator[Finding]:
    """They can be read, and nothing is wrong with them."""
    if not seen.in_cluster or Read.POLICIES in seen.unread:
        return
    # Without the webhook nobody knows where it would take them from.
    if seen.policies is None and names.WEBHOOK not in seen.deployments:
        return
    place = _IN_CLUSTER if seen.policies_from_cluster else _IN_CONFIG_MAP
    if seen.policies is None:
        yield error(place.absent, place.bring)
    else:
        yield from _judged(seen.policies, place, seen.now)


def _judged(documents: Mapping[str, bytes], place: _Place, now: datetime) -> Iterator[Finding]:
    found = judge_set(place.read(documents), now=now)
    wrong = [each for each in found.findings if each.severity == "error"]
    cure = f"{place.mend}; {_SERVES if found.policies else _UNTIL}"
    for each in wrong[:_MOST]:
        yield error(f"{place.name}: {each}", cure)
    if len(wrong) > _MOST:
        yield note(f"{len(wrong) - _MOST} more errors: {place.all}")
    if found.policies is None:
        return
    warnings = condensed([each for each in found.findings if each.severity == "warning"])
    for each in warnings[:_MOST]:
        yield warning(f"{place.name}: {each}", place.look)
    if len(warnings) > _MOST:
        yield note(f"{len(warnings) - _MOST} more warnings: {place.all}")
    if not found.policies.policies:
        yield note(f"{place.name} has no policy: pods are stamped, and stay as they are")
