"""Checks of the policies, in the ConfigMap or in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.errors import InvalidDocuments
from webhook.installation.doctor.findings import Finding, error, note, warning
from webhook.installation.doctor.seen import Read
from webhook.policy.load import load
from webhook.policy.objects import load_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.installation.doctor.seen import Seen
    from webhook.policy.load import Loaded

_CONFIG_MAP = f"ConfigMap {names.NAMESPACE}/{names.POLICIES_CONFIG_MAP}"
_MOST = 5
_UNTIL = "until then the last good set serves, and a webhook that starts anew is never ready"


class _Place(NamedTuple):
    """Where policies are, and what people do about them there."""

    name: str
    read: Callable[[Mapping[str, bytes]], Loaded]
    absent: str
    bring: str
    mend: str
    look: str
    all: str


_IN_CONFIG_MAP = _Place(
    _CONFIG_MAP,
    load,
    f"there is no {_CONFIG_MAP}: pods of the webhook cannot start",
    "fairlead install --policies-from-files --policies DIR",
    "mend it, then fairlead check DIR and fairlead install --policies-from-files --policies DIR",
    "fairlead check DIR",
    "fairlead check tells them all",
)
_IN_CLUSTER = _Place(
    "the cluster",
    load_objects,
    "the cluster has no definitions of policies: the webhook takes them from there",
    "kubectl apply --server-side -f manifests/crds",
    "mend it, or the object that it names",
    "kubectl get placementpolicies,capacityclasses,placementexceptions -o yaml",
    "the log of the webhook has them all",
)


def policies(seen: Seen) -> Iterator[Finding]:
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
        yield from _judged(seen.policies, place)


def _judged(documents: Mapping[str, bytes], place: _Place) -> Iterator[Finding]:
    try:
        loaded = place.read(documents)
    except InvalidDocuments as problem:
        wrong = [each for each in problem.findings if getattr(each, "severity", "") == "error"]
        for each in wrong[:_MOST]:
            yield error(f"{place.name}: {each}", f"{place.mend}; {_UNTIL}")
        if len(wrong) > _MOST:
            yield note(f"{len(wrong) - _MOST} more errors: {place.all}")
        return
    for each in loaded.warnings[:_MOST]:
        yield warning(f"{place.name}: {each}", place.look)
    if not loaded.policies.policies:
        yield note(f"{place.name} has no policy: pods are stamped, and stay as they are")
