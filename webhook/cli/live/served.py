"""Whether the webhook decides by the policies in the cluster, or by others."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook import names, validating
from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.live.unstamped import read_configuration
from webhook.cli.policies.replicas import ask
from webhook.errors import ClusterError
from webhook.installation.kinds import VALIDATING, key_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.cli.policies.replicas import Said
    from webhook.kube.client import Client
    from webhook.policy.policy_set import PolicySet


class NotServed(ClusterError):
    """The webhook decides by other policies: `what` it does, and the hash of the cluster's."""

    def __init__(self, what: str, own: str) -> None:
        super().__init__(
            f"{what}, and the policies in the cluster are set {own}: name those that it serves, as "
            "in --policies DIR, or --policies cluster to see what the cluster's would do"
        )
        self.note = f"{what}; this is about the policies in the cluster, set {own}"


async def differing(client: Client, policies: PolicySet, said: Said | None = None) -> list[str]:
    """The same as notes, where the cluster's policies were asked for in so many words."""
    try:
        return await not_served(client, policies, (), said)
    except NotServed as error:
        return [error.note]


async def not_served(
    client: Client, policies: PolicySet, stamped: Collection[str], said: Said | None = None
) -> list[str]:
    """What is not known of it, or not so everywhere. Raises NotServed if it decides by others.

    `stamped` are the hashes in the stamps of pods that were looked at: one that is the set's shows
    that the webhook has decided by it. The replicas themselves know best, and `said` is what they
    said if they were asked; whoever may not ask them has the stamps, and the configuration, which
    sends no policies to a webhook that serves files. Raises ClusterError.
    """
    own = policies.hash[:HASH_LENGTH]
    said = said or await ask(client)
    hashes = [each.hash for each in said.served or ()]
    others = [each for each in hashes if each != own]
    if others and len(others) == len(hashes):
        told = ", ".join(sorted({each or "none" for each in others}))
        raise NotServed(f"every replica of the webhook serves another set ({told})", own)
    if others:
        return [
            f"{len(others)} of {len(hashes)} replicas of the webhook do not serve set {own} yet"
        ]
    if hashes:
        return []
    if await _serves_files(client):
        raise NotServed("the webhook serves policies from files", own)
    if own in stamped:
        return []
    return [f"whether the webhook decides by the cluster's set {own} is not known: {said.note}"]


async def _serves_files(client: Client) -> bool:
    """Whether pods are sent to a webhook, and writes of policies are not."""
    if not await read_configuration(client):
        return False
    try:
        found = await client.get(key_of(VALIDATING, names.WEBHOOK_CONFIGURATION).path)
    except ClusterError as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return error.status == HTTPStatus.NOT_FOUND
        raise
    entries = found.get("webhooks") or ()
    return not any(each.get("name") == validating.POLICIES for each in entries)
