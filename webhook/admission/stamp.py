"""The stamp that every decision leaves on a run's pod, and second calls, which it shows."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.admission.review import PodRequest
    from webhook.placement.pod import PodPlacement

# Enough to distinguish all policy sets of a cluster's lifetime, and short enough to read aloud.
HASH_LENGTH = 16


def write_stamp(
    content: Mapping[str, object],
    set_hash: str,
    policies_by_exception: Mapping[str, Sequence[str]],
) -> str:
    """Return the annotation fairlead.dev/placement of a pod: compact JSON.

    It is the same for the same pod and policies. No decision reads it; the controller reads the
    fallbacks.

    `content` has `policies`: the fields that each policy set, an empty object if none applies;
    `fallback`: by class the seconds after which the controller gives up waiting, None if it does
    not, or the time until when the class is not required. Or it has `leftAlone`: the reason.
    """
    stamp = {**content, "set": set_hash[:HASH_LENGTH]}
    if policies_by_exception:
        stamp["exceptions"] = policies_by_exception
    return orjson.dumps(stamp, option=orjson.OPT_SORT_KEYS).decode("utf-8")


def parse_stamp(text: object) -> Mapping[str, Any] | None:
    """Parse the text of a pod's annotation; None if it is not a valid stamp."""
    if not isinstance(text, str):
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


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


def stamp_of(placement: PodPlacement | None) -> str:
    """Return the pod's stamp; empty if it has none."""
    return placement.annotations.get(names.PLACEMENT, "") if placement else ""


def key_of(request: PodRequest, stamp: str) -> bytes:
    """Return a digest of what both calls about a pod share: its name, its author and its stamp.

    A pod with generateName has no name yet, so pods of one controller may share a key.
    """
    of_pod = (request.namespace, request.title, request.user, request.dry_run, stamp)
    return blake2b(repr(of_pod).encode("utf-8", "backslashreplace"), digest_size=16).digest()
