"""Which pods the API server sends here: read from the webhook's own configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook.interception import leads_to
from webhook.policy.selectors import Condition, Selector, selector_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.server.published import Service


@dataclass(frozen=True, slots=True)
class Reach:
    """The entries that lead here and have rules, each by its selectors of namespaces and pods.

    What an entry says in CEL is not weighed: such an entry counts as one that takes the pod.
    """

    entries: tuple[tuple[Selector, Selector], ...]

    def takes(self, pod: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace with these, would be sent here."""
        return any(
            of_namespace.matches(namespace) and of_pod.matches(pod)
            for of_namespace, of_pod in self.entries
        )


def reach(configuration: Mapping[str, Any], service: Service) -> Reach | None:
    """The reach of a MutatingWebhookConfiguration; None if no entry goes to the Service.

    An entry without rules takes nothing: so it is while Fairlead is disabled for a time.
    """
    ours = [
        entry
        for entry in configuration.get("webhooks") or ()
        if leads_to(entry, service.namespace, service.name)
    ]
    if not ours:
        return None
    return Reach(
        tuple(
            (_selector(entry.get("namespaceSelector")), _selector(entry.get("objectSelector")))
            for entry in ours
            if entry.get("rules")
        )
    )


def _selector(selector: Mapping[str, Any] | None) -> Selector:
    """Of a LabelSelector, which the API server has validated."""
    given = selector or {}
    pairs = (given.get("matchLabels") or {}).items()
    return selector_of(
        (
            *(Condition(key, "In", (value,)) for key, value in pairs),
            *(
                Condition(each["key"], each["operator"], tuple(each.get("values") or ()))
                for each in given.get("matchExpressions") or ()
            ),
        )
    )
