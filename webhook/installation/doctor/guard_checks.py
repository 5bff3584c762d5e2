"""Checks of the guards: the admission policies that enforce what the webhook cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.installation.doctor.cluster_state import Finding, ReadKind, check, error, note, warning
from webhook.installation.object_kinds import GUARD, GUARD_BINDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.installation.doctor.cluster_state import ClusterState


@check("guards", needs=ReadKind.GUARDS)
def guards(state: ClusterState) -> Iterator[Finding]:
    """The admission policies that enforce what the webhook cannot exist, and have bindings."""
    kinds = (GUARD, GUARD_BINDING)
    shipped = {key: each for key, each in state.expected.items() if key.kind.name in kinds}
    for key, each in shipped.items():
        live = state.guard_objects.get(key)
        if live is None:
            # A webhook outside the cluster is being tried out.
            make = note if state.elsewhere else error
            yield make(
                f"there is no {key}: users who may write Runs can create pods that they "
                "may not create themselves",
                state.reinstall(),
            )
        elif not _within(each["spec"], live["spec"]):
            yield error(
                f"{key} differs from the version that ships, and may not enforce its rules",
                state.reinstall(),
            )
    own = {key: each["spec"] for key, each in state.guard_objects.items() if key not in shipped}
    policies = {key.name for key in state.guard_objects if key.kind.name == GUARD}
    bound = {each["spec"].get("policyName") for each in state.guard_objects.values()}
    cure = "apply it again: fairlead guard --help"
    for key, spec in sorted(own.items()):
        policy = spec.get("policyName")
        if key.kind.name == GUARD:
            if key.name not in bound:
                yield warning(f"no binding names {key}: it does nothing", cure)
        elif policy not in policies:
            yield error(f"{key} names {GUARD} {policy}, which is not there", cure)
        elif not {"Deny", "Warn"} & set(spec.get("validationActions") or ()):
            yield warning(f"{key} neither denies nor warns: its findings are not reported", cure)


def _within(shipped: Any, live: Any) -> bool:
    """Whether the live value has all that ships; the API server may have added fields."""
    if isinstance(shipped, dict) and isinstance(live, dict):
        return all(key in live and _within(each, live[key]) for key, each in shipped.items())
    if isinstance(shipped, list) and isinstance(live, list):
        return len(shipped) == len(live) and all(map(_within, shipped, live))
    return bool(shipped == live)
