"""The policy sets that the webhook's replicas serve, compared with the cluster's, and counts."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names, validating
from webhook.cluster_objects.policy_objects import objects_of
from webhook.cluster_objects.webhook_replicas import NoReplica, read_by_replica
from webhook.controller.policies.replica_metrics import report_of
from webhook.decision.stamp import HASH_LENGTH
from webhook.errors import ClusterError, PassOver
from webhook.installation.object_kinds import VALIDATING, key_of
from webhook.placement.shapes import as_object, objects_in
from webhook.questions.live.missing_stamp import read_configuration
from webhook.questions.policies.policies_in_force import Count, Served
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.policy.policy_set import PolicySet


_OUTSIDE: Final = "the webhook runs outside of the cluster, which cannot ask it"


async def differing(client: Client, policies: PolicySet) -> list[str]:
    """Return notes as in `not_served`, also if it serves another set: the user named the
    cluster's."""
    return await not_served(client, policies, (), named=True)


async def not_served(
    client: Client, policies: PolicySet, stamped: Collection[str], *, named: bool = False
) -> list[str]:
    """Return notes on whether the webhook serves this set. That it serves another one is an error,
    or a note if the user named the cluster's.

    stamped: the hashes in the stamps of pods that were read; the set's own shows that the webhook
        has served it

    A user who may not ask the replicas has the stamps and the webhook configurations: a webhook
    that serves files gets no writes of policies. Raises ClusterError.
    """
    set_hash = policies.hash[:HASH_LENGTH]
    answers = await ask_replicas(client)
    hashes = [served_set.hash for served_set in answers.served or ()]
    if another := await another_set(client, set_hash, answers):
        if named:
            return [f"{another}; this is about the policies in the cluster, set {set_hash}"]
        raise ClusterError(
            f"{another}, and the policies in the cluster are set {set_hash}: name those that it "
            "serves with --policies DIR, or give --policies cluster to use those in the cluster"
        )
    if behind := sum(served_hash != set_hash for served_hash in hashes):
        return [
            f"{behind} of {len(hashes)} replicas of the webhook do not serve set {set_hash} yet"
        ]
    if hashes:
        return [answers.note] if answers.note and not answers.outside else []
    if set_hash in stamped:
        return []
    return [f"it is unknown whether the webhook uses the cluster's set {set_hash}: {answers.note}"]


async def another_set(client: Client, set_hash: str, answers: ReplicaCounts) -> str:
    """Return what the webhook serves instead of the cluster's set; empty if that is not known."""
    hashes = {served_set.hash for served_set in answers.served or ()}
    if hashes and set_hash not in hashes:
        sets = ", ".join(sorted(served_hash or "none" for served_hash in hashes))
        return f"every replica of the webhook serves another set ({sets})"
    if not hashes and await _serves_files(client):
        return "the webhook serves policies from files"
    return ""


async def _serves_files(client: Client) -> bool:
    if not await read_configuration(client):
        return False
    with PassOver(HTTPStatus.FORBIDDEN):
        path = key_of(VALIDATING, names.WEBHOOK_CONFIGURATION).path
        entries = (await client.find(path) or {}).get("webhooks") or ()
        return not any(entry.get("name") == validating.POLICIES for entry in entries)
    return False


class ReplicaCounts(NamedTuple):
    """What replicas report; `counts` is None if they could not be asked, and `note` says why.

    `served` is then what the controller has observed last, or None. `since` is the start of the
    latest replica: a policy without `counts` never matched since then. Counts of replicas that
    ended are lost. Empty if the start of one is unknown. `outside`: the webhook runs outside of the
    cluster, as a sandbox's does.
    """

    served: Sequence[Served] | None
    counts: Mapping[str, Count] | None
    since: str = ""
    note: str = ""
    outside: bool = False

    def of(self, policy: str) -> Count | None:
        """Return the counts of a policy; None if replicas could not be asked."""
        if self.counts is None:
            return None
        return self.counts.get(policy) or Count(0, "", self.since)


async def ask_replicas(client: Client) -> ReplicaCounts:
    """Ask each replica now; where that is not possible, read what the controller has observed.

    Raises ClusterError if the API server does not answer.
    """
    reports = {}
    try:
        for name, text in (await read_by_replica(client)).items():
            reports[name] = report_of(text)
    except NoReplica as error:
        why = await why_unasked(client, error)
        return (await _observed(client, why))._replace(outside=why == _OUTSIDE)
    except ClusterError as error:
        return await _observed(client, str(error))
    except ValueError as error:
        why = f"/metrics of {name} cannot be read ({error}): run fairlead doctor"
        return await _observed(client, why)
    served = [Served(name, report.hash) for name, report in sorted(reports.items())]
    since = ""
    with suppress(ValueError):
        began = (datetime.fromtimestamp(float(report.process), UTC) for report in reports.values())
        since = max(map(to_second, began), default="")
    counts: dict[str, Count] = {}
    for report in reports.values():
        for policy, count in report.counts.items():
            had = counts.get(policy, Count(0, "", since))
            last = max(had.last_match, count.last_match)
            counts[policy] = Count(had.decided + count.decided, last, since)
    return ReplicaCounts(served, counts, since)


async def why_unasked(client: Client, error: NoReplica) -> str:
    """Return why no replica was asked: pods may be sent to a webhook outside of the cluster.

    Raises ClusterError.
    """
    configuration = await read_configuration(client)
    entries = objects_in(configuration.get("webhooks")) if configuration else ()
    outside = any("url" in as_object(entry.get("clientConfig")) for entry in entries)
    return _OUTSIDE if outside else str(error)


async def _observed(client: Client, why: str) -> ReplicaCounts:
    """Return the sets that policies' statuses say replicas serve; `why` they were not asked."""
    path = objects_of(names.PLACEMENT_POLICIES)
    hash_by_replica: dict[str, str] = {}
    with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
        for status in (
            await client.list(path, lambda manifest: manifest.get("status") or {})
        ).items:
            for row in status.get("servedHashes") or ():
                hash_by_replica[str(row["replica"])] = str(row["hash"])
    if not hash_by_replica:
        return ReplicaCounts(None, None, note=why)
    served = [Served(*pair) for pair in sorted(hash_by_replica.items())]
    return ReplicaCounts(
        served, None, note=f"what replicas serve is what the controller observed last; {why}"
    )


def count_of(status: Mapping[str, Any]) -> Count | None:
    """Return what a policy's status has counted; None if nothing is counted there."""
    if not status.get("since"):
        return None
    return Count(
        int(status.get("podsDecided") or 0),
        str(status.get("lastMatch") or ""),
        str(status["since"]),
    )
