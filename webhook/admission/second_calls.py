"""Second calls of the API server about a pod, which the pod's stamp shows."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from webhook.admission.review import PodRequest

# The longest time that the API server waits for a webhook.
SECONDS: Final = 30.0
# Answers, of about 400 bytes each.
MOST: Final = 4096


class FirstCall(NamedTuple):
    """An answer that a second call may follow. `no_node`: it said that no node admits the pod."""

    at: float
    no_node: bool


class Answers:
    """The answers of the last SECONDS, at most `most`. Times are of one monotonic clock.

    The API server calls a webhook again within one request if another plugin changed the pod
    (reinvocationPolicy: IfNeeded), with a new uid and the pod with the first answer's patch. So the
    pod carries the stamp of that answer. An author can write such a stamp too, so a second call is
    only what matches an answer that this replica gave shortly before, and each matches once.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_key: dict[bytes, list[FirstCall]] = {}
        # In the order of time. Includes those that `take` has removed.
        self._all: deque[tuple[bytes, FirstCall]] = deque()

    def __len__(self) -> int:
        return len(self._all)

    def remember(self, key: bytes, first: FirstCall) -> None:
        """Remember an answer, and forget those that are too old or too many."""
        self._forget_before(first.at - SECONDS)
        if len(self._all) >= self._most:
            self._forget_oldest()
        self._all.append((key, first))
        self._by_key.setdefault(key, []).append(first)

    def take(self, key: bytes, now: float) -> FirstCall | None:
        """Return the oldest answer with this key, and forget it; None if there is none."""
        self._forget_before(now - SECONDS)
        return self._remove(key) if key in self._by_key else None

    def _forget_before(self, time: float) -> None:
        while self._all and self._all[0][1].at < time:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        key, first = self._all.popleft()
        # `take` removes the oldest of a key, so another one at the front is younger.
        if key in self._by_key and self._by_key[key][0] is first:
            self._remove(key)

    def _remove(self, key: bytes) -> FirstCall:
        of_key = self._by_key[key]
        first = of_key.pop(0)
        if not of_key:
            del self._by_key[key]
        return first


def key_of(request: PodRequest, stamp: str) -> bytes:
    """Return a digest of what both calls about a pod share: its name, its author and its stamp.

    A pod with generateName has no name yet, so pods of one controller may share a key.
    """
    of_pod = (request.namespace, request.title, request.user, request.dry_run, stamp)
    return blake2b(repr(of_pod).encode("utf-8", "backslashreplace"), digest_size=16).digest()
