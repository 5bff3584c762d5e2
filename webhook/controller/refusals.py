"""Creations that the API server refused: why, and when they are tried again."""

from __future__ import annotations

import time
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any, Final

from webhook.backoff import CREATION_DELAYS
from webhook.kube.backoff import Backoff
from webhook.run.observed import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from webhook.errors import ClusterError

NAME_TAKEN: Final = "NameTaken"
# What admission plugins say, by the beginning of what makes them known (the plugins' own sources:
# ResourceQuota, PodSecurity, the webhook dispatcher, ValidatingAdmissionPolicy).
_WORDS: Final = (
    ("exceeded quota:", "QuotaExceeded"),
    ("failed quota:", "QuotaExceeded"),
    ("violates PodSecurity", "PodSecurity"),
    ("denied the request", "Rejected"),
    ("denied request:", "Rejected"),
)
# What passes by itself, and soon: the next attempt is the answer to it.
_PASSING: Final = (
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


def refusal(name: str, error: ClusterError) -> Refusal | None:
    """What to tell of a creation that failed; None if it is the API server's own trouble."""
    if error.status is None or error.status in _PASSING:
        return None
    words = error.words or str(error)
    for part, reason in _WORDS:
        if part in words:
            return Refusal(name, reason, words)
    if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return Refusal(name, "Invalid", words)
    if error.status == HTTPStatus.FORBIDDEN:
        return Refusal(name, "Forbidden", words)
    return Refusal(name, "Failed", words)


def name_taken(kind: str, other: Mapping[str, Any]) -> Refusal:
    """That an object of somebody else has the name of one of ours."""
    metadata = other["metadata"]
    owners = metadata.get("ownerReferences") or ()
    whose = next((f"{each['kind']} {each['name']}'s" for each in owners), "nobody's")
    return Refusal(
        metadata["name"],
        NAME_TAKEN,
        f"{kind} {metadata['name']} exists already and is not this run's, but {whose}: delete it, "
        "or give the run another name",
    )


class Refusals:
    """What was refused of each run's creations, by the run's uid, and the pause that follows.

    A name that is taken holds back that one name; any other refusal would meet the next creation
    too, and holds back all of the run's.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, random: Random | None = None
    ) -> None:
        self._clock = clock
        self._random = random or Random()  # noqa: S311 (spreads load, keeps no secret)
        self._runs: dict[str, _Record] = {}

    def of(self, uid: str) -> tuple[Refusal, ...]:
        """What was refused since, by name."""
        record = self._runs.get(uid)
        return tuple(record.refused[name] for name in sorted(record.refused)) if record else ()

    def pause(self, uid: str, name: str) -> float:
        """Seconds until this creation may be tried; 0.0 if it may be now."""
        record = self._runs.get(uid)
        if record is None:
            return 0.0
        until = max(record.until.get("", 0.0), record.until.get(name, 0.0))
        return max(0.0, until - self._clock())

    def note(self, uid: str, made: Collection[str], refused: Iterable[Refusal]) -> bool:
        """Take note of how creations went: names that were made, and refusals.

        Whether what `of` tells has changed.
        """
        before = self.of(uid)
        record = self._runs.setdefault(uid, _Record())
        record.forget(made)
        for one in refused:
            record.refused[one.name] = one
            whom = one.name if one.reason == NAME_TAKEN else ""
            if self._clock() >= record.until.get(whom, 0.0):
                # Else it was under way together with another that was refused.
                backoff = record.backoffs.setdefault(whom, Backoff(self._random, CREATION_DELAYS))
                record.until[whom] = self._clock() + backoff.next()
        if not record.refused:
            del self._runs[uid]
        return self.of(uid) != before

    def next(self, uid: str) -> float | None:
        """Seconds until the next creation that was refused may be tried; None if there is none."""
        return min((self.pause(uid, one.name) for one in self.of(uid)), default=None)

    def forget(self, uid: str) -> bool:
        """Nothing is to be created for the run any more. Whether anything was remembered."""
        return self._runs.pop(uid, None) is not None


class _Record:
    """Of one run: refusals by name; pauses by name, or for all under the empty one."""

    def __init__(self) -> None:
        self.refused: dict[str, Refusal] = {}
        self.until: dict[str, float] = {}
        self.backoffs: dict[str, Backoff] = {}

    def forget(self, made: Collection[str]) -> None:
        if not made:
            return
        for name, one in list(self.refused.items()):
            if name in made or one.reason != NAME_TAKEN:
                del self.refused[name]
        for whom in ("", *made):
            self.until.pop(whom, None)
            self.backoffs.pop(whom, None)
