"""Checks of the guards: the admission policies that enforce what the webhook cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.installation.doctor.cluster_state import Finding, ReadKind, error, note, warning
from webhook.installation.object_kinds import GUARD, GUARD_BINDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.installation.doctor.cluster_state import ClusterState


def guards(state: ClusterState) -> Iterator[Finding]:
    """The admission policies that enforce what the webhook cannot exist, and have bindings."""
    if ReadKind.GUARDS in state.unread:
        return
    for title, shipped in state.shipped_guards.items():
        live = state.guard_objects.get(title)
        if live is None:
            # A webhook outside the cluster is being tried out.
            make = note if state.elsewhere else error
            yield make(
                f"there is no {title}: users who may write Runs can create pods that they "
                "may not create themselves",
                state.reinstall(),
            )
        elif not _within(shipped["spec"], live["spec"]):
            yield error(
                f"{title} differs from the version that ships, and may not enforce its rules",
                state.reinstall(),
            )
    bound = {
        each["spec"].get("policyName")
        for title, each in state.guard_objects.items()
        if title.startswith(GUARD_BINDING)
    }
    for title, each in sorted(state.guard_objects.items()):
        kind, _, name = title.partition(" ")
        if title in state.shipped_guards:
            continue
        if kind == GUARD:
            if name not in bound:
                yield warning(
                    f"no binding names {title}: it does nothing",
                    "apply it again: fairlead guard --help",
                )
            continue
        policy = f"{GUARD} {each['spec'].get('policyName')}"
        if policy not in state.guard_objects:
            yield error(
                f"{title} names {policy}, which is not there",
                "apply it again: fairlead guard --help",
            )
        elif not {"Deny", "Warn"} & set(each["spec"].get("validationActions") or ()):
            yield warning(
                f"{title} neither denies nor warns: its findings are not reported",
                "apply it again: fairlead guard --help",
            )


def _within(shipped: Any, live: Any) -> bool:
    """Whether the live value has all that ships; the API server may have added fields."""
    if isinstance(shipped, dict) and isinstance(live, dict):
        return all(key in live and _within(each, live[key]) for key, each in shipped.items())
    if isinstance(shipped, list) and isinstance(live, list):
        return len(shipped) == len(live) and all(map(_within, shipped, live))
    return bool(shipped == live)
