"""Checks of the policies in the ConfigMap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.errors import InvalidDocuments
from webhook.installation.doctor.findings import Finding, error, note, warning
from webhook.policy.load import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.installation.doctor.seen import Seen

_CONFIG_MAP = f"ConfigMap {names.NAMESPACE}/{names.POLICIES_CONFIG_MAP}"
_MOST = 5


def policies(seen: Seen) -> Iterator[Finding]:
    """They can be read, and nothing is wrong with them."""
    if not seen.in_cluster or "the policies" in seen.unread:
        return
    if seen.policies is None:
        yield error(
            f"there is no {_CONFIG_MAP}: pods of the webhook cannot start",
            "fairlead install --policies DIR",
        )
        return
    try:
        loaded = load({name: text.encode() for name, text in seen.policies.items()})
    except InvalidDocuments as problem:
        wrong = [each for each in problem.findings if getattr(each, "severity", "") == "error"]
        for each in wrong[:_MOST]:
            yield error(
                f"{_CONFIG_MAP}: {each}",
                "mend it, then fairlead check DIR and fairlead install --policies DIR; until then "
                "the last good set serves, and a webhook that starts anew is never ready",
            )
        if len(wrong) > _MOST:
            yield note(f"{len(wrong) - _MOST} more errors: fairlead check tells them all")
        return
    for each in loaded.warnings[:_MOST]:
        yield warning(f"{_CONFIG_MAP}: {each}", "fairlead check DIR")
    if not loaded.policies.policies:
        yield note(f"{_CONFIG_MAP} has no policy: pods are stamped, and stay as they are")
