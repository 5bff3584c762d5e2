"""The environment section of a component: what is placement, and what is the pod's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon.placement import ALL, placement
from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.values import camel, want_list, want_one_of, want_text

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

# By their names in a pod's spec.
_POD: Final = {
    "serviceAccountName": "service_account_name",
    "hostNetwork": "host_network",
    "dnsPolicy": "dns_policy",
}
_PRIORITY: Final = "a number alone is refused by the API server; give priorityClassName"
_RESTARTS: Final = ("Always", "OnFailure", "Never", "ExitCode")


class Environment(NamedTuple):
    """placement: fields of a Run's environment. pod: fields of a pod's spec."""

    placement: dict[str, Draft]
    pod: dict[str, Draft]
    restart_policy: Item | None = None


def environment(item: Item | None, notes: Notes) -> Environment:
    """One environment section."""
    if item is None:
        return Environment({}, {})
    section = Section(item, notes, camel=True)
    placed = placement(section, ALL)
    pod: dict[str, Draft] = {
        name: value for name, field in _POD.items() if (value := section.given(field)) is not None
    }
    if (aliases := section.given("host_aliases")) is not None:
        pod["hostAliases"] = list(map(camel, want_list(aliases, notes)))
    if (dns := section.given("dns_config")) is not None:
        pod["dnsConfig"] = camel(dns)
    # Not what pydantic makes of host_pid.
    host_pid = section.given("hostPID") or section.given("host_pid")
    if host_pid is not None:
        pod["hostPID"] = host_pid
    if secrets := section.given("image_pull_secrets"):
        pod["imagePullSecrets"] = [
            element if isinstance(element.value, dict) else {"name": element}
            for element in want_list(secrets, notes)
            if isinstance(element.value, dict) or want_text(element, notes)
        ]
    section.leave({"priority": _PRIORITY})
    policy = section.given("restart_policy")
    section.close()
    known = policy is not None and want_one_of(policy, notes, _RESTARTS)
    return Environment(placed, pod, policy if known else None)
