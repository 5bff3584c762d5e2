"""Why a live pod has no stamp, and which pods the webhook configuration sends."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.applied_by import applied_by
from webhook.errors import PassOver
from webhook.evaluation.sending import NoConfiguration, nothing_sent, takes_new_pods, unsent
from webhook.evaluation.world import labels_of
from webhook.installation.manifests import CONTROLLER, INTERCEPTION, JUDGING, WEBHOOK
from webhook.installation.object_kinds import CONFIGURATION
from webhook.run.controller_reference import controller_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.questions.live.live_pods import LivePod
    from webhook.workloads.object import Object

_CREATE_AGAIN: Final = (
    "delete it, for its controller to create it again: Fairlead cannot place an existing pod"
)
_BY_HAND: Final = "delete it and create it again yourself: Fairlead cannot place an existing pod"


_NOT_INSTALLED: Final = (
    "Fairlead is not installed in this cluster, or was not installed when the pod was created"
)
_ASK_DOCTOR: Final = "have an administrator run `fairlead doctor`, which names the command"


class Why(NamedTuple):
    """Why a pod may have no stamp, and how it gets one; no cure if that is correct."""

    reason: str
    cure: str = _CREATE_AGAIN


_NO_RUN: Final = Why("it is not part of a run", "")
_UNKNOWN: Final = Why(
    "the webhook did not answer when it was created, was disabled or not there yet, or does not "
    "get this namespace's pods; run fairlead doctor"
)
_NOT_ANSWERED: Final = Why(
    "the webhook did not answer when it was created, or was disabled, or the pod was labelled later"
)


async def read_configuration(client: Client) -> Mapping[str, Any] | None:
    """Return the configuration that sends pods to the webhook; NoConfiguration if there is none,
    None if unknown.
    """
    with PassOver(HTTPStatus.FORBIDDEN):
        return await client.find(INTERCEPTION.path) or await _read_absence(client)
    return None


async def _read_absence(client: Client) -> NoConfiguration:
    """Ask what else there is of an installation, for the cure. Raises ClusterError."""
    manifests: list[Mapping[str, Any] | None] = []
    hidden = False
    for key in (JUDGING, CONTROLLER, WEBHOOK):
        with PassOver(HTTPStatus.FORBIDDEN) as passed:
            manifests.append(await client.find(key.path))
        hidden = hidden or passed.status is not None
    if any(manifests):
        return NoConfiguration(applied_by(manifests).command(), installed=True)
    return NoConfiguration(_ASK_DOCTOR, installed=True) if hidden else NoConfiguration()


def why_unstamped(live: LivePod, world: World) -> Why | None:
    if live.stamp is not None:
        return None
    labels = labels_of(live.pod.namespace, world.namespaces)
    return why(live.pod, labels, world.configuration) if live.is_run else _NO_RUN


def why(pod: Object, labels: Mapping[str, str], configuration: Mapping[str, Any] | None) -> Why:
    """Return the most likely reason for a pod of a run. `labels` are its namespace's."""
    cause = _reason(pod, labels, configuration)
    if controller_of(pod.value):
        return cause
    return Why(cause.reason, cause.cure.replace(_CREATE_AGAIN, _BY_HAND))


def _reason(pod: Object, labels: Mapping[str, str], configuration: Mapping[str, Any] | None) -> Why:
    if configuration is None:
        return _UNKNOWN
    if isinstance(configuration, NoConfiguration):
        nothing = nothing_sent(configuration) if configuration.installed else None
        return _once(configuration.cure, nothing.reason if nothing else _NOT_INSTALLED)
    since = configuration["metadata"].get("creationTimestamp", "")
    created = pod.metadata.get("creationTimestamp", "")
    if created < since:
        return Why(
            f"it was created before the webhook configuration (of {since}): before Fairlead was "
            "installed, or while the configuration was gone"
        )
    pod_labels = pod.metadata.get("labels") or {}
    cause = unsent(pod_labels, pod.namespace, labels, configuration)
    return _once(cause.cure, cause.reason) if cause else _NOT_ANSWERED


def sending_notes(configuration: Mapping[str, Any] | None) -> list[str]:
    """Return notes on pods of which the configuration does not show whether they are sent."""
    if configuration is None:
        what = f"you may not get {CONFIGURATION} {names.WEBHOOK_CONFIGURATION}"
        cure = f"kubectl auth can-i get {CONFIGURATION.lower()}s"
        return [f"{what}: whether pods are sent to the webhook is not known; {cure}"]
    notes = []
    for entry in filter(takes_new_pods, configuration.get("webhooks") or ()):
        name = entry.get("name")
        if conditions := entry.get("matchConditions"):
            which = ", ".join(str(condition.get("name")) for condition in conditions)
            notes.append(
                f"{name} of {names.WEBHOOK_CONFIGURATION} has matchConditions ({which}): pods for "
                "which one is false are not sent to the webhook, and which these are is not known"
            )
        url = (entry.get("clientConfig") or {}).get("url")
        if url and entry.get("failurePolicy") == "Ignore":
            notes.append(
                f"{name} of {names.WEBHOOK_CONFIGURATION} leads to {url}, with failurePolicy "
                "Ignore: if nothing answers there, pods are not placed; whether it does is not "
                "known"
            )
    return notes


def _once(first: str, reason: str) -> Why:
    return Why(reason, f"{first}; then {_CREATE_AGAIN}")
