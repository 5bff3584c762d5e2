"""Why a live pod may have no stamp: no policy was asked about it when it was created."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.doctor.passed_by import selects
from webhook.installation.kinds import CONFIGURATION, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.kube.client import Client
    from webhook.workloads.object import Object

CURE: Final = "delete it, for its controller to create it again: a placement cannot be added"
_UNKNOWN: Final = (
    "the webhook did not answer when it was created, was disabled or not there yet, or does not "
    "get this namespace's pods; fairlead doctor tells"
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


def why(pod: Object, labels: Mapping[str, str], configuration: Mapping[str, Any] | None) -> str:
    """The most likely reason. `labels` are its namespace's."""
    if configuration is None:
        return _UNKNOWN
    if not configuration:
        return "Fairlead is not installed in this cluster, or was not when it was created"
    since = configuration["metadata"].get("creationTimestamp", "")
    created = pod.metadata.get("creationTimestamp", "")
    if created < since:
        return f"it was created before Fairlead was installed (at {since})"
    entries = configuration.get("webhooks") or ()
    reaching = [each for each in entries if selects(each, "namespaceSelector", labels)]
    if not reaching:
        return f"no pod of the namespace {pod.namespace} is sent to the webhook, by its labels"
    own = pod.metadata.get("labels") or {}
    if not any(selects(each, "objectSelector", own) for each in reaching):
        return "pods with its labels are not sent to the webhook"
    until = (configuration["metadata"].get("annotations") or {}).get(names.DISABLED_UNTIL)
    if until:
        return f"the webhook is disabled until {until}"
    return (
        "the webhook did not answer when it was created, or was disabled, or the pod was labelled "
        "later"
    )
