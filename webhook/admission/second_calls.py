"""Second calls of the API server about a pod, and the warnings that the first answers had."""

from __future__ import annotations

from collections import Counter, deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from webhook import names

if TYPE_CHECKING:
    from webhook.admission.review import PodRequest
    from webhook.placement.shapes import JsonObject

# The longest time that the API server waits for a webhook.
ANSWER_KEPT_SECONDS: Final = 30.0
# Answers, of about 200 bytes each.
CACHED_ANSWERS: Final = 4096
_STAMP: Final = f"f:{names.PLACEMENT}"


def is_second_call(pod: JsonObject) -> bool:
    """Return True if the pod's stamp is of an earlier answer about this very pod.

    The API server calls a webhook again within one request if another plugin changed the pod
    (reinvocationPolicy: IfNeeded). An author can write a stamp too. But the API server records
    which fields a request has before it calls any webhook, whatever the request says about that
    (createHandler of k8s.io/apiserver, pkg/endpoints/handlers/create.go). So a stamp that nobody
    is recorded to have sent is that of an answer. Without a record it is taken for the author's.
    """
    metadata = pod["metadata"]
    if names.PLACEMENT not in (metadata.get("annotations") or {}):
        return False
    records = metadata.get("managedFields")
    return isinstance(records, list) and bool(records) and not any(map(_has_stamp, records))


def _has_stamp(record: object) -> bool:
    """Return whether the fields of a metav1.ManagedFieldsEntry have the stamp, or are unknown."""
    fields = record.get("fieldsV1") if isinstance(record, dict) else None
    for key in ("f:metadata", "f:annotations"):
        if not isinstance(fields, dict):
            return True
        fields = fields.get(key, {})
    return not isinstance(fields, dict) or _STAMP in fields


class Warned:
    """Answers of the last SECONDS with the warning that no node admits the pod, at most `most`.

    Times are of one monotonic clock. Pods of one controller may share a key, and the warning.
    """

    def __init__(self, most: int = CACHED_ANSWERS) -> None:
        self._most = most
        self._times: deque[tuple[float, bytes]] = deque()
        self._keys: Counter[bytes] = Counter()

    def __len__(self) -> int:
        return len(self._times)

    def remember(self, key: bytes, now: float) -> None:
        """Remember an answer, and forget those that are too old or too many."""
        self._forget_before(now - ANSWER_KEPT_SECONDS)
        if len(self._times) >= self._most:
            self._forget_oldest()
        self._times.append((now, key))
        self._keys[key] += 1

    def has(self, key: bytes, now: float) -> bool:
        """Return whether an answer with this key had the warning."""
        self._forget_before(now - ANSWER_KEPT_SECONDS)
        return key in self._keys

    def _forget_before(self, time: float) -> None:
        while self._times and self._times[0][0] < time:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, key = self._times.popleft()
        self._keys[key] -= 1
        if not self._keys[key]:
            del self._keys[key]


def key_of(request: PodRequest, stamp: str) -> bytes:
    """Return a digest of what both calls about a pod share: its name, its author and its stamp."""
    of_pod = (request.namespace, request.title, request.user, request.dry_run, stamp)
    return blake2b(repr(of_pod).encode("utf-8", "backslashreplace"), digest_size=16).digest()
