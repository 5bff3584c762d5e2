"""Creations that the API server refused, and when to retry them."""

from __future__ import annotations

import time
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any, Final

from webhook.backoff import CREATION_DELAYS
from webhook.kube.answers import is_busy
from webhook.kube.rate_limit import Backoff
from webhook.run.observation import REFUSED_BY
from webhook.run.observed import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from webhook.errors import ClusterError

NAME_TAKEN: Final = "NameTaken"
# A webhook is called before anything is stored (k8s.io/apiserver, admission/plugin/webhook/errors).
_WEBHOOK_FAILED: Final = "failed calling webhook"


def refusal(name: str, error: ClusterError) -> Refusal | None:
    """Return the refusal behind a failed creation; None for a failure of the API server."""
    # Another client wrote first, which a retry resolves.
    if error.status in (None, HTTPStatus.CONFLICT) or is_busy(error):
        return None
    words = error.why
    for part, reason in REFUSED_BY:
        if part in words:
            return Refusal(name, reason, words)
    if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return Refusal(name, "Invalid", words)
    if error.status == HTTPStatus.FORBIDDEN:
        return Refusal(name, "Forbidden", words)
    certain = is_certain(error) or _WEBHOOK_FAILED in words
    return Refusal(name, "FailedCreate", words, certain)


def is_fact(refused: Refusal) -> bool:
    """Return whether the same creation would be rejected again until something changes."""
    return refused.reason != "FailedCreate"


def backend_rights(backend: str) -> str:
    """Return how an admin gives the controller the rights of a backend."""
    return (
        f"fairlead install --backend {backend}, the component backend-{backend}, or {backend} "
        "among the backends of the chart"
    )


def is_certain(error: ClusterError) -> bool:
    """Return whether a failed creation has stored nothing: the API server rejected the request."""
    return error.status is not None and error.status < HTTPStatus.INTERNAL_SERVER_ERROR


def name_taken(kind: str, other: Mapping[str, Any]) -> Refusal:
    """Return the refusal for a name that an object of another owner has."""
    metadata = other["metadata"]
    owners = metadata.get("ownerReferences") or ()
    owner = next((f"{reference['kind']} {reference['name']}" for reference in owners), "none")
    return Refusal(
        metadata["name"],
        NAME_TAKEN,
        f"{kind} {metadata['name']} exists already and does not belong to this run (its owner: "
        f"{owner}): delete it, or give the run another name",
    )


class Refusals:
    """The rejected creations of each run, by uid, and the pause before the next attempt.

    A name that is taken delays only the object of that name. Any other refusal would apply to the
    next creation too, and delays all creations of the run.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, random: Random | None = None
    ) -> None:
        self._clock = clock
        self._random = random or Random()  # noqa: S311 (spreads load, keeps no secret)
        self._runs: dict[str, _Record] = {}

    def refusals_of(self, uid: str) -> tuple[Refusal, ...]:
        """Return the run's current refusals, sorted by name."""
        record = self._runs.get(uid)
        return tuple(record.refused[name] for name in sorted(record.refused)) if record else ()

    def pause(self, uid: str, name: str) -> float:
        """Return the seconds until this creation may be tried; 0.0 if it may be tried now."""
        record = self._runs.get(uid)
        if record is None:
            return 0.0
        until = max(record.until.get("", 0.0), record.until.get(name, 0.0))
        return max(0.0, until - self._clock())

    def note(self, uid: str, made: Collection[str], refused: Iterable[Refusal]) -> bool:
        """Record the results of creations: created names, and refusals.

        Return whether the result of `refusals_of` has changed.
        """
        before = self.refusals_of(uid)
        record = self._runs.setdefault(uid, _Record())
        record.forget(made)
        for refusal in refused:
            record.refused[refusal.name] = refusal
            whom = refusal.name if refusal.reason == NAME_TAKEN else ""
            if self._clock() >= record.until.get(whom, 0.0):
                # Otherwise the creation ran concurrently with another one that was rejected.
                backoff = record.backoffs.setdefault(whom, Backoff(self._random, CREATION_DELAYS))
                record.until[whom] = self._clock() + backoff.next()
        if not record.refused:
            del self._runs[uid]
        return self.refusals_of(uid) != before

    def next(self, uid: str) -> float | None:
        """Return the seconds until the next retry of a rejected creation; None if there is none."""
        return min(
            (self.pause(uid, refusal.name) for refusal in self.refusals_of(uid)), default=None
        )

    def forget(self, uid: str) -> bool:
        """Forget the run, which needs no more creations; return whether it had refusals."""
        return self._runs.pop(uid, None) is not None


class _Record:
    """One run's refusals by name, and pauses by name; the empty name delays all creations."""

    def __init__(self) -> None:
        self.refused: dict[str, Refusal] = {}
        self.until: dict[str, float] = {}
        self.backoffs: dict[str, Backoff] = {}

    def forget(self, made: Collection[str]) -> None:
        if not made:
            return
        for name, refusal in list(self.refused.items()):
            if name in made or refusal.reason != NAME_TAKEN:
                del self.refused[name]
        for whom in ("", *made):
            self.until.pop(whom, None)
            self.backoffs.pop(whom, None)
