"""Why a live pod may have no stamp: no policy was asked about it when it was created."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.doctor.unplaced_pods import selects
from webhook.installation.kinds import CONFIGURATION, key_of
from webhook.interception import EXCLUDED_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client
    from webhook.workloads.object import Object

_AGAIN: Final = "delete it, for its controller to create it again: a placement cannot be added"
_BY_HAND: Final = (
    "delete it, and create it again, for nothing else does: a placement cannot be added"
)


class Why(NamedTuple):
    """Why a pod may have no stamp, and how it gets one; no cure where nothing is amiss."""

    reason: str
    cure: str = _AGAIN


NO_RUN: Final = Why("it belongs to no run", "")
_UNKNOWN: Final = Why(
    "the webhook did not answer when it was created, was disabled or not there yet, or does not "
    "get this namespace's pods; fairlead doctor tells"
)
_NOT_ANSWERED: Final = Why(
    "the webhook did not answer when it was created, or was disabled, or the pod was labelled later"
)


async def read_configuration(client: Client) -> Mapping[str, Any] | None:
    """The configuration that sends pods to the webhook; {} if there is none, None if unknown."""
    try:
        return await client.get(key_of(CONFIGURATION, names.WEBHOOK_CONFIGURATION).path)
    except ClusterError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return {}
        if error.status == HTTPStatus.FORBIDDEN:
            return None
        raise


def why(pod: Object, labels: Mapping[str, str], configuration: Mapping[str, Any] | None) -> Why:
    """The most likely reason, of a pod of a run. `labels` are its namespace's."""
    found = _reason(pod, labels, configuration)
    if any(each.get("controller") for each in pod.metadata.get("ownerReferences") or ()):
        return found
    return Why(found.reason, found.cure.replace(_AGAIN, _BY_HAND))


def _reason(pod: Object, labels: Mapping[str, str], configuration: Mapping[str, Any] | None) -> Why:
    if configuration is None:
        return _UNKNOWN
    if not configuration:
        reason = "Fairlead is not installed in this cluster, or was not when it was created"
        return _once("fairlead install", reason)
    since = configuration["metadata"].get("creationTimestamp", "")
    created = pod.metadata.get("creationTimestamp", "")
    if created < since:
        return Why(f"it was created before Fairlead was installed (at {since})")
    own = pod.metadata.get("labels") or {}
    found = unsent(own, pod.namespace, labels, configuration)
    return _once(found.cure, found.reason) if found else _NOT_ANSWERED


def unsent(
    own: Mapping[str, str],
    namespace: str,
    labels: Mapping[str, str],
    configuration: Mapping[str, Any] | None,
) -> Why | None:
    """Why a new pod with its `own` labels would not come to the webhook; None if it would.

    `labels` are its namespace's. Without a configuration, by what every installation leaves out.
    """
    if not configuration:
        if namespace not in EXCLUDED_NAMESPACES:
            return None
        said = f"no pod of the namespace {namespace} is sent to the webhook"
        return Why(said, "create it in another namespace")
    entries = configuration.get("webhooks") or ()
    reaching = [each for each in entries if selects(each, "namespaceSelector", labels)]
    if not reaching:
        return Why(
            f"no pod of the namespace {namespace} is sent to the webhook, by its labels",
            f"label it as the namespaceSelector of {names.WEBHOOK_CONFIGURATION} wants it",
        )
    if not any(selects(each, "objectSelector", own) for each in reaching):
        return Why(
            "pods with its labels are not sent to the webhook",
            "fairlead install --source NAME, where fairlead sources says which",
        )
    until = (configuration["metadata"].get("annotations") or {}).get(names.DISABLED_UNTIL)
    if until:
        return Why(f"the webhook is disabled until {until}", "fairlead enable")
    return None


def _once(first: str, reason: str) -> Why:
    """What makes no difference to a new pod before something else is done."""
    return Why(reason, f"{first}; then {_AGAIN}")
