"""Which new pods the API server sends to the webhook, by the webhook's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.applied_by import INSTALL, applied_by
from webhook.interception import exclusion_reason
from webhook.placement.label_values import selects

if TYPE_CHECKING:
    from collections.abc import Mapping

# The values of a rule for the creation of pods in these fields; or "*".
_CREATION: Final = (("operations", "CREATE"), ("apiGroups", ""), ("apiVersions", "v1"))
# Options of `fairlead install`, of helm, and the component that send the pods of a system.
_SOURCE: Final = ("--source NAME", "--set 'sources={OTHERS,NAME}'", "source-NAME")
_KIND: Final = "MutatingWebhookConfiguration"
_NO_RULE: Final = f"the {_KIND} {names.WEBHOOK_CONFIGURATION} has no rule for their creation"


class Unsent(NamedTuple):
    """Why a pod is not sent to the webhook, and what to do to have it sent."""

    reason: str
    cure: str


class NoConfiguration(dict[str, Any]):
    """That there is no webhook configuration.

    installed: whether other objects of an installation are there, or may not be read.
    cure: the command that brings it.
    """

    def __init__(self, cure: str = INSTALL, *, installed: bool = False) -> None:
        super().__init__()
        self.cure = cure
        self.installed = installed


def unsent(
    pod_labels: Mapping[str, str],
    namespace: str,
    labels: Mapping[str, str],
    configuration: Mapping[str, Any] | None,
) -> Unsent | None:
    """Return why a new pod with its `pod_labels` labels would not be sent; None if it would.

    `labels` are its namespace's. If the configuration is unknown (None), only what every
    installation excludes counts.
    """
    if configuration is None:
        reason = exclusion_reason(namespace)
        return Unsent(reason, "create it in another namespace") if reason else None
    command = applied_by([configuration]).command
    if entries := configuration.get("webhooks") or ():
        reaching = [entry for entry in entries if selects(entry, "namespaceSelector", labels)]
        if not reaching:
            return Unsent(
                f"no pod of namespace {namespace} is sent to the webhook: its labels exclude it",
                "label the namespace so that the namespaceSelector of "
                f"{names.WEBHOOK_CONFIGURATION} matches",
            )
        sending = [entry for entry in reaching if selects(entry, "objectSelector", pod_labels)]
        if not sending:
            return Unsent(
                "pods with its labels are not sent to the webhook",
                f"{command(*_SOURCE)}; fairlead policy sources lists the names",
            )
        if any(map(takes_new_pods, sending)):
            return None
    return nothing_sent(configuration) or Unsent(
        f"no pod with its labels is sent to the webhook: {_NO_RULE}", command()
    )


def nothing_sent(configuration: Mapping[str, Any] | None) -> Unsent | None:
    """Return why no pod is sent to the webhook; None if some are, or if that is unknown."""
    if configuration is None:
        return None
    if isinstance(configuration, NoConfiguration):
        reason = f"no pod is sent to the webhook: there is no {_KIND}"
        cure = configuration.cure
        return Unsent(f"{reason} {names.WEBHOOK_CONFIGURATION}", cure)
    if any(map(takes_new_pods, configuration.get("webhooks") or ())):
        return None
    until = (configuration["metadata"].get("annotations") or {}).get(names.DISABLED_UNTIL)
    if until:
        return Unsent(f"the webhook is disabled until {until}", "fairlead webhook enable")
    again = applied_by([configuration]).command()
    return Unsent(f"no pod is sent to the webhook: {_NO_RULE}", again)


def takes_new_pods(entry: Mapping[str, Any]) -> bool:
    """Return True if a rule of the entry is for the creation of pods."""
    return any(
        all({word, "*"} & set(rule.get(field) or ()) for field, word in _CREATION)
        and {"pods", "*", "*/*"} & set(rule.get("resources") or ())
        and rule.get("scope", "*") in ("Namespaced", "*")
        for rule in entry.get("rules") or ()
    )
