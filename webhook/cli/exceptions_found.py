"""The exceptions of files or of a cluster, and how many live pods have passed by each."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.admission import stamp
from webhook.cli.harmless import harmless
from webhook.cli.live.served import differing
from webhook.cli.offline import policy_files
from webhook.errors import ClusterError, InvalidDocuments
from webhook.policy import source
from webhook.policy.exception_model import PlacementException
from webhook.policy.exceptions import compiled
from webhook.policy.load import compiled as load_compiled
from webhook.policy.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from webhook.kube.client import Client
    from webhook.policy.exceptions import PolicyException
    from webhook.policy.match_model import Match
    from webhook.policy.model import PolicyDocument
    from webhook.policy.reader import Documents

_OVER: Final = frozenset({"Succeeded", "Failed"})


class Shown(NamedTuple):
    """One exception; `match` as it is written."""

    exception: PolicyException
    policies: Sequence[str]
    match: Match


class Found(NamedTuple):
    """What there is. `pods` has the live pods by exception; None if nobody could be asked.

    `notes` are lines about what could not be known, `wrong` about documents that are not shown.
    """

    exceptions: Sequence[Shown]
    pods: Mapping[str, int] | None
    notes: Sequence[str]
    wrong: Sequence[str] = ()

    def ordered(self, now: datetime, *, in_force: bool) -> list[Shown]:
        """Those in force, the soonest to end first; then, unless left out, those that ended."""
        kept = [each for each in self.exceptions if each.exception.in_force(now) or not in_force]
        return sorted(
            kept,
            key=lambda each: (
                not each.exception.in_force(now),
                abs((each.exception.until - now).total_seconds()),
                each.exception.name,
            ),
        )


def of_files(paths: Sequence[Path]) -> Found:
    """The exceptions in files. Raises UnreadableInput."""
    return _found(source.parse(policy_files(paths)), None, [])


async def of_cluster(client: Client) -> Found:
    """The exceptions that a cluster holds, and its live pods. Raises ClusterError."""
    from webhook.kube.policy_objects import read_objects

    documents = Objects().documents(await read_objects(client))
    notes = await _of_webhook(client, documents)
    try:
        listed = await client.list("/api/v1/pods", _passed_by)
    except ClusterError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        notes.append("you may not list pods: who has passed is not known")
        return _found(documents, None, notes)
    passed = Counter(name for exceptions in listed.items for name in exceptions)
    return _found(documents, passed, notes)


async def _of_webhook(client: Client, documents: Documents[PolicyDocument]) -> list[str]:
    """Whether these are the exceptions that the webhook goes by, as far as that is not so."""
    try:
        return await differing(client, load_compiled(documents).policies)
    except InvalidDocuments:
        return ["the documents are no policy set: the webhook goes by the last good one"]


def _found(
    documents: Documents[PolicyDocument], pods: Mapping[str, int] | None, notes: Sequence[str]
) -> Found:
    good = [each.model for each in documents.documents]
    shown = [
        Shown(compiled(model), model.spec.policies, model.spec.match)
        for model in good
        if isinstance(model, PlacementException)
    ]
    errors = [str(finding) for finding in documents.errors]
    return Found(shown, pods, notes, [*map(harmless, errors)])


def _passed_by(pod: Mapping[str, Any]) -> Sequence[str]:
    """The exceptions that a pod's stamp names, if it is still live."""
    if pod.get("status", {}).get("phase") in _OVER:
        return ()
    found = stamp.read((pod["metadata"].get("annotations") or {}).get(names.PLACEMENT))
    passed = found.get("exceptions") if found else None
    return tuple(passed) if isinstance(passed, dict) else ()
